"""The figures of the session bench as tables."""

from __future__ import annotations

from collections.abc import Mapping

from bench.report import table

Rows = Mapping[str, dict[str, object]]
"""The figures of each case, by its name."""


def as_tables(rows: Rows) -> str:
    """What is sent, what it costs and finds, and what can be read of the answers; shares in per cent."""
    return "\n\n".join([_sent_table(rows), _cost_table(rows), _answers_table(rows), _facts_table(rows)])


def _sent_table(rows: Rows) -> str:
    header = ("tokens per turn", "raw", "sent", "ratio", "last", "fresh raw", "fresh", "prefix %", "changes", "faults")
    keys = ("tokens_per_turn_whole", "tokens_per_turn", "compression", "compression_of_last", "fresh_per_turn_whole")
    return table(
        header,
        [
            (
                name,
                *(found[key] for key in keys),
                found["fresh_per_turn"],
                _percent(found["prefix_kept"]),
                found["activations"],
                ", ".join(f"{n} {fault}" for fault, n in _object(found["faults"]).items()) or 0,
            )
            for name, found in rows.items()
        ],
    )


def _cost_table(rows: Rows) -> str:
    header = ("time and search", "added p50 ms", "p95", "work p50 s", "p95", "failed", "calls", "booked", "R@5", "R@10")
    lines = []
    for name, found in rows.items():
        added, work, calls = (_object(found.get(key)) for key in ("turn_added_ms", "work_s", "calls"))
        lines.append(
            (
                name,
                *(added[key] for key in ("p50", "p95")),
                *(work.get(key, "") for key in ("p50", "p95")),
                found["failed_rounds"],
                calls.get("calls", ""),
                {True: "alike", False: "NOT ALIKE"}.get(bool(calls["booked_alike"]), "") if calls else "",
                *(_percent(found[key]) if key in found else "" for key in ("r_at_5", "r_at_10")),
            )
        )
    return table(header, lines)


def _answers_table(rows: Rows) -> str:
    header = ("facts readable, %", "questions", "shown", "replaced", "digest", "newest", "whole")
    lines = []
    for name, found in rows.items():
        answers = _object(found["answers"])
        shown, *others = (_percent(answers[key]) for key in ("shown", "digest", "newest", "whole"))
        lines.append((name, answers["questions"], shown, answers["replaced"], *others))
    return table(header, lines)


def _facts_table(rows: Rows) -> str:
    columns = [("by_kind", name) for name in ("number", "name", "word")]
    columns += [("by_speaker", name) for name in ("user", "assistant", "reasoning", "tool")]
    lines = []
    for name, found in rows.items():
        answers = _object(found["answers"])
        groups = [_object(_object(answers[of]).get(name)) for of, name in columns]
        lines.append((name, *(f"{_percent(group['kept'])} ({group['n']})" if group else "" for group in groups)))
    return table(("facts in digests, % (of)", *(name for _, name in columns)), lines)


def _percent(share: object) -> str:
    assert isinstance(share, float | int)
    return f"{100 * share:.1f}"


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
