"""Which project a folder belongs to: strong evidence joins, ambiguous evidence makes a candidate.

Values in, values out; looking at folders is elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from backstory.domain.ids import ProjectId
from backstory.domain.project import CLONE, FOLDER, GIT, PAST, Alias, ProjectSighting, remotes, roots


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Another project that may be the same, and why. ``here`` and ``there`` are the aliases that suggest it."""

    project: ProjectId
    reason: str
    here: str
    there: str


def recognised(seen: ProjectSighting, known: Iterable[Alias]) -> ProjectSighting | None:
    """The sighting by which a project is known for certain, without a deeper look; None where it takes one.

    A folder that was a project before its parent became a repository stays one: the nearest known folder counts. Else
    the git directory (outside git, the folder) must be known, and the same thing must still stand there.
    """
    by_name = {alias.name: alias for alias in known}
    for place in seen.inner:
        if place in by_name and is_same_thing(by_name[place].stamp, seen.stamp(place)):
            folder = place.partition(":")[2]
            name = folder.replace("\\", "/").rstrip("/").rpartition("/")[2] or folder
            return replace(seen, name=name, root=folder, aliases=(place,), looked="", inner=())
    first = by_name.get(seen.aliases[0])
    return seen if first is not None and is_same_thing(first.stamp, seen.stamp(first.name)) else None


def is_stale(seen: ProjectSighting, known: Iterable[Alias]) -> bool:
    """Whether the traits of a known git directory were read in another state than it has now."""
    return any(alias.name == seen.git and alias.looked != seen.looked for alias in known)


def kept_roots(seen: ProjectSighting, known: Iterable[Alias]) -> frozenset[str]:
    """Root commits that need no second look: only the settings of this git directory changed since they were read."""
    for alias in known:
        same_history = alias.looked.partition(":")[0] == seen.looked.partition(":")[0]
        if alias.name == seen.git and same_history and is_same_thing(alias.stamp, seen.stamp(alias.name)):
            return roots(alias.traits)
    return frozenset()


def clone_aliases(traits: tuple[str, ...]) -> tuple[str, ...]:
    """Aliases that all clones of one remote have: each root commit together with each remote."""
    commits = sorted(root.partition(":")[2] for root in roots(traits))
    urls = sorted(remote.partition(":")[2] for remote in remotes(traits))
    return tuple(f"{CLONE}:{commit} {url}" for commit in commits for url in urls)


def places_in_question(seen: ProjectSighting, known: Sequence[Alias]) -> list[Alias]:
    """The git directories of which ``decide`` must know whether they are gone from their places."""
    mine = roots(seen.traits)
    related = {alias.project for alias in known if _is_moved(alias, seen) or mine & roots(alias.traits)}
    return [alias for alias in known if alias.project in related and alias.kind == GIT]


def decide(seen: ProjectSighting, known: Sequence[Alias], *, gone: Collection[str]) -> ProjectSighting:
    """A sighting that was looked into (``traits``), with what a registry needs to join it, or to make a project of it.

    In this order: the place is known and the same thing stands there; its git directory was moved here; it is a clone
    with the same root commit and remote; it has the root commit of a project whose places are all gone, and neither
    names a remote. Everything else is a project of its own. ``known`` are all aliases, ``gone`` those among
    ``places_in_question`` that are not there any more.
    """
    owner, taken = _at_known_places(seen, known)
    aliases = tuple(dict.fromkeys((*seen.aliases, *clone_aliases(seen.traits or ()))))
    by_name = {alias.name: alias for alias in known}
    owner = owner or _moved_from(seen, known, gone)
    owner = owner or next((by_name[name].project for name in aliases if name in by_name and name not in taken), None)
    owner = owner or _left_behind(seen, known, gone)
    return replace(seen, aliases=aliases, taken=tuple(taken), joins=owner)


def _at_known_places(seen: ProjectSighting, known: Sequence[Alias]) -> tuple[ProjectId | None, list[str]]:
    """Whose place this is, and which aliases are of things that stood here before."""
    by_name = {alias.name: alias for alias in known}
    owner: ProjectId | None = None
    displaced: set[ProjectId] = set()
    taken = []
    for alias in (by_name[name] for name in seen.aliases if name in by_name):
        if alias.kind == GIT and not _is_same_repository(alias, seen):
            displaced.add(alias.project)
            taken.append(alias.name)
        elif alias.kind == FOLDER and (alias.project in displaced or not _is_same_folder(alias, seen, known)):
            taken.append(alias.name)
        else:
            owner = owner or alias.project
    return owner, taken


