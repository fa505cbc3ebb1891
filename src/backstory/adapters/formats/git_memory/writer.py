"""Writes stores of opencode-plugin-git-memory: its refs, in a repository or in a bundle, and its exports."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from backstory.adapters.formats.git_memory.layout import FOLDER, MEMORY_REFS, Kind, repository
from backstory.adapters.formats.git_memory.lines import Form
from backstory.adapters.formats.git_memory.placement import PlacedFile, Placement, ref_of
from backstory.adapters.formats.git_memory.records import FORMAT, has_more_to_say
from backstory.adapters.formats.git_memory.repository import Repository, new_repository
from backstory.adapters.formats.outside_files import Unfit
from backstory.adapters.formats.written_files import FolderDraft
from backstory.adapters.stores.gitbranch.tree import is_shared
from backstory.domain.memory import Memory
from backstory.errors import InputError
from backstory.ports.formats import Exported, Written

BUNDLE, EXPORT = "git-memory.bundle", "export.jsonl"
"""What a folder gets that holds nothing else yet."""
_MESSAGE = "memory: export"
_FORMS = {".jsonl": Form.JSONL, ".json": Form.JSON, ".logfmt": Form.PLUGIN}
_Refs = Mapping[str, Mapping[str, bytes]]


class GitMemoryWriter:
    """One file by the end of its name, refs of a repository, or a folder with what came from one; else with a bundle
    and an export."""

    name = FORMAT

    def write(self, exported: Exported, target: Path) -> Written:
        """Write the memories. In a repository its refs get a commit each, and nothing else of it is touched.

        Raises InputError where git cannot write, or somebody else wrote to a ref at the same time.
        """
        placement = Placement(exported.memories, exported.keepsakes)
        written = Written(memories=len(exported.memories))
        git_folder = repository(target) if target.is_dir() else None
        try:
            if git_folder is not None:
                _into_repository(placement, target, git_folder, written)
            elif target.suffix in _FORMS:
                _only_listing(exported.memories, placement, target, written)
            elif target.suffix == ".bundle":
                _add_to_refs(exported.memories, placement, Kind.BUNDLE, target.name)
                _write_folder(placement, target.parent, written, only=target.name)
            else:
                _add_new(placement)
                _write_folder(placement, target, written)
        except Unfit as error:
            raise InputError(str(error), field="target") from error
        _tell(exported, placement, written)
        return written


def _into_repository(placement: Placement, target: Path, git_folder: Path, written: Written) -> None:
    placement.files = [_in_repository(file) for file in placement.files if file.kind is not Kind.EXPORT]
    _add_to_refs(placement.unplaced, placement, Kind.REPOSITORY, ".git")
    git = Repository(git_folder)
    for ref, files in _refs(placement.files).items():
        _commit(git, ref, files, at=placement.newest_s)
        written.files.append(git_folder / ref)
    trees = [file for file in placement.files if file.kind is Kind.WORK_TREE]
    if trees:
        with FolderDraft(target) as draft:
            for file in trees:
                draft.put(f"{FOLDER}/{file.path}", file.text.encode("utf-8", "replace"))
        written.files += draft.files


def _only_listing(memories: Sequence[Memory], placement: Placement, target: Path, written: Written) -> None:
    """One export. Where one of that form came in, it is that one as it is now."""
    form = _FORMS[target.suffix]
    listed = [file for file in placement.files if file.kind is Kind.EXPORT and file.form is form]
    if len(listed) == 1:
        placement.files = listed
        placement.add_listing(placement.unplaced, listed[0].path, form)
        listed[0].path = listed[0].source = target.name
    else:
        placement.files = []
        placement.add_listing(memories, target.name, form)
    _write_folder(placement, target.parent, written, only=target.name)


def _add_new(placement: Placement) -> None:
    """New memories stand where the store keeps its own: on its refs, in its files, or in its exports."""
    kinds = {file.kind for file in placement.files}
    new = placement.unplaced
    if bundle := next((file for file in placement.files if file.kind in (Kind.BUNDLE, Kind.REPOSITORY)), None):
        _add_to_refs(new, placement, bundle.kind, bundle.source)
    elif Kind.WORK_TREE in kinds:
        placement.add_by_day(new, Kind.WORK_TREE, FOLDER, "")
    elif Kind.EXPORT in kinds:
        for path, form in [(file.path, file.form) for file in placement.files]:
            placement.add_listing(new, path, form)
    else:
        _add_to_refs(new, placement, Kind.BUNDLE, BUNDLE)
        placement.add_listing(new, EXPORT, Form.JSONL)


def _add_to_refs(memories: Iterable[Memory], placement: Placement, kind: Kind, source: str) -> None:
    """What is private stays off refs: what was pushed once cannot be taken back."""
    by_ref: defaultdict[str, list[Memory]] = defaultdict(list)
    for memory in memories:
        if is_shared(memory):
            by_ref[ref_of(memory)].append(memory)
    for ref, found in by_ref.items():
        placement.add_by_day(found, kind, source, ref)


def _in_repository(file: PlacedFile) -> PlacedFile:
    """A ref's file where the ref is written into a repository; a branch there may be somebody's, so it is none."""
    if file.kind is Kind.WORK_TREE:
        return file
    file.kind, file.source = Kind.REPOSITORY, ".git"
    file.ref = f"{MEMORY_REFS}{file.ref.rpartition('/memory/')[2]}" if file.ref.startswith("refs/heads/") else file.ref
    return file


def _refs(files: Iterable[PlacedFile]) -> _Refs:
    found: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for file in files:
        if file.kind is not Kind.WORK_TREE:
            found[file.ref][f"{FOLDER}/{file.path}"] = file.text.encode("utf-8", "replace")
    return found


def _commit(git: Repository, ref: str, files: Mapping[str, bytes], *, at: int) -> None:
    """One commit with these files, unless the ref has them already."""
    standing = [file for file in git.files() if file.ref == ref]
    known = {f"{FOLDER}/{file.name}": content for file, content in zip(standing, git.contents(standing), strict=True)}
    if known != files:
        removed = [path for path in known if path not in files]
        git.commit(ref, files, removed=removed, at=max(at, 0), message=_MESSAGE)


def _write_folder(placement: Placement, folder: Path, written: Written, *, only: str | None = None) -> None:
    """The exports and files of a folder, and its bundles; ``only`` names the one that is wanted."""
    bundles: defaultdict[str, list[PlacedFile]] = defaultdict(list)
    with FolderDraft(folder) as draft:
        for file in placement.files:
            if file.kind in (Kind.BUNDLE, Kind.REPOSITORY):
                bundles[only or (file.source if file.kind is Kind.BUNDLE else BUNDLE)].append(file)
            elif only in (None, file.path):
                path = file.path if file.kind is Kind.EXPORT else f"{FOLDER}/{file.path}"
                draft.put(path, file.text.encode("utf-8", "replace"))
        for name, files in bundles.items() if only is None or only.endswith(".bundle") else ():
            draft.put(name, _bundle(_refs(files), at=placement.newest_s))
    written.files += draft.files


def _bundle(refs: _Refs, *, at: int) -> bytes:
    with new_repository() as git, tempfile.TemporaryDirectory(prefix="backstory-git-") as folder:
        for ref, files in refs.items():
            _commit(git, ref, files, at=at)
        place = Path(folder) / BUNDLE
        git.write_bundle(place, list(refs))
        return place.read_bytes()


def _tell(exported: Exported, placement: Placement, written: Written) -> None:
    """What of the memories is not in the export, in sentences."""
    private = sum(not is_shared(memory) for memory in placement.unplaced)
    more = sum(map(has_more_to_say, exported.memories))
    told = [
        (private, "private memories, which stay off refs"),
        (placement.unfit, "memories that no line can hold"),
        (more, "memories have a tier, a pin or an expiry, which the format has no place for"),
    ]
    written.left_out = [f"{count} {what}" for count, what in told if count]
