"""What the tool parts of a conversation tell: files changed and seen, commands and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from backstory.domain.conversation import Part
from backstory.domain.extract.sentences import cut_at_word, headline
from backstory.domain.extract.signs import fact_count, is_error_line
from backstory.domain.tool_parts import Json, ToolUse, as_list, as_object, as_text, is_own_tool, part_detail, tool_use
from backstory.domain.transcript import outside_text

_COMMAND_CHARS = 120
_OUTCOME_CHARS = 160
_SNIPPET_CHARS = 100
_FEW_LINES = 5
_PATH_CHARS = 300
_SCAN_CHARS = 12_000  # of an output: reports stand at its end, first errors at its beginning
_PATH_KEYS = ("filePath", "file_path", "path", "file", "filename", "notebook_path", "target_file", "relative_path")
_OLD_KEYS, _NEW_KEYS = ("oldString", "old_string", "old_str"), ("newString", "new_string", "new_str")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing done, on one line. ``weight`` is on the scale of ``signs.weight``."""

    text: str
    weight: float


@dataclass(slots=True, kw_only=True)
class Work:
    """Files by name, each once, in the order they were met first."""

    changed: dict[str, None] = field(default_factory=dict)
    seen: dict[str, None] = field(default_factory=dict)


def note_work(part: Part, work: Work) -> Deed | None:
    """Add the files of a tool part to ``work``; its deed, if that is worth a line. Unfinished, it tells nothing."""
    if part.kind == "patch":
        work.changed.update(dict.fromkeys(_names(map(as_text, as_list(part_detail(part).get("files"))))))
        return None
    use = tool_use(part)
    if use is None or use.unfinished or is_own_tool(use.name) or "todo" in use.name.lower():
        return None
    command = _command(use)
    if command:
        return _run(command, use)
    paths = _paths(use.input)
    if paths and _changes(use):
        return _change(use, paths, work)
    if paths and not use.failed:
        work.seen.update(dict.fromkeys(paths))
    return _other(use)


def _command(use: ToolUse) -> str:
    if _changes(use) or any(as_text(use.input.get(key)) for key in _PATH_KEYS):
        return ""
    command = use.input.get("command") or use.input.get("cmd") or use.input.get("script")
    if isinstance(command, list):
        command = " ".join(map(as_text, command))
    lines = as_text(command).strip().splitlines()
    return cut_at_word(" ".join(lines[0].split()) + ("…" if len(lines) > 1 else ""), _COMMAND_CHARS) if lines else ""


def _run(command: str, use: ToolUse) -> Deed:
    outcome = _outcome(use)
    text = f"Ran `{command}`" + (f" → {outcome}" if outcome else "")
    if use.failed:
        return Deed(text=text, weight=5.0)
    return Deed(text=text, weight=3.5 if _report().search(outcome) else 1.2 + 0.4 * min(fact_count(outcome), 3))


def _outcome(use: ToolUse) -> str:
    """Exit status, report of a test run or first error; a short answer as it is."""
    lines = _telling_lines(use)
    report = next((line for line in reversed(lines) if _report().search(line)), "")
    told = [f"exit {use.exit_code}" if use.exit_code else "failed" if use.failed else ""]
    if use.failed:
        told.append(_first_error(lines) or (lines[-1] if lines else ""))
    elif not report:
        told.append(_short_answer(lines))
    if report and report not in told:
        told.append(report)
    return "; ".join(cut_at_word(line, _OUTCOME_CHARS) for line in told if line)


def _short_answer(lines: Sequence[str]) -> str:
    """A few lines as they are; of many, the last that names something."""
    if len(lines) <= _FEW_LINES:
        return "; ".join(lines)
    return next((line for line in reversed(lines) if fact_count(line) >= 2), "")


def _telling_lines(use: ToolUse) -> list[str]:
    text = "\n".join(filter(None, [use.output, use.error]))
    if len(text) > _SCAN_CHARS:
        text = f"{text[: _SCAN_CHARS // 2]}\n{text[-_SCAN_CHARS // 2 :]}"
    lines = (" ".join(_COLOUR.sub("", line).strip("=- \t").split()) for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("<")]


_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def _first_error(lines: Sequence[str]) -> str:
    """The first line that reports an error; the last line of a Python traceback, since its first says nothing."""
    for at, line in enumerate(lines):
        if line.startswith("Traceback"):
            return next((end for end in lines[at + 1 :] if _raised().match(end)), line)
        if is_error_line(line):
            return line
    return ""


