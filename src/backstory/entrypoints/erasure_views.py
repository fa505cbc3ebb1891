"""What would be erased, what was, and secrets that were found: as lines for people and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from backstory.entrypoints.local_time import shown_time
from backstory.entrypoints.render import Line, shortened
from backstory.entrypoints.shapes import Shape

if TYPE_CHECKING:
    from backstory.ports.erasing import Receipt
    from backstory.services.erasure import Plan
    from backstory.services.secrets_sweep import Finding, Swept

_THINGS = {
    "memories": ("other memory", "other memories"),
    "history": ("entry of the history", "entries of the history"),
    "messages": ("part of a message", "parts of messages"),
    "attachments": ("attachment", "attachments"),
    "titles": ("title of a session", "titles of sessions"),
    "blocks": ("block shown to a model", "blocks shown to a model"),
    "snapshots": ("snapshot shown to a model", "snapshots shown to a model"),
    "digests": ("note of a session's digest", "notes of sessions' digests"),
    "dreaming": ("note on distilling", "notes on distilling"),
    "summaries": ("summary", "summaries"),
    "doubts": ("doubt", "doubts"),
    "accounts": ("account of a model call", "accounts of model calls"),
    "commits": ("commit of the ref", "commits of the ref"),
}
_DONE = _THINGS | {"memories": ("memory", "memories")}
_CONTENT = re.compile(r'"content":"(?P<said>(?:[^"\\]|\\.)*)(?P<end>")?')
LASTING = "This cannot be undone, by no `backstory undo` and by nobody else."


def plan_lines(plan: Plan) -> Iterator[Line]:
    """What would go, with a few of the places where it stands."""
    for memory in plan.memories:
        yield f"Would erase #{memory.n}: {shortened(memory.content)}", "plain"
    for place, count in plan.places.items():
        yield f"  and take it out of {_counted(place, count)}", "plain"
    for line in dict.fromkeys(f"    {quote.place}, {quote.where}: {_readable(quote.text)}" for quote in plan.quotes):
        yield line, "faint"
    for memory in plan.derived:
        yield f"  #{memory.n} was derived from it and stays: {shortened(memory.content)}", "strong"
    yield LASTING, "strong"


def plan_shape(plan: Plan) -> Shape:
    """The same as JSON."""
    return {
        "dry_run": True,
        "memories": [{"id": memory.id, "n": memory.n, "content": memory.content} for memory in plan.memories],
        "places": plan.places,
        "quotes": [{"place": quote.place, "where": quote.where, "text": quote.text} for quote in plan.quotes],
        "derived": [{"id": memory.id, "n": memory.n} for memory in plan.derived],
    }


def _readable(text: str) -> str:
    """What an entry of the history says, without the JSON that it is kept in; any other text as it is."""
    content = _CONTENT.search(text)
    return content["said"] + ("" if content["end"] else "…") if content is not None else text


def receipt_lines(receipt: Receipt) -> Iterator[Line]:
    """A receipt: what was done, whether it was proven, and where it may still be."""
    count = len(receipt.memories)
    what = f"{_counted('memories', count, done=True)} {receipt.reason}" if count else receipt.reason
    yield f"{receipt.id}  {shown_time(receipt.at)}  {what}", "strong"
    for place, count in receipt.places.items():
        yield f"  rewrote {_counted(place, count, done=True)}", "plain"
    own = [trace for trace in receipt.traces or () if not trace.beside]
    if not receipt.finished:
        yield "  not finished: old bytes may still lie in the store's files", "bad"
    elif receipt.traces is None:
        yield "  the bytes were not searched: after it was interrupted, nobody knew any more for what", "plain"
    elif not own:
        yield "  searched every byte of the store: nothing of it was found", "good"
    if receipt.forms:
        yield f"  looked for: {'; '.join(receipt.forms)}", "faint"
    for trace in receipt.traces or ():
        times = "once" if trace.count == 1 else f"{trace.count} times"
        yield f"  still there, {times}: {trace.where}", "plain" if trace.beside else "bad"
    if receipt.remains:
        yield "It may still be in:", "plain"
    for remains in receipt.remains:
        yield f"  - {remains}", "plain"


def receipt_shape(receipt: Receipt) -> Shape:
    """The same as JSON."""
    traces = None
    if receipt.traces is not None:
        traces = [{"where": item.where, "count": item.count, "beside": item.beside} for item in receipt.traces]
    return {
        "id": receipt.id,
        "at": receipt.at.isoformat().replace("+00:00", "Z"),
        "reason": receipt.reason,
        "memories": list(receipt.memories),
        "places": dict(receipt.places),
        "finished": receipt.finished,
        "traces": traces,
        "forms": list(receipt.forms),
        "remains": list(receipt.remains),
    }


def finding_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    """Each text with secrets in it, masked."""
    for finding in findings:
        yield f"{', '.join(finding.kinds)}  {finding.place}, {finding.where}: {finding.excerpt}", "plain"


def swept_shape(swept: Swept, kinds: Mapping[str, int], *, fixed: bool) -> Shape:
    """What a scan found, and what became of it."""
    return {
        "fixed": fixed,
        "kinds": dict(kinds),
        "findings": list(map(_finding, swept.found)),
        "left": list(map(_finding, swept.left)) if fixed else None,
        "receipt": None if swept.receipt is None else receipt_shape(swept.receipt),
    }


def _finding(finding: Finding) -> Shape:
    return {
        "place": finding.place,
        "where": finding.where,
        "kinds": list(finding.kinds),
        "excerpt": finding.excerpt,
    }


def _counted(place: str, count: int, *, done: bool = False) -> str:
    one, many = (_DONE if done else _THINGS).get(place, (place, place))
    return f"{count} {one if count == 1 else many}"