def _is_same_repository(alias: Alias, seen: ProjectSighting) -> bool:
    """Whether what stands at the path of a git directory is what stood there: itself, restored, or cloned again."""
    if is_same_thing(alias.stamp, seen.stamp(alias.name)):
        return True
    then, now = roots(alias.traits), roots(seen.traits)
    urls_then, urls_now = remotes(alias.traits), remotes(seen.traits)
    if then & now:
        return not (urls_then and urls_now) or bool(urls_then & urls_now)
    return not (then and now) and bool(urls_then & urls_now)


def _is_same_folder(alias: Alias, seen: ProjectSighting, known: Sequence[Alias]) -> bool:
    """Whether it is the same folder. A project that never had a repository goes by the path alone, for as long as there
    is none: not every file system keeps its inode numbers."""
    if is_same_thing(alias.stamp, seen.stamp(alias.name)):
        return True
    return seen.git is None and not any(other.kind == GIT and other.project == alias.project for other in known)


def _moved_from(seen: ProjectSighting, known: Sequence[Alias], gone: Collection[str]) -> ProjectId | None:
    for alias in known:
        if _is_moved(alias, seen) and (alias.kind == PAST or alias.name in gone):
            return alias.project
    return None


def _is_moved(alias: Alias, seen: ProjectSighting) -> bool:
    """Whether the git directory that is seen is one that was known elsewhere.

    The time at which it was made tells it from another that was given the same inode.
    """
    if seen.git is None or not alias.place.startswith(f"{GIT}:") or alias.name == seen.git:
        return False
    return alias.stamp == seen.stamp(seen.git) and _made(alias.stamp) != ""


def _left_behind(seen: ProjectSighting, known: Sequence[Alias], gone: Collection[str]) -> ProjectId | None:
    if remotes(seen.traits):
        return None
    sharing = {alias.project for alias in known if roots(alias.traits) & roots(seen.traits)}
    left = [
        project
        for project in sharing
        if all(
            (alias.kind != GIT or alias.name in gone) and not remotes(alias.traits)
            for alias in known
            if alias.project == project
        )
    ]
    return left[0] if len(sharing) == len(left) == 1 else None


def is_same_thing(stored: str, now: str) -> bool:
    """Whether two stamps at one path are of one thing; where one is not known, the path counts.

    Devices get new numbers at a restart, and inodes on some file systems: a git directory is told by when it was made.
    """
    if not stored or not now:
        return True
    if _made(stored) and _made(now):
        return _made(stored) == _made(now)
    return stored.split(":")[1:2] == now.split(":")[1:2]


def _made(stamp: str) -> str:
    """The last of ``device:inode:made``; a folder's stamp has none."""
    return stamp.partition(":")[2].partition(":")[2]


def candidates(project: ProjectId, known: Sequence[Alias]) -> tuple[Candidate, ...]:
    """Other projects that may be this one, each once with its best reason, by id."""
    mine = [alias for alias in known if alias.project == project]
    others = [alias for alias in known if alias.project != project]
    repositories = {alias.project for alias in known if alias.kind == GIT}
    found: dict[ProjectId, tuple[int, Candidate]] = {}
    for here in mine:
        for there in others:
            for rank, reason in _relations(here, there, repositories):
                candidate = Candidate(project=there.project, reason=reason, here=here.name, there=there.name)
                if there.project not in found or rank < found[there.project][0]:
                    found[there.project] = rank, candidate
    return tuple(found[key][1] for key in sorted(found))


def _relations(here: Alias, there: Alias, repositories: Collection[ProjectId]) -> Iterator[tuple[int, str]]:
    """What two aliases of two projects have in common, each with its rank, 0 for the strongest."""
    same_root = roots(here.traits) & roots(there.traits)
    same_remote = remotes(here.traits) & remotes(there.traits)
    if same_root and same_remote:
        yield 0, "the same root commit and the same remote"
    elif same_root and remotes(here.traits) and remotes(there.traits):
        yield 1, "the same root commit, but another remote: a fork, or both made from one template"
    elif same_root:
        yield 1, "the same root commit, but no remote to compare: a copy, or a local clone"
    elif same_remote and roots(here.traits) and roots(there.traits):
        yield 2, "the same remote, but another root commit"
    elif same_remote:
        yield 2, "the same remote, but no root commit to compare: a shallow or an empty clone"
    if here.stamp and here.stamp == there.stamp and here.place != there.place:
        yield 3, "the same folder on the disk: it may have been moved"
    if PAST in (here.kind, there.kind) and here.place == there.place:
        yield 4, "it stood in the same folder before"
    if _is_inside(here, there) and there.project in repositories and here.project not in repositories:
        yield 5, "this folder lies inside that repository"
    elif _is_inside(there, here) and here.project in repositories and there.project not in repositories:
        yield 5, "that folder lies inside this repository"


def _is_inside(inner: Alias, outer: Alias) -> bool:
    if inner.kind != FOLDER or outer.kind != FOLDER or inner.path is None or outer.path is None:
        return False
    return inner.path.startswith(outer.path.rstrip("/") + "/")
