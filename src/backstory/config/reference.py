"""The table of options for people: the settings in force, and the page ``docs/reference/settings.md``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from backstory.config.files import MAX_BYTES
from backstory.config.layers import NOT_SETTINGS, TEST_PREFIX, Resolved
from backstory.config.locations import CONFIG, HOME, PROJECT_FILE
from backstory.config.older import DEBUG_SWITCHES, OLLAMA_HOST, OLLAMA_MODEL, OLLAMA_PORT, OPENAI_KEY
from backstory.config.options import Option, Value
from backstory.config.settings import groups, options
from backstory.config.values import shown

HIDDEN = "set, hidden"
_NOT_SET = "not set"
_PROJECT_WORDS = {"safe": "may set", "never": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One setting in force: dotted name, value as text that is safe to show, source, help."""

    name: str
    value: str
    source: str
    help: str


def describe(resolved: Resolved) -> list[Row]:
    """Every setting with its value and source, in the order of the table; of a secret, only that it is set."""
    rows = []
    for option in options():
        group, _, key = option.name.partition(".")
        value: Value = getattr(getattr(resolved.settings, group), key)
        text = HIDDEN if option.secret and value is not None else _text(value)
        rows.append(Row(name=option.name, value=text, source=resolved.sources[option.name], help=option.help))
    return rows


def render_reference() -> str:
    """The reference page as Markdown, ending in one newline; made from the table, so that it cannot lag behind."""
    parts = [_INTRODUCTION]
    for group, members in groupby(options(), key=lambda option: option.name.partition(".")[0]):
        parts += [f"## {group}", str(groups()[group].__doc__).partition("\n")[0], _table(list(members))]
    parts += [_older_names(), _EXAMPLE]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _text(value: Value) -> str:
    if value is None:
        return _NOT_SET
    return shown(value).strip("'") if isinstance(value, str) else shown(value)


def _table(members: list[Option]) -> str:
    rows = [("Setting", "Default", "Allowed", "Project file", "What it does"), ("---",) * 5]
    rows += [
        (
            f"`{option.name}`<br>`{option.env}`",
            _text(option.default),
            option.limits,
            _PROJECT_WORDS.get(option.project, f"only {shown(option.off).strip(chr(39))}"),
            option.help,
        )
        for option in members
    ]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _older_names() -> str:
    rows = [(alias, f"`{option.name}`") for option in options() for alias in option.aliases]
    rows += [(name, "`log.level` = debug, when 1") for name in DEBUG_SWITCHES]
    rows += [
        (f"{OLLAMA_HOST}`, `{OLLAMA_PORT}", "`embedder.base_url`, once `embedder.provider` is ollama"),
        (OLLAMA_MODEL, "`embedder.model`, once `embedder.provider` is ollama"),
        (OPENAI_KEY, "the key, where the provider is openai and no `base_url` is set"),
    ]
    lines = ["| Name | Sets |", "| --- | --- |", *(f"| `{name}` | {meaning} |" for name, meaning in rows)]
    return "\n".join([_OLDER, "", *lines])


_INTRODUCTION = f"""
# Settings

This page is made from the table of options; `backstory config` shows the values in force and where each came from.

A value is looked for in this order, and the first that is found counts:

1. a flag on the command line;
2. an environment variable; an empty one counts as not set;
3. the project's file, `{PROJECT_FILE}` in the root of the project;
4. your own file, `config.toml` in the folder `backstory` of your platform's place for settings
   (`~/.config/backstory` on Linux);
5. the default.

`{CONFIG}` names another file in place of your own; it must exist. `{HOME}` names one folder for everything:
`config.toml`, the data, and the cache under `cache`. Both must be absolute paths. Files named `.env` are never read.

Any other variable that begins with `BACKSTORY_` must be on this page, unless it begins with `{TEST_PREFIX}`. Not
settings: {"; ".join(f"`{name}` is {meaning}" for name, meaning in NOT_SETTINGS.items())}.

Both files are TOML in UTF-8, at most {MAX_BYTES // 1024} KiB. A setting `group.name` stands as `name` under `[group]`.
A switch is true or false in a file, and also 1 or 0, yes or no, on or off in a variable.

Whatever is wrong in a flag, a variable or your own file is an error that names the setting, the value and what is
allowed; for a name nobody knows it names the nearest one.

## What a project may set

The project's file comes with the repository, so it is not your word. It can tune limits and switch features off. It
cannot name a store, a folder, an endpoint, a model or a key, and cannot switch on what would be off without it. What
it may not set, and whatever else is wrong with it, is ignored with a warning; a file that is not TOML, is too large or
is a link out of the project is ignored as a whole. The column "Project file" says what it may do with each setting.

## Keys

A key is read from the environment only: from the variable of its setting, or from the one `api_key_env` names. A key
in a file or on a command line is refused, because files are copied and command lines can be seen by others. No
command shows a key.
"""

_OLDER = """
## Names of older products

These variables are read where our own is not set, so that an environment that served an older product still does.
Others of theirs have no counterpart and are not read: `OPENCODE_MEMORY_OFF` switches that product off, not this one;
`OPENCODE_MEMORY_DIR` and the database of `OCPG_*` hold data in those products' own formats.
""".strip()

_EXAMPLE = """
## Example

```toml
[recall]
limit = 20
relevance = "quiet"

[embedder]
provider = "ollama"
model = "nomic-embed-text"
base_url = "http://127.0.0.1:11434"

[models]
base_url = "https://llm.example.com/v1"
api_key_env = "TEAM_LLM_KEY"
```
"""
