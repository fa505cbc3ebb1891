"""``recall``: the command that must be fast. Nothing is imported here that a search by words does not need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.contradictions import refuse_alone
from backstory.entrypoints.cli.parameters import WholeNumber, filter_options, kinds_of, learned_range
from backstory.entrypoints.cli.standard_input import text_of
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.time_range import TimeRange
    from backstory.domain.vocabulary import Classified
    from backstory.entrypoints.cli.invocation import Desk, Invocation
    from backstory.services.digest_search import DigestHit
    from backstory.services.evidence_found import EvidenceFound
    from backstory.services.query import Recalled

NOTHING_YET = "there is no memory here yet; `backstory remember` stores the first"


@command("recall")
@click.argument("query", nargs=-1)
@click.option(
    "--limit", type=WholeNumber(1, 100), metavar="N", help="At most this many, up to 100.  [default: recall.limit]"
)
@filter_options
@click.option("--all-projects", is_flag=True, help="Search other projects' memories too.")
@click.option("--superseded", is_flag=True, help="Also find what was replaced since.")
@click.option("--lexical", is_flag=True, help="Search by words alone; starts fastest.")
@click.option(
    "--in",
    "where",
    type=click.Choice(["memories", "evidence", "all"]),
    default="memories",
    show_default=True,
    help="Where to look: memories, what was said in sessions, or both and the notes on sessions.",
)
@click.option("--session", metavar="ID", help="Only what was said in this session; with --in evidence or all.")
def recall(
    here: Invocation,
    query: tuple[str, ...],
    limit: int | None,
    tag: tuple[str, ...],
    kind: tuple[Classified, ...],
    area: str | None,
    since: str | None,
    until: str | None,
    all_projects: bool,
    superseded: bool,
    lexical: bool,
    where: str,
    session: str | None,
) -> None:
    """Find memories that answer QUERY, best first.

    They are found by meaning and by words, and each comes with the reasons. With - or in a pipe the query is read from
    standard input; an empty one gives the newest. When nothing is good enough, it says why and still exits with 0.

    With --in evidence, the messages of earlier sessions are searched instead, and quoted with what stands beside them.
    Of the filters, only --since and --until go with it. With --in all the two lists come one after the other.
    """
    refuse_alone("--session", session is not None, "--in evidence or --in all", where != "memories")
    for option, given in (("--tag", tag), ("--kind", kind), ("--area", area), ("--superseded", superseded)):
        refuse_alone(option, bool(given), "memories to look in (--in memories or --in all)", where != "evidence")
    text = text_of(query, field="query") or ""
    with here.opened(lexical=lexical, all_projects=all_projects) as desk:
        learned = learned_range(since, until, now=desk.app.clock.now())
        limit = desk.app.settings.recall.limit if limit is None else limit
        found = _evidence(desk, text, limit, learned, session, lexical) if where != "memories" else None
        if where == "evidence":
            assert found is not None
            _show_evidence(here, found)
            return
        from backstory.services.query import Query

        request = Query(
            text=text,
            viewer=desk.viewer,
            limit=limit,
            tags=tag,
            kinds=kinds_of(kind),
            area=area,
            learned=learned,
            with_superseded=superseded,
            lexical_only=lexical,
        )
        recalled = drive(desk.app.recall.recall(request))
        if desk.missing:
            recalled = replace(recalled, silent_because=NOTHING_YET, skipped=())
        notes = _notes(desk, text, limit, learned, session) if where == "all" else None
        _show(here, desk, recalled, found, notes)


def _evidence(
    desk: Desk, text: str, limit: int, said: TimeRange | None, session: str | None, lexical: bool
) -> EvidenceFound:
    from backstory.domain.ids import SessionId

    return drive(
        desk.app.evidence.search(
            text,
            viewer=desk.viewer,
            limit=limit,
            session=None if session is None else SessionId(session),
            said=said,
            lexical_only=lexical,
        )
    )


def _notes(desk: Desk, text: str, limit: int, made: TimeRange | None, session: str | None) -> Sequence[DigestHit]:
    from backstory.adapters.blocking import run_blocking
    from backstory.domain.ids import SessionId
    from backstory.services.digest_search import DigestSearch

    search = DigestSearch(desk.app.backend.digests, desk.app.backend.conversations, aside=run_blocking)
    within = None if session is None else SessionId(session)
    return drive(search.search(text, desk.viewer, limit=limit, session=within, made=made))


def _show_evidence(here: Invocation, found: EvidenceFound) -> None:
    if here.out.as_json:
        from backstory.entrypoints.shapes import evidence_shape, recalled_shape
        from backstory.services.query import Recalled

        unasked = Recalled(silent_because="memories were not searched")
        here.out.json(recalled_shape(unasked, {}) | evidence_shape(found))
        return
    from backstory.entrypoints.render import evidence_lines

    here.out.lines(evidence_lines(found))
    if found.skipped is not None:
        here.out.note(f"meaning was not searched: {found.skipped}")


def _show(
    here: Invocation, desk: Desk, recalled: Recalled, found: EvidenceFound | None, notes: Sequence[DigestHit] | None
) -> None:
    projects = desk.projects() if recalled.results else {}
    if here.out.as_json:
        from backstory.entrypoints.shapes import evidence_shape, notes_shape, recalled_shape

        said = {} if found is None else evidence_shape(found)
        here.out.json(recalled_shape(recalled, projects) | said | ({} if notes is None else notes_shape(notes)))
        return
    from backstory.entrypoints.render import note_lines, recalled_lines

    here.out.lines(recalled_lines(recalled, projects, desk.viewer.project))
    for skipped in recalled.skipped:
        here.out.note(f"{skipped.part} was not searched: {skipped.reason}")
    if found is not None:
        here.out.lines([("", "plain"), ("Said in sessions", "strong")])
        _show_evidence(here, found)
    if notes:
        here.out.lines([("", "plain"), ("Noted on sessions", "strong"), *note_lines(notes)])
