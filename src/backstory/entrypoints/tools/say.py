"""Memories as text for a model. Content is quoted: it stays inside its entry, and its markup is defused."""

from __future__ import annotations

from collections.abc import Mapping

from backstory.bootstrap import App
from backstory.domain.context_block import check_mark, quote
from backstory.domain.doubt import Doubt
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Conflicted, Memory, Superseded, Visibility, status_name

Names = Mapping[ProjectId, str]

_EVIDENCE_CHARS = 200


async def project_names(app: App) -> Names:
    """The names of all projects."""
    return {project_id: project.name for project_id, project in (await app.inspection.projects()).items()}


def memory_lines(memory: Memory, *, here: ProjectId | None, names: Names, doubt: Doubt | None = None) -> str:
    """One memory in full: a line of facts about it, among them why it should be checked, then its text, indented
    by two blanks more than it is."""
    facts = [f"{memory.times.learned:%Y-%m-%d}", memory.kind.value, f"from {memory.origin.value}"]
    if memory.visibility is Visibility.GLOBAL:
        facts.append("global")
    elif memory.project is not None and memory.project != here:
        facts.append(f"project {quote(names.get(memory.project, 'unknown'))}")
    facts += [quote(part) for part in (memory.area, memory.issue) if part]
    if memory.tags:
        facts.append("tags " + " ".join(quote(tag) for tag in memory.tags))
    if isinstance(memory.status, Superseded):
        facts.append("superseded")
    elif isinstance(memory.status, Conflicted):
        facts.append(f"conflicted: {quote(' '.join(memory.status.evidence.split())[:_EVIDENCE_CHARS])}")
    elif (state := status_name(memory.status)) != "active":
        facts.append(state)
    if doubt is not None:
        facts.append(check_mark(doubt))
    lines = [line[: len(line) - len(line.lstrip())] + quote(line) for line in memory.content.splitlines()]
    return "\n".join([f"#{memory.n} ({', '.join(facts)})", *(f"  {line}" for line in lines)])
