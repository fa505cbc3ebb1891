"""What once went wrong with long sessions in products like this one, each told in our own words and lived through here.

Every test runs the real services over a file, with a model that says what the test tells it to.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from backstory.adapters.stores.sqlite.store import open_sqlite
from backstory.adapters.tokens import EstimatedTokens
from backstory.domain.answers import Finish
from backstory.domain.conversation import Message, Part, typed_text
from backstory.domain.digest_plan import Listed
from backstory.domain.extract import EXTRACT
from backstory.domain.ids import MessageId, PartId, SessionId
from backstory.domain.observation import ObservationPolicy
from backstory.domain.summary_tree import PATIENCE, TreePolicy
from backstory.entrypoints.drive import drive
from backstory.entrypoints.opencode.host_messages import to_message
from backstory.errors import InputError, ModelOutputInvalid, ModelTimeout, ModelUnavailable
from backstory.ports.backend import Backend
from backstory.ports.text_models import TextAnswer, TextRequest
from backstory.services.digest_inspection import DigestInspection
from backstory.testing.fakes import START
from tests.long_host import EAGER, LongHost, listed, turn

pytestmark = pytest.mark.anyio

PLAIN = TreePolicy(max_raw=4, min_batch=2)
LONG = SessionId("ses_long")
BARN = (
    "Message {} is about the barn: the roof was measured, the beams were counted and the old nails pulled, until the"
    " evening bell rang and everybody went home."
)


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    backend = open_sqlite(tmp_path / "memory.db")
    yield backend
    drive(backend.memories.close())


def talk(count: int, session: str = "ses_long", *, text: Callable[[int], str] = BARN.format) -> list[Message]:
    """A conversation in which the user says every second message, and has just said the last."""
    return [turn(number, text(number), session, user=(count - 1 - number) % 2 == 0) for number in range(count)]


def notes(text: str) -> str:
    return f"<observations>\n- {text}\n</observations>"


# --- ids outlive a compaction -----------------------------------------------------------------------------------------


async def test_a_node_opens_after_the_host_compacted_and_was_started_anew(backend: Backend) -> None:
    host = LongHost(answers=("The barn was measured.",), policy=PLAIN, backend=backend)
    messages = talk(9)
    await host.work(messages)
    names = [piece.id for piece in await host.pieces(LONG)]
    assert names[0] in await host.injected(messages)
    await host.digesting.force(LONG)
    await host.work(messages)
    summary = [Listed(id=MessageId("sum"), role="assistant", summary=True), *listed(messages[-1:])]
    later = LongHost(policy=PLAIN, backend=backend, series=2)
    outlook = await later.requests.outlook(summary, session=LONG, project=None)
    assert outlook.replaced is None  # the host's summary was made of the digest
    opened = await later.lookup.open(LONG, names[0])
    assert BARN.format(0) in opened


async def test_a_node_that_a_parent_took_over_still_opens_and_one_that_is_gone_is_told(backend: Backend) -> None:
    policy = TreePolicy(max_raw=2, min_batch=2, compact_threshold=3, compact_branch=2)
    answers = ("The barn was measured.", "Beams were counted.", "Nails were pulled.", "All of it.")
    host = LongHost(answers=answers, policy=policy, backend=backend)
    messages = talk(9)
    await host.work(messages)
    covered = [piece for piece in await host.pieces(LONG) if piece.parent is not None]
    assert covered
    assert BARN.format(covered[0].start) in await host.lookup.open(LONG, covered[0].id)
    assert covered[0].parent is not None
    assert covered[0].id in await host.lookup.open(LONG, covered[0].parent)
    await host.undo(*messages)
    assert "no memory tree" in await host.lookup.open(LONG, covered[0].id)
    with pytest.raises(InputError):
        await host.lookup.open(LONG, "the node from before")


# --- forks ------------------------------------------------------------------------------------------------------------


def forked(messages: Sequence[Message], session: str = "ses_fork") -> list[Message]:
    """The messages as a host copies them: under new ids, in another session, at the same moments."""
    return [
        replace(
            message,
            id=MessageId(f"{session}-{number:03}"),
            session=SessionId(session),
            parts=tuple(replace(part, id=PartId(f"{session}-{part.id}")) for part in message.parts),
        )
        for number, message in enumerate(messages)
    ]


@pytest.mark.parametrize("policy", [PLAIN, EAGER], ids=["tree", "observations"])
async def test_a_fork_begins_without_a_digest_and_each_goes_its_own_way(
    policy: TreePolicy | ObservationPolicy, backend: Backend
) -> None:
    answer = "The barn was measured." if policy is PLAIN else notes("The barn was measured.")
    host = LongHost(answers=(answer,), policy=policy, backend=backend)
    parent = talk(7)
    await host.work(parent)
    before = await host.injected(parent)
    assert before
    kept = await host.digest(LONG)
    fork = forked(parent[:5])
    assert await host.injected(fork) == ""
    await host.work(fork)
    assert await host.digest(LONG) == kept
    assert await host.injected(parent) == before
    own = {source for piece in await host.pieces(fork[0].session) for source in piece.sources}
    assert own
    assert own <= {message.id for message in fork}


async def test_two_forks_of_one_session_do_not_digest_the_sub_agent_that_both_name(backend: Backend) -> None:
    told = {"state": {"status": "completed", "input": {"prompt": "count"}, "metadata": {"sessionId": "ses_child"}}}
    host = LongHost(answers=("Somebody counted the beams.",), policy=PLAIN, backend=backend)
    messages = talk(5)
    task = Part(id=PartId("task"), kind="tool", tool="task", text="twelve beams", detail=json.dumps(told))
    messages[1] = replace(messages[1], parts=(*messages[1].parts, task))
    await host.told(talk(6, "ses_child", text=lambda number: f"secret of the child {number}"))
    for session in ("ses_one", "ses_two"):
        await host.work(forked(messages, session))
        sources = {source for piece in await host.pieces(SessionId(session)) for source in piece.sources}
        assert sources
        assert all(source.startswith(session) for source in sources)
    assert await host.digest(SessionId("ses_child")) is None
    assert not any("secret of the child" in request.prompt for request in host.model.requests)


# --- undo -------------------------------------------------------------------------------------------------------------


async def test_what_was_noted_of_undone_messages_is_withdrawn_before_the_next_request(backend: Backend) -> None:
    host = LongHost(answers=(notes("The roof will be red."), notes("The roof will be green.")), policy=EAGER,
                    backend=backend)  # fmt: skip
    wishes = [turn(n, f"About the roof, {n}: paint it red, please.", user=n % 2 == 0) for n in range(1, 9)]
    request = [*wishes, turn(9, "Go on.", user=True)]
    await host.work(request)
    assert "red" in await host.injected([*wishes, turn(10, "And now?", user=True)])
    kept, undone = wishes[:5], [*wishes[5:], request[-1]]
    await host.undo(*undone)
    changed = turn(11, "Paint it green instead.", user=True)
    assert "red" not in await host.injected([*kept, changed])
    await host.work([*kept, changed, turn(12, "Done?", user=True)])
    asked = "\n".join(sent.prompt for sent in host.model.requests[1:])
    assert asked.count("Paint it green instead.") == 1
    assert not any(typed_text(message) in asked for message in wishes[5:])
    sources = [source for piece in await host.pieces(LONG) for source in piece.sources]
    assert sorted(sources) == sorted(message.id for message in [*kept, changed])


# --- a model that fails -----------------------------------------------------------------------------------------------

FAILURES = {
    "unauthorised": ModelUnavailable("the server refused the key (401)"),
    "busy": ModelUnavailable("the server asks to wait (429)"),
    "broken": ModelUnavailable("the server failed (500)"),
    "slow": ModelTimeout("no answer within 5 s"),
    "cut off": ModelOutputInvalid("the answer ended in the middle"),
}


@pytest.mark.parametrize("policy", [PLAIN, EAGER], ids=["tree", "observations"])
@pytest.mark.parametrize("failure", FAILURES.values(), ids=list(FAILURES))
async def test_a_failed_question_replaces_nothing_is_told_and_is_asked_again(
    failure: ModelUnavailable | ModelOutputInvalid, policy: TreePolicy | ObservationPolicy, backend: Backend
) -> None:
    answer = "The barn was measured." if policy is PLAIN else notes("The barn was measured.")
    host = LongHost(answers=(failure, answer), policy=policy, backend=backend)
    messages = talk(5)
    assert await host.work(messages) == 0
    assert await host.injected(messages) == ""
    assert await host.pieces(LONG) == ()
    [waiting] = await DigestInspection(backend.digests, clock=host.clock).waiting()
    assert waiting.problem == str(failure)
    assert await host.work(messages) == 0
    assert len(host.model.requests) == 1
    host.clock.advance(timedelta(seconds=3))
    assert await host.work(messages) > 0
    assert await DigestInspection(backend.digests, clock=host.clock).waiting() == []


class ShortSighted:
    """A model that says nothing to a question of more than some characters."""

    name = "short:1"

    def __init__(self, chars: int) -> None:
        self.requests: list[TextRequest] = []
        self._chars = chars

    async def generate(self, request: TextRequest) -> TextAnswer:
        self.requests.append(request)
        text = "" if len(request.prompt) > self._chars else "The barn was measured."
        return TextAnswer(text=text, model=self.name, finish=Finish.STOP, duration_s=0.0)

    async def close(self) -> None:
        """Nothing to release."""


async def test_a_model_that_answers_a_large_question_with_nothing_is_asked_so_often_and_no_more(
    backend: Backend,
) -> None:
    model = ShortSighted(chars=100)
    host = LongHost(policy=PLAIN, backend=backend, own_model=model)
    messages = talk(5)
    for _ in range(3 * PATIENCE):
        await host.work(messages)
        await host.request(messages)  # a turn goes on meanwhile
        host.clock.advance(timedelta(minutes=6))
    assert len(model.requests) == PATIENCE + 1
    [leaf] = await host.pieces(LONG)
    assert leaf.made_by == EXTRACT


# --- when work is due -------------------------------------------------------------------------------------------------


async def test_one_message_larger_than_the_threshold_is_observed_at_the_next_turn_and_does_not_wait_for_ever(
    backend: Backend,
) -> None:
    host = LongHost(answers=(notes("The plan of the barn was given."),), policy=ObservationPolicy(), backend=backend)
    plan = turn(0, "Beam by beam, here is the whole plan of the barn. " * 4_000, user=True)
    assert EstimatedTokens().count(typed_text(plan)) > ObservationPolicy().message_tokens
    request = [plan, turn(1, "I have read it."), turn(2, "Begin.", user=True)]
    assert (await host.request(request)).due
    await host.work(request)
    assert plan.id in {source for piece in await host.pieces(LONG) for source in piece.sources}
    assert await host.work(request) == 0
    shown = await host.injected([*request, turn(3, "I begin."), turn(4, "Good.", user=True)])
    assert "plan of the barn" in shown
    assert EstimatedTokens().count(shown) < 1_000


async def test_a_digest_that_makes_a_request_no_shorter_is_not_shown(backend: Backend) -> None:
    longer = "They said yes to each other twenty times over, in more words than it took them to say it."
    host = LongHost(answers=(longer,), policy=TreePolicy(max_raw=20, min_batch=18), backend=backend)
    messages = talk(21, text=lambda number: f"yes {number}")
    await host.work(messages)
    await host.work(messages)
    assert len(host.model.requests) <= 1
    outlook = await host.request([*messages, turn(21, "yes"), turn(22, "yes", user=True)])
    count = EstimatedTokens().count
    replaced = [] if outlook.replaced is None else messages[: outlook.replaced.count]
    text = "" if outlook.replaced is None else outlook.replaced.text
    assert count(text) <= sum(count(typed_text(message)) for message in replaced)


async def test_a_summary_longer_than_its_source_is_asked_for_once(backend: Backend) -> None:
    longer = "They said yes to each other twenty times over, in more words than it took them to say it. " * 9
    host = LongHost(answers=(longer,), policy=TreePolicy(max_raw=20, min_batch=18), backend=backend)
    messages = talk(21, text=lambda number: f"yes {number}")
    for _ in range(3):
        await host.work(messages)
    assert len(host.model.requests) == 1
    assert all(longer not in piece.text for piece in await host.pieces(LONG))


def reported(number: int, *, last: bool) -> Message:
    """An answer of which the provider says that it took ten tokens, however long the list is."""
    role = "user" if last or number % 2 == 0 else "assistant"
    info = {"id": f"m{number:03}", "sessionID": LONG, "role": role, "time": {"created": 1_772_445_600_000 + number}}
    info["time"] = {"created": 1_772_445_600_000 + number, "completed": 1_772_445_600_000 + number}
    usage = {"tokens": {"input": 10, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}}
    parts = [{"id": f"p{number:03}", "type": "text", "text": BARN.format(number) * 10}]
    message = to_message(info | usage, parts, child=False, now=START)
    assert message is not None
    return message


@pytest.mark.parametrize(
    "policy", [TreePolicy(), ObservationPolicy(message_tokens=3_000, buffer_share=1)], ids=["tree", "observations"]
)
async def test_work_is_due_by_what_the_list_holds_whatever_usage_a_provider_reports(
    policy: TreePolicy | ObservationPolicy, backend: Backend
) -> None:
    host = LongHost(policy=policy, backend=backend)
    due = []
    for count in (3, 5, 9, 15, 21):
        request = [reported(number, last=number == count - 1) for number in range(count)]
        due.append((await host.request(request)).due)
    assert due[0] is False
    assert due[-1] is True
    assert due == sorted(due)


# --- sessions nobody opened -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [PLAIN, EAGER], ids=["tree", "observations"])
async def test_a_session_whose_beginning_was_never_told_is_digested_and_compacted_all_the_same(
    policy: TreePolicy | ObservationPolicy, backend: Backend
) -> None:
    answer = "The barn was measured." if policy is PLAIN else notes("The barn was measured.")
    host = LongHost(answers=(answer,), policy=policy, backend=backend)
    messages = talk(
        5, text=lambda number: f"Measure the barn once more, wall {number}, before the roof is ordered. " * 5
    )
    assert await backend.conversations.session(LONG) is None
    await host.work(messages)
    assert await host.injected(messages)
    assert await host.requests.compaction_note(LONG) is not None
    await host.digesting.force(LONG)
    await host.work([*messages, turn(5, "The roof is done."), turn(6, "Good.", user=True)])
    sources = {source for piece in await host.pieces(LONG) for source in piece.sources}
    assert {message.id for message in messages} <= sources
