"""What a person decides about projects: each move whole, previewed, and with a way back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.admission import TextLimits
from backstory.domain.conversation import Session
from backstory.domain.history import Author
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.memory import Memory, Superseded, Visibility
from backstory.domain.project import ProjectSighting
from backstory.domain.provenance import Origin, Provenance
from backstory.domain.scope import Audience, Viewer
from backstory.entrypoints.drive import drive
from backstory.errors import AmbiguousMatch, InputError, NotFound
from backstory.ports.backend import Backend
from backstory.services.projects import NAME_MAX_CHARS, Projects
from backstory.services.reference import Reference
from backstory.services.remember import Draft, Remember
from backstory.testing.fakes import START, FakeClock, SequentialIds, ulid

FERRY, QUAY = ProjectId(ulid(1, series=2)), ProjectId(ulid(2, series=2))


class Office:
    """Two projects, ferry with two folders, and the services that know them."""

    def __init__(self) -> None:
        self.backend: Backend = open_memory_store()
        clock, ids = FakeClock(), SequentialIds()
        reference = Reference(self.backend.memories, self.backend.projects, clock=clock)
        self.write = Remember(self.backend.memories, reference, clock=clock, ids=ids, limits=TextLimits())
        self.projects = Projects(self.backend, clock=clock, ids=ids)
        self.see("ferry", FERRY, "git:/ferry/.git", "dir:/ferry")
        self.see("ferry", FERRY, "git:/ferry/.git", "git:/fork/.git", "dir:/fork", "clone:c1 h/x")
        self.see("quay", QUAY, "dir:/quay")

    def see(self, name: str, project: ProjectId, *aliases: str) -> None:
        sighting = ProjectSighting(name=name, root=f"/{name}", aliases=aliases)
        drive(self.backend.projects.identify(sighting, now=START, new_id=project))

    def session(self, name: str, directory: str, project: ProjectId = FERRY) -> SessionId:
        session = Session(
            id=SessionId(name), project=project, host="h", directory=directory, created_at=START, updated_at=START
        )
        drive(self.backend.conversations.put_session(session))
        return session.id

    def remember(self, content: str, project: ProjectId, **fields: object) -> Memory:
        session = fields.pop("session", None)
        draft = Draft(content=content, origin=Origin.USER, provenance=Provenance(session=session), **fields)  # type: ignore[arg-type]
        done = self.write.remember(draft, viewer=self.person(project, session), author=Author.USER)  # type: ignore[arg-type]
        return drive(done).memory

    def person(self, project: ProjectId, session: SessionId | None = None) -> Viewer:
        return Viewer(project=project, session=session, audience=Audience.PERSON)

    def owner(self, memory: Memory) -> ProjectId | None:
        return drive(self.backend.memories.get([memory.id]))[memory.id].project

    def folders(self, project: ProjectId) -> set[str]:
        return {alias.name for alias in drive(self.backend.projects.aliases()) if alias.project == project}


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_merge_moves_everything_and_undo_brings_it_back(office: Office) -> None:
    ran = office.session("s1", "/ferry/src")
    kept = [
        office.remember("The ferry leaves at nine", FERRY, session=ran),
        office.remember("Only for this session, tide is low", FERRY, session=ran, visibility=Visibility.SESSION),
        office.remember("Everybody waves at ferries", FERRY, visibility=Visibility.GLOBAL),
    ]
    forgotten = office.remember("The old timetable hangs on the door", FERRY)
    drive(office.write.forget([forgotten.id], viewer=office.person(FERRY), author=Author.USER))
    plan = drive(office.projects.plan_merge("ferry", "quay"))
    assert {memory.n for memory in plan.memories} == {memory.n for memory in (*kept, forgotten)}
    assert (plan.sessions, len(plan.aliases), plan.doubles) == ((ran,), 5, ())
    assert {office.owner(memory) for memory in kept} == {FERRY}

    _, change = drive(office.projects.merge("ferry", "quay", author=Author.USER))
    assert change is not None
    assert {office.owner(memory) for memory in (*kept, forgotten)} == {QUAY}
    assert office.folders(FERRY) == set()
    assert [card.project.id for card in drive(office.projects.cards())] == [QUAY]
    assert change.reason == "project ferry merged into quay"

    drive(office.write.undo(change.id, viewer=office.person(QUAY), author=Author.USER))
    assert {office.owner(memory) for memory in (*kept, forgotten)} == {FERRY}
    assert len(office.folders(FERRY)) == 5
    session = drive(office.backend.conversations.session(ran))
    assert session is not None
    assert session.project == FERRY


def test_a_memory_that_both_have_stays_once(office: Office) -> None:
    moved = office.remember("Ropes are checked on Mondays", FERRY)
    kept = office.remember("ropes are  checked on mondays", QUAY)
    plan, _ = drive(office.projects.merge("ferry", "quay", author=Author.USER))
    assert [(one.n, other.n) for one, other in plan.doubles] == [(moved.n, kept.n)]
    stored = drive(office.backend.memories.get([moved.id]))[moved.id]
    assert isinstance(stored.status, Superseded)
    assert stored.status.by == kept.id


def test_a_project_without_memories_can_be_merged(office: Office) -> None:
    _, change = drive(office.projects.merge("quay", "ferry", author=Author.USER))
    assert change is None
    assert "dir:/quay" in office.folders(FERRY)


def test_a_split_takes_the_sessions_of_the_folder_and_what_was_said_in_them(office: Office) -> None:
    there, here = office.session("s1", "/fork/deep"), office.session("s2", "/ferry")
    office.session("s3", "/forklift")
    going = office.remember("The fork is painted green", FERRY, session=there)
    staying = [
        office.remember("The ferry is painted white", FERRY, session=here),
        office.remember("Paint is kept in the shed", FERRY),
    ]
    plan, change = drive(office.projects.split("ferry", alias="/fork", name="fork", author=Author.USER))
    assert [memory.n for memory in plan.memories] == [going.n]
    assert plan.sessions == (there,)
    fork = plan.target.id
    assert office.owner(going) == fork
    assert {office.owner(memory) for memory in staying} == {FERRY}
    assert office.folders(fork) == {"git:/fork/.git", "dir:/fork"}
    assert drive(office.projects.find("fork")).root == "/fork"
    assert change is not None
    drive(office.write.undo(change.id, viewer=office.person(fork), author=Author.USER))
    assert office.owner(going) == FERRY
    assert office.folders(fork) == set()


@pytest.mark.parametrize("alias", ["/fork", "dir:/fork", "git:/fork/.git", "/fork/.git"])
def test_a_folder_is_split_off_by_any_of_its_names(office: Office, alias: str) -> None:
    plan = drive(office.projects.plan_split("ferry", alias=alias, name="fork"))
    assert {item.name for item in plan.aliases} == {"git:/fork/.git", "dir:/fork"}


def test_what_cannot_be_split_is_refused_with_the_reason(office: Office) -> None:
    for alias, error, words in (
        ("/nowhere", NotFound, "no alias"),
        ("clone:c1 h/x", InputError, "no folder"),
    ):
        with pytest.raises(error, match=words):
            drive(office.projects.plan_split("ferry", alias=alias, name="x"))
    with pytest.raises(InputError, match="only folder") as caught:
        drive(office.projects.plan_split("quay", alias="/quay", name="x"))
    assert caught.value.field == "alias"


@pytest.mark.parametrize("name", ["", "  \n", "x" * (NAME_MAX_CHARS + 1), "a\u202eb"])
def test_an_impossible_name_is_refused_by_field_and_limit(office: Office, name: str) -> None:
    for call in (office.projects.rename("ferry", name), office.projects.plan_split("ferry", alias="/fork", name=name)):
        with pytest.raises(InputError) as caught:
            drive(call)
        assert caught.value.field == "name"


def test_a_project_cannot_be_merged_into_itself(office: Office) -> None:
    with pytest.raises(InputError, match="itself") as caught:
        drive(office.projects.merge("ferry", FERRY.lower(), author=Author.USER))
    assert caught.value.field == "into"


def test_a_project_is_found_by_id_folder_or_a_name_of_its_own(office: Office) -> None:
    for ref in (FERRY, FERRY.lower(), "/ferry", "/fork", "git:/fork/.git", "ferry"):
        assert drive(office.projects.find(ref)).id == FERRY
    with pytest.raises(NotFound, match="there is no project"):
        drive(office.projects.find("nobody"))
    before, after = drive(office.projects.rename("quay", "ferry"))
    assert (before.name, after.name) == ("quay", "ferry")
    with pytest.raises(AmbiguousMatch, match="2 projects") as caught:
        drive(office.projects.find("ferry"))
    assert set(caught.value.candidates) == {FERRY, QUAY}
    plan = drive(office.projects.plan_split(FERRY, alias="/fork", name="ferry"))
    assert len(plan.namesakes) == 2


def test_a_card_counts_what_is_current_and_the_projects_own(office: Office) -> None:
    office.session("s1", "/ferry")
    gone = office.remember("A buoy is missing", FERRY)
    drive(office.write.forget([gone.id], viewer=office.person(FERRY), author=Author.USER))
    office.remember("The anchor weighs a ton", FERRY)
    office.remember("Tides follow the moon", FERRY, visibility=Visibility.GLOBAL)
    card = drive(office.projects.card("ferry"))
    assert (card.memories, card.sessions, len(card.aliases), card.last_seen) == (1, 1, 5, START)
    assert drive(office.projects.card("quay")).memories == 0


def test_a_memory_that_comes_in_between_is_taken_along(office: Office) -> None:
    office.remember("The gangway is steep", FERRY)
    real = office.backend.projects.move
    late: list[Memory] = []

    async def move(request: object, *, now: object) -> object:
        if not late:
            late.append(office.remember("The gangway was replaced", FERRY))
        return await real(request, now=now)  # type: ignore[arg-type]

    office.projects._backend = replace(office.backend, projects=_Registry(office.backend.projects, move))  # type: ignore[arg-type]
    drive(office.projects.merge("ferry", "quay", author=Author.USER))
    assert office.owner(late[0]) == QUAY


class _Registry:
    """A registry that lets somebody else write first."""

    def __init__(self, registry: object, move: object) -> None:
        self._registry = registry
        self.move = move

    def __getattr__(self, name: str) -> object:
        return getattr(self._registry, name)
