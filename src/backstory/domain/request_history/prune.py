"""Make the list of messages of a request smaller, or whole again. What a shape demands is in the module of its name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any, assert_never

from backstory.domain.request_history.anthropic import ANTHROPIC
from backstory.domain.request_history.openai import OPENAI
from backstory.domain.request_history.opencode import OPENCODE
from backstory.domain.request_history.roles import STARTS, RequestRole, turn_start
from backstory.domain.request_history.shape import CountTokens, Rules, Shape, Stub, missing_result, rough_tokens


def prune(
    messages: Sequence[Any],
    shape: Shape,
    *,
    keep_last_messages: int | None = None,
    max_tokens: int | None = None,
    drop_tools: Collection[str] = (),
    count_tokens: CountTokens = rough_tokens,
    stub: Stub = missing_result,
) -> list[Any]:
    """The newest part of a history: repaired, beginning with a user message, in the order it had.

    At least ``keep_last_messages`` stay (more, back to the next user message), system messages not counted. Of what
    exceeds ``max_tokens`` the oldest goes. Calls of ``drop_tools`` and messages without anything that reaches the model
    go too, with their results. The current turn stays whole whatever it costs, and so do system messages. Pruning the
    outcome again with the same limits changes nothing.
    """
    rules = _rules(shape)
    cleaned = _cleaned(messages, rules, frozenset(drop_tools), stub)
    roles = [rules.role(message) for message in cleaned]
    costs = [rules.tokens(message, count_tokens) for message in cleaned] if max_tokens is not None else []
    start = _start(roles, costs, keep_last_messages=keep_last_messages, max_tokens=max_tokens)
    system = [message for message, role in zip(cleaned[:start], roles, strict=False) if role is RequestRole.SYSTEM]
    return system + cleaned[start:]


def repair(messages: Sequence[Any], shape: Shape, *, stub: Stub = missing_result) -> list[Any]:
    """The same history with every call answered where its shape demands it, and no result without a call.

    Anthropic's shape also gets roles that alternate and a user's message first; OpenCode's is whole as it is. Nothing
    else goes or changes.
    """
    return _rules(shape).repair(messages, stub)


def request_roles(messages: Sequence[Any], shape: Shape) -> list[RequestRole]:
    """What each message is; one that cannot be read counts as the assistant's."""
    rules = _rules(shape)
    return [rules.role(message) for message in messages]


def request_tokens(messages: Sequence[Any], shape: Shape, *, count_tokens: CountTokens = rough_tokens) -> int:
    """About how many tokens a history costs; files count the same whatever their size."""
    rules = _rules(shape)
    return sum(rules.tokens(message, count_tokens) for message in messages)


def _rules(shape: Shape) -> Rules:
    match shape:
        case Shape.OPENCODE:
            return OPENCODE
        case Shape.ANTHROPIC:
            return ANTHROPIC
        case Shape.OPENAI:
            return OPENAI
        case _:
            assert_never(shape)


def _cleaned(messages: Sequence[Any], rules: Rules, drop_tools: frozenset[str], stub: Stub) -> list[Any]:
    """Repaired, and without what may go wherever it stands; the current turn is only repaired."""
    whole = rules.repair(messages, stub)
    turn = turn_start([rules.role(message) for message in whole])
    if turn is None:
        return whole
    past = [message for message in rules.without_tools(whole[:turn], drop_tools) if not rules.is_empty(message)]
    return rules.repair(past + whole[turn:], stub) if past != whole[:turn] else whole


def _start(
    roles: Sequence[RequestRole], costs: Sequence[int], *, keep_last_messages: int | None, max_tokens: int | None
) -> int:
    """Where the kept part begins; 0 keeps all."""
    turn = turn_start(roles)
    if turn is None:
        return 0
    starts = [at for at in range(turn + 1) if roles[at] in STARTS]
    start = 0
    if keep_last_messages is not None:
        start = _start_by_count(roles, starts, keep_last_messages)
    if max_tokens is not None:
        start = max(start, _start_by_tokens(roles, starts, costs, max_tokens))
    return start


def _start_by_count(roles: Sequence[RequestRole], starts: Sequence[int], keep: int) -> int:
    spoken = [at for at, role in enumerate(roles) if role is not RequestRole.SYSTEM]
    if len(spoken) <= keep:
        return 0
    wanted = spoken[-keep] if keep > 0 else len(roles)
    return max((at for at in starts if at <= wanted), default=starts[0])


def _start_by_tokens(roles: Sequence[RequestRole], starts: Sequence[int], costs: Sequence[int], max_tokens: int) -> int:
    # System messages stay wherever they stand, so only the others make a difference.
    spoken = [0 if role is RequestRole.SYSTEM else cost for role, cost in zip(roles, costs, strict=True)]
    room = max_tokens - (sum(costs) - sum(spoken))
    gone = [0, *accumulate(spoken)]
    if gone[-1] <= room:
        return 0
    return next((at for at in starts if gone[-1] - gone[at] <= room), starts[-1])
