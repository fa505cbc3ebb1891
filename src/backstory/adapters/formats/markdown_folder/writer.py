"""Write the Markdown folder: a page for each kind in each project, one for each session, an index; only over ours."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from backstory.adapters.formats.markdown_folder.pages import (
    MARK,
    Entry,
    index_page,
    memory_page,
    session_page,
    title_of,
)
from backstory.adapters.formats.markdown_folder.safe_text import inline, slug
from backstory.adapters.formats.outside_files import entries, is_folder, is_plain, read_start
from backstory.adapters.formats.written_files import FolderDraft
from backstory.domain.conversation import Session
from backstory.domain.ids import ProjectId
from backstory.domain.memory import Kind, Memory
from backstory.errors import InputError
from backstory.ports.formats import Exported, Written

INDEX = "README.md"
EVERYWHERE = "everywhere"
SESSIONS = "sessions"
_DEPTH = 3


class MarkdownFolder:
    """The same memories give the same bytes. Pages of an earlier export are replaced or, where nothing is left for
    them, removed; a file that is not ours is never touched, and one that stands in a page's place is an InputError."""

    name = "markdown"

    def write(self, exported: Exported, target: Path) -> Written:
        written = Written()
        folders = _folders(exported)
        with FolderDraft(target) as draft:
            pages = _Pages(draft, target)
            memories = [
                pages.put(f"{folders[project]}/{kind.value}.md", _title(kind, project, exported), len(page), text)
                for (project, kind), page in _sorted_pages(exported)
                if (text := memory_page(kind, _name(project, exported), page))
            ]
            sessions = []
            for told in exported.sessions:
                session = told.session
                path = _session_path(session)
                text = session_page(told, _name(session.project, exported))
                title = inline(session.title or "") or "A session without a title"
                sessions.append(pages.put(path, f"{session.created_at:%Y-%m-%d}, {title}", len(told.messages), text))
                if told.digest is not None:
                    written.left_out = ["summaries and observations of sessions: what they were made from is there"]
            sessions.sort(key=lambda entry: entry.path)
            pages.put(INDEX, "", 0, index_page(memories, sessions))
        _remove_old(target, keep=pages.paths)
        written.files = draft.files
        written.memories, written.sessions = len(exported.memories), len(sessions)
        return written


class _Pages:
    """The pages of one export, none of them over a file of somebody else's."""

    def __init__(self, draft: FolderDraft, target: Path) -> None:
        self._draft = draft
        self._target = target
        self.paths: set[str] = set()

    def put(self, path: str, title: str, count: int, text: str) -> Entry:
        """Raises InputError where something that is not ours stands in its place, or two pages would be one file."""
        if path in self.paths:
            raise InputError(f"two pages would be {path}", field="target")
        place = self._target / path
        if os.path.lexists(place) and not _is_ours(place):
            raise InputError(f"{place} is there and was not written by this export", field="target")
        if place.parent != self._target and os.path.lexists(place.parent) and not is_folder(place.parent):
            raise InputError(f"{place.parent} is no folder", field="target")
        self._draft.put(path, text.encode("utf-8", "replace"))
        self.paths.add(path)
        return Entry(path=path, title=title, count=count)


def _sorted_pages(exported: Exported) -> list[tuple[tuple[ProjectId | None, Kind], list[Memory]]]:
    """Those of every project first, then by the projects' names; the kinds in their order; the oldest memory first."""
    pages: defaultdict[tuple[ProjectId | None, Kind], list[Memory]] = defaultdict(list)
    for memory in sorted(exported.memories, key=lambda memory: (memory.times.learned, memory.id)):
        pages[memory.project, memory.kind].append(memory)
    kinds = list(Kind)

    def place(page: tuple[tuple[ProjectId | None, Kind], list[Memory]]) -> tuple[bool, str, str, int]:
        project, kind = page[0]
        return project is not None, _name(project, exported).casefold(), project or "", kinds.index(kind)

    return sorted(pages.items(), key=place)


def _folders(exported: Exported) -> dict[ProjectId | None, str]:
    """A folder for each project, by its name; projects of one name are told apart by the end of their ids."""
    projects = sorted({memory.project for memory in exported.memories if memory.project is not None})
    slugs = {project: slug(_name(project, exported), otherwise="project") for project in projects}
    taken = [EVERYWHERE, SESSIONS, *slugs.values()]
    folders: dict[ProjectId | None, str] = {None: EVERYWHERE}
    for project, name in slugs.items():
        alone = taken.count(name) == 1
        folders[project] = name if alone else f"{name}-{slug(project, otherwise='x')[-12:].strip('-')}"
    return folders


def _name(project: ProjectId | None, exported: Exported) -> str:
    if project is None:
        return ""
    known = exported.projects.get(project)
    return known.name if known is not None else project


def _title(kind: Kind, project: ProjectId | None, exported: Exported) -> str:
    name = inline(_name(project, exported))
    return f"{name}: {title_of(kind)}" if name else f"Every project: {title_of(kind)}"


def _session_path(session: Session) -> str:
    """By the day and the id, of which the end tells apart what the rest of the name does not."""
    digest = hashlib.sha256(session.id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{SESSIONS}/{session.created_at:%Y-%m-%d}-{slug(session.id, otherwise='session')}-{digest}.md"


def _remove_old(target: Path, *, keep: set[str]) -> None:
    """Remove pages of an earlier export, and folders that are empty without them."""
    for path in list(_pages_below(target, depth=_DEPTH)):
        if path.relative_to(target).as_posix() not in keep:
            path.unlink(missing_ok=True)
            if path.parent != target and not any(path.parent.iterdir()):
                path.parent.rmdir()


def _pages_below(folder: Path, *, depth: int) -> Iterator[Path]:
    for path in entries(folder):
        if is_folder(path) and depth > 1:
            yield from _pages_below(path, depth=depth - 1)
        elif path.suffix == ".md" and _is_ours(path):
            yield path


def _is_ours(path: Path) -> bool:
    return is_plain(path) and read_start(path, size=len(MARK)) == MARK.encode()
