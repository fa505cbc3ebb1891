"""Erasing on the ref and in the file beside it as one: the file's transaction, and what follows on the ref."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from backstory.adapters.stores.gitbranch import erased_commits, index
from backstory.adapters.stores.gitbranch.erased_files import ErasedFiles, lines_of
from backstory.adapters.stores.gitbranch.erased_objects import existing, leave_log, refs_with, remove_unreachable
from backstory.adapters.stores.gitbranch.git import Git, GitFailed
from backstory.adapters.stores.gitbranch.publishing import publish
from backstory.adapters.stores.gitbranch.reference import Commit, Moved, Reference, Written
from backstory.adapters.stores.gitbranch.rewriting import Rewriting, rewritten, write_objects
from backstory.adapters.stores.sqlite.erased_rows import EVER, erase
from backstory.adapters.stores.sqlite.receipts import put_receipt, receipt_of
from backstory.adapters.stores.sqlite.rows import memory_from_image
from backstory.domain.erasure import Rewrite
from backstory.domain.evidence_passages import PassageLimits
from backstory.domain.ids import MemoryId, ProjectId
from backstory.domain.memory import Memory
from backstory.errors import StoreBusy, StoreDamaged
from backstory.ports.erasing import Erasure, Found, Progress

_OURS = "refs/backstory/"
_ASIDE = f"{_OURS}erasing"  # holds what is written before the ref moves, so that nobody collects it as garbage
_HELD = (
    "old commits that are or were checked out in {folder}: the log of HEAD leads to them, and perhaps to work of yours "
    "that nothing else does; `git reflog expire --expire-unreachable=now HEAD` empties it, then `backstory erase`, "
    "without naming anything, removes them"
)
_COPIES = "clones of this repository that have the ref, and hosts that keep unreachable commits for a while"


def look_at_history(reference: Reference, rewrite: Rewrite, told: Callable[[Found], None]) -> None:
    """Tell every version of a file and every message on the ref that would change."""
    tip = reference.tip()
    if tip is None:
        return
    files = ErasedFiles(memories=(), lines=(), rewrite=rewrite, at=EVER)
    for item in rewritten(reference, tip, files.transform, rewrite).altered:
        before, after = (data.decode("utf-8", "replace") for data in (item.before, item.after))
        told(Found(place="commits", where=item.where, before=before, after=after))


def erase_with_history(
    raw: sqlite3.Connection, reference: Reference, erasure: Erasure, limits: PassageLimits, done: Progress,
    *, project: ProjectId | None,
) -> dict[str, int]:  # fmt: skip
    """Erase in the file within the transaction that runs, write the ref's new history beside the old one, and note
    which commits became which. The ref moves afterwards, by ``move_on``."""
    tip = reference.tip()
    files = ErasedFiles(
        memories=frozenset(erasure.memories), lines=lines_of(_states(raw, erasure.memories)), rewrite=erasure.rewrite,
        at=erasure.at,
    )  # fmt: skip
    history = None if tip is None else rewritten(reference, tip, files.transform, erasure.rewrite)
    counts = erase(raw, erasure, limits, done)
    queue = index.take_queue(raw)
    if history is None or tip is None or not history.commits:
        if queue:
            publish(raw, reference, queue, project=project)
        return counts
    _write_aside(reference, history)
    index.set_tip(raw, reference.name, history.tip)
    final = publish(raw, _Aside(reference), queue, project=project) if queue else None
    raw.execute("DELETE FROM git_streams WHERE ref = ?", (reference.name,))
    _note(raw, reference, history, tip, final or history.tip)
    counts |= {"commits": len(history.commits)}
    put_receipt(raw, receipt_of(erasure, counts))
    return counts


def _write_aside(reference: Reference, history: Rewriting) -> None:
    """Write the new history and let a ref of our own name it. Somebody who collects garbage at the same moment may take
    away what nothing names yet; then nothing is erased."""
    write_objects(reference.git, history)
    reference.git.run("update-ref", _ASIDE, history.tip)
    names = list(history.objects)
    if any(found is None for found in reference.reader.read_all(names)):
        write_objects(reference.git, history)
        if any(found is None for found in reference.reader.read_all(names)):
            raise StoreBusy(f"objects of {reference.name} vanish as soon as they are written; is `git gc` running?")


class _Aside(Reference):
    """The ref as it will be: what is committed goes to a ref of our own, on top of the new history."""

    def __init__(self, real: Reference) -> None:
        super().__init__(real.git, real.reader, real.name)
        self._aside = Reference(real.git, real.reader, _ASIDE)

    def commit(self, commit: Commit, *, at: int | None = None) -> Written:
        return self._aside.commit(commit, at=at)


def _states(raw: sqlite3.Connection, memories: tuple[MemoryId, ...]) -> list[Memory]:
    """Every state of the memories that the history here knows, and those that they are in."""
    states = []
    for memory_id in memories:
        here = index.memory(raw, memory_id)
        if here is None:
            continue
        states.append(here)
        for images in raw.execute("SELECT before, after FROM change_edits WHERE n = ?", (here.n,)):
            for text in filter(None, images):
                try:
                    states.append(memory_from_image(text))
                except StoreDamaged:
                    continue  # its texts are rewritten all the same
    return states


def _note(raw: sqlite3.Connection, reference: Reference, history: Rewriting, tip: str, final: str) -> None:
    """Remember the commits, the old tip leading to the very end; and what remotes had of them."""
    erased_commits.note_rewritten(raw, reference.name, history.commits | {tip: final})
    for ref, remote in _tracking(reference.git, reference.name).items():
        had = reference.git.line("rev-parse", "--verify", f"{ref}^{{commit}}")
        if erased_commits.successor(raw, had) is not None or ref in refs_with(
            reference.git, next(iter(history.commits))
        ):
            erased_commits.note_left(raw, remote, reference.name, had)


def _tracking(git: Git, name: str) -> dict[str, str]:
    """The refs that remember what remotes had of a ref, each with its remote."""
    end = "/" + name.removeprefix("refs/")
    listed = git.run("for-each-ref", "--format=%(refname)", _OURS).decode("utf-8", "replace").split()
    return {ref: ref.removeprefix(_OURS).removesuffix(end) for ref in listed if ref.endswith(end)}


def move_on(raw: sqlite3.Connection, reference: Reference) -> bool:
    """Move the ref from an old commit to what it has become; False where it stands on none. Raises Moved."""
    tip = reference.tip()
    new = None if tip is None else erased_commits.successor(raw, tip)
    if tip is None or new is None:
        return False
    try:
        reference.git.run("update-ref", reference.name, new, tip)
    except GitFailed as error:
        raise Moved from error
    return True


def clean_history(raw: sqlite3.Connection, reference: Reference) -> tuple[tuple[str, ...], bool]:
    """Let go of the log of the ref, of what we remember of remotes, and of every object that only the old history leads
    to; where it may still be, and whether nothing of it is left in this repository's objects."""
    git = reference.git
    old = erased_commits.old_commits(raw, reference.name)
    if not old:
        return (), True
    leave_log(git, reference.name)
    reference.reader.close()  # it may have packs open
    git.run("update-ref", "-d", _ASIDE)
    for ref in set(_tracking(git, reference.name)) & set(refs_with(git, old)):
        git.run("update-ref", "-d", ref)
    others = refs_with(git, old)
    kept = remove_unreachable(git, old)
    remains = [
        f"the ref {ref} of {git.folder}, which leads to the old commits; it is yours to remove" for ref in others
    ]
    if kept:
        remains.append(f"{len(kept)} objects of {_kept_in(git)}")
    is_held = not (others or kept) and bool(existing(git, old))
    if is_held:
        remains.append(_HELD.format(folder=git.folder))
    remains += [_overwriting(git, reference.name, *left) for left in erased_commits.remotes_left(raw).items()]
    return (*remains, _COPIES), not (others or kept or is_held)


def _overwriting(git: Git, ref: str, remote: str, tip: str) -> str:
    """Which remote had it, and how to overwrite it; one that was given as an address is not known by a name."""
    is_named = remote in git.run("remote").decode("utf-8", "replace").split()
    what, where = (
        (f"the remote `{remote}`", remote) if is_named else ("a remote that was named by its address", "ADDRESS")
    )
    command = f"git push --force-with-lease={ref}:{tip} {where} {ref}"
    return f"{what}; overwrite it when everybody who uses it knows: {command}"


def _kept_in(git: Git) -> str:
    """Where objects are that git did not let go of."""
    file = git.common_dir / "objects" / "info" / "alternates"
    if file.exists():
        return f"{file.read_text('utf-8', 'replace').splitlines()[0]}, which this repository only borrows"
    return f"packs in {git.common_dir} that are marked to be kept"
