"""Words that decide what a statement says: opposites, negations, limits of extent and time, and words of reports."""

from __future__ import annotations

_PAIRS = """
    always/never before/after on/off enable/disable enabled/disabled enables/disables allow/deny allow/forbid
    allows/forbids allowed/forbidden include/exclude includes/excludes import/export imports/exports up/down open/closed
    open/close start/stop starts/stops started/stopped add/remove adds/removes true/false yes/no with/without min/max
    minimum/maximum more/less more/fewer above/below over/under first/last old/new older/newer public/private read/write
    lock/unlock locked/unlocked encrypt/decrypt push/pull upgrade/downgrade increase/decrease raise/lower
    synchronous/asynchronous sync/async required/optional must/may must/should may/should left/right success/failure
    ascending/descending inner/outer pass/fail passes/fails passed/failed like/dislike likes/dislikes likes/hates
    prefer/avoid prefers/avoids use/avoid uses/avoids all/none every/no some/all some/no most/few internal/external
    local/remote early/late fast/slow safe/unsafe valid/invalid active/inactive keep/drop keep/delete accept/reject
    accepts/rejects mutable/immutable strict/loose manual/automatic manually/automatically inside/outside
    request/response input/output upstream/downstream present/absent known/unknown can/must could/must will/may is/was
    are/were has/had use/used uses/used works/broken fixed/broken done/pending today/tomorrow today/yesterday
"""
_WEIGHTY = """
    not no not, no, none never nothing nobody neither nor without only unless except until was were used formerly
    anymore longer nicht kein keine keinen nie niemals nur ohne pas jamais aucun sans seulement solo nunca ningún sin
    não nunca sem apenas
"""


def _both_ways(pairs: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in pairs.split():
        one, _, other = pair.partition("/")
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in found.items()}


OPPOSITES = _both_ways(_PAIRS)
"""Each word with those that may never stand in its place, however near a model finds them."""

WEIGHTY = frozenset(_WEIGHTY.split())
"""A text that has one of these more than another says something else: a negation, a limit, a past."""

REPORTS = frozenset(
    [
        "done",
        "finished",
        "completed",
        "compacted",
        "failed",
        "passed",
        "succeeded",
        "started",
        "merged",
        "deployed",
        "released",
    ]
)
"""Words of lines that report an event. Another name or number in one is another event, not a contradiction."""

NOT_IN_UNSPACED = "[不没沒未勿别別非無无]|ない|ません|(?:^|[ .])안 |않|못"
"""A pattern for "not" in Chinese, Japanese and Korean."""