def error_line(lines: Sequence[str]) -> str:
    """The first error among lines that somebody pasted; empty without one."""
    return cut_at_word(_first_error([" ".join(line.split()) for line in lines if line.strip()]), _OUTCOME_CHARS)


def _change(use: ToolUse, paths: Sequence[str], work: Work) -> Deed | None:
    name = paths[0]
    if use.failed:
        why = _first_error(_telling_lines(use)) or next(iter(_telling_lines(use)), "")
        return Deed(
            text=f"{use.name} {name} failed" + (f": {cut_at_word(why, _OUTCOME_CHARS)}" if why else ""), weight=4
        )
    work.changed.update(dict.fromkeys(paths))
    snippet = _snippet(use.input)
    return Deed(text=f"Changed {name}: {snippet}", weight=3.0 + 0.5 * min(fact_count(snippet), 2)) if snippet else None


def _snippet(given: Json) -> str:
    """The line that an edit changed, before and after; empty when there is more than one, or nothing to show."""
    old, new = _first(given, _OLD_KEYS).splitlines(), _first(given, _NEW_KEYS).splitlines()
    gone = [line.strip() for line in old if line.strip() and line not in new]
    come = [line.strip() for line in new if line.strip() and line not in old]
    if len(gone) > 1 or len(come) > 1 or not (gone or come):
        return ""
    before, after = "".join(gone), "".join(come)
    if max(len(before), len(after)) > _SNIPPET_CHARS:
        return ""
    if not after:
        return f"`{before}` removed"
    return f"`{before}` → `{after}`" if before else f"`{after}` added"


def _other(use: ToolUse) -> Deed | None:
    """A search, a fetched page, a sub-agent's task: what was asked, and a short answer."""
    asked = _first(use.input, ("description", "url", "query", "pattern", "question", "prompt"))
    if not asked:
        return None
    lines = _telling_lines(use)
    answer = _outcome(use) if use.failed or len(lines) == 1 else ""
    if "description" in use.input and not answer:  # a task: its answer is prose
        answer = headline("\n".join(lines), _OUTCOME_CHARS)
    if not answer:
        return Deed(text=f"{use.name}: {headline(asked, _COMMAND_CHARS)}", weight=0.5)
    text = f"{use.name} {headline(asked, _COMMAND_CHARS)} → {answer}"
    return Deed(text=text, weight=3.5 if use.failed else 1.5 + 0.5 * min(fact_count(answer), 3))


def _changes(use: ToolUse) -> bool:
    return bool(_changing().search(use.name)) and use.input.get("command") not in ("view", "read")


def _paths(given: Json) -> list[str]:
    named = [as_text(given.get(key)) for key in _PATH_KEYS]
    listed = [item for key in ("paths", "files", "edits") for item in as_list(given.get(key))]
    inner = (as_text(item) or _first(as_object(item), _PATH_KEYS) for item in listed)
    patched = _patched().findall(as_text(given.get("patchText") or given.get("patch") or given.get("input")))
    return list(dict.fromkeys(_names((*named, *inner, *patched))))


def _names(paths: Iterable[str]) -> Iterator[str]:
    """Paths as they may stand on a line; what is too long for one is none."""
    told = (" ".join(outside_text(path).split()) for path in paths if len(path) <= _PATH_CHARS)
    return filter(None, told)


def _first(given: Json, keys: Sequence[str]) -> str:
    texts: Iterator[str] = (as_text(given.get(key)) for key in keys)
    return next(filter(None, texts), "")


@cache
def _changing() -> re.Pattern[str]:
    return re.compile(
        r"(?:^|[_.-])(?:multi_?edit|edit|write|(?:apply_?)?patch|create|str_replace|replace|insert|notebook_?edit"
        r"|delete|remove|rename|move)|(?:edit|write)$",
        re.IGNORECASE,
    )


@cache
def _patched() -> re.Pattern[str]:
    return re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


@cache
def _report() -> re.Pattern[str]:
    return re.compile(
        r"\b\d+ +(?:passed|failed|errors?|skipped|passing|failing|tests?|examples?|problems?|assertions?)\b"
        r"|\bfound \d+|\bno issues\b|\ball checks passed|\bBUILD (?:SUCCESS\w*|FAIL\w+)|\btest result:",
        re.IGNORECASE,
    )


@cache
def _raised() -> re.Pattern[str]:
    return re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\b")
