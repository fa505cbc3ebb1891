"""Looking at a session's observations over the in-memory store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from backstory.adapters.stores.memory import open_memory_store
from backstory.domain.conversation import Message, Session
from backstory.domain.digest import DigestState, DigestUpdate, Piece, Strategy
from backstory.domain.ids import ProjectId, SessionId
from backstory.domain.observation import ObservationPolicy
from backstory.domain.observation_cursor import CursorMode
from backstory.domain.scope import Viewer
from backstory.entrypoints.drive import drive
from backstory.errors import BackstoryError, InputError, NotFound
from backstory.services.observation import Observing
from backstory.services.observation_lookup import Amount, ObservationLookup
from backstory.testing.fakes import ORCHARD
from tests.observed import MORNING, SESSION, WordTokens, message, of_words, piece

HERE = Viewer(project=ORCHARD, session=SessionId("ses_now"))
INSIDE = Viewer(project=ORCHARD, session=SESSION)
FIRST = piece(1, "Date: Mar 2, 2026\n* 🔴 (09:15) pears to store 2", 0, 1, tokens=40)
SECOND = piece(2, "* ✅ (09:17) pears moved", 2, tokens=20)


class Shed:
    """A store with one session, observed up to message 2 of 4."""

    def __init__(self) -> None:
        self.backend = open_memory_store()
        observing = Observing(None, policy=ObservationPolicy(message_tokens=100), tokens=WordTokens())
        self.lookup = ObservationLookup(self.backend.digests, self.backend.conversations, observing)

    def tell(self, messages: Sequence[Message], *, project: ProjectId | None = ORCHARD) -> None:
        session = Session(
            id=SESSION, project=project, host="opencode", directory="/orchard", created_at=MORNING, updated_at=MORNING
        )
        drive(self.backend.conversations.put_session(session))
        drive(self.backend.conversations.put_messages(messages))

    def note(self, *pieces: Piece, shown: Sequence[str] = (), strategy: Strategy = Strategy.OBSERVATIONS) -> None:
        state = DigestState(
            session=SESSION,
            strategy=strategy,
            shown=tuple(shown),
            current_task="Primary: pears",
            last_cycle="observe",
            updated_at=MORNING,
        )
        assert drive(self.backend.digests.apply(DigestUpdate(state=state, added=pieces)))


@pytest.fixture
def shed() -> Shed:
    shed = Shed()
    shed.tell([of_words(0, 20), of_words(1, 20), of_words(2, 20), of_words(3, 15), of_words(4, 12)])
    return shed


def test_the_log_is_what_was_noted_in_order(shed: Shed) -> None:
    shed.note(FIRST, SECOND)
    log = drive(shed.lookup.log(HERE, SESSION))
    assert log.text == f"{FIRST.text}\n\n{SECOND.text}"
    assert (log.session, log.current_task, log.suggested_response) == (SESSION, "Primary: pears", None)


def test_without_a_name_the_session_that_asks_is_meant(shed: Shed) -> None:
    shed.note(FIRST)
    assert drive(shed.lookup.log(INSIDE)).text == FIRST.text
    assert drive(shed.lookup.log(HERE)).text == ""


def test_the_status_says_how_far_observing_has_come(shed: Shed) -> None:
    shed.note(FIRST, SECOND, shown=["obs0_001"])
    status = drive(shed.lookup.status(INSIDE))
    assert status.log_tokens == WordTokens().count(f"{FIRST.text} {SECOND.text}")
    assert (status.last_message, status.last_message_at) == ("m2", message(2).created_at)
    assert status.mode is CursorMode.ID
    assert status.whole == Amount(messages=5, tokens=87)
    assert status.verbatim == Amount(messages=3, tokens=47)
    assert status.unobserved == Amount(messages=2, tokens=27)
    assert status.state is not None
    assert status.state.last_cycle == "observe"


def test_a_session_without_observations_has_a_status_too(shed: Shed) -> None:
    status = drive(shed.lookup.status(INSIDE))
    assert (status.state, status.log.text, status.mode) == (None, "", CursorMode.NONE)
    assert status.whole == status.verbatim == status.unobserved == Amount(messages=5, tokens=87)


def test_undone_messages_count_nowhere(shed: Shed) -> None:
    drive(shed.backend.conversations.mark_removed(message(4).id, at=MORNING))
    assert drive(shed.lookup.status(INSIDE)).whole == Amount(messages=4, tokens=75)


def test_a_tree_is_no_observation(shed: Shed) -> None:
    shed.note(replace(FIRST, id="node0_001", strategy=Strategy.TREE), strategy=Strategy.TREE)
    assert drive(shed.lookup.log(INSIDE)).text == ""
    assert drive(shed.lookup.status(INSIDE)).state is None


@pytest.mark.parametrize("name", ["../ses_1", "ses 1", "", "ses\n1", "a" * 201, "/etc/passwd", "сессия", ".", "-x"])
def test_a_name_that_is_no_session_id_is_refused(shed: Shed, name: str) -> None:
    with pytest.raises(InputError) as refused:
        drive(shed.lookup.log(HERE, name))
    assert refused.value.field == "session_id"


def test_a_call_from_no_session_must_name_one(shed: Shed) -> None:
    with pytest.raises(InputError, match="no session is named"):
        drive(shed.lookup.log(Viewer(project=ORCHARD)))


ELSEWHERE = ProjectId("01BX5ZZKBKACTAV9WEVGEMMVRX")


@pytest.mark.parametrize(
    ("viewer", "wanted"),
    [
        (Viewer(project=ELSEWHERE, session=SessionId("ses_now")), SESSION),
        (Viewer(project=None, session=SessionId("ses_now")), SESSION),
        (HERE, SessionId("ses_nobody_knows")),
    ],
)
def test_sessions_of_other_projects_are_not_found_just_like_unknown_ones(
    shed: Shed, viewer: Viewer, wanted: SessionId
) -> None:
    shed.note(FIRST)
    messages = set()
    for ask in (shed.lookup.log, shed.lookup.status):
        with pytest.raises(BackstoryError) as refused:
            drive(ask(viewer, wanted))
        assert isinstance(refused.value, NotFound)
        messages.add(str(refused.value).replace(wanted, "X"))
    assert messages == {"there is no session X in this project"}


def test_a_session_outside_every_project_is_its_own_alone(shed: Shed) -> None:
    shed.tell([], project=None)
    shed.note(FIRST)
    assert drive(shed.lookup.log(Viewer(project=None, session=SESSION))).text == FIRST.text
    with pytest.raises(NotFound):
        drive(shed.lookup.log(Viewer(project=None, session=SessionId("ses_now")), SESSION))
