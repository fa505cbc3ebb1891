"""``sessions`` and ``session``: what is kept of what was said, how long, and what stands for it in requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.asking import agreed
from backstory.entrypoints.cli.command import Group, command
from backstory.entrypoints.cli.contradictions import refuse_alone, refuse_beside_subcommand
from backstory.entrypoints.cli.digest import (
    digest,
    digested_session,
    forget_digest,
    inspection_of,
    open_piece,
    show_digest,
)
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.cli.parameters import DURATION, WholeNumber
from backstory.entrypoints.drive import drive

if TYPE_CHECKING:
    from backstory.domain.conversation import Session
    from backstory.entrypoints.cli.invocation import Desk
    from backstory.ports.conversation import Pruned
    from backstory.services.sessions import Page, Sessions

DEFAULT_LIMIT = 20
_PAGE = 20

_limit = click.option(
    "--limit",
    type=WholeNumber(1, 1_000_000),
    metavar="N",
    default=DEFAULT_LIMIT,
    help=f"At most this many.  [default: {DEFAULT_LIMIT}]",
)
_all_projects = click.option("--all-projects", is_flag=True, help="Other projects' sessions too.")


@click.group("sessions", cls=Group, invoke_without_command=True)
@_limit
@_all_projects
@click.pass_context
def sessions(ctx: click.Context, limit: int, all_projects: bool) -> None:
    """List the sessions that are kept, the latest first.

    Each with its messages, with what stands for the older ones in its requests (pieces, strategy, problem), and what it
    belongs to: the session that a sub-agent worked for, the one it is a fork of. `backstory session` reads one.
    """
    refuse_beside_subcommand(ctx)
    if ctx.invoked_subcommand is None:
        _list(ctx.ensure_object(Invocation), limit=limit, all_projects=all_projects)


@command("prune")
@click.option(
    "--older-than",
    type=DURATION,
    metavar="AGE",
    help="Said longer ago than 90d, 12w.  [default: archive.retention_days]",
)
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and change nothing.")
def prune(here: Invocation, older_than: timedelta | None, yes: bool, dry_run: bool) -> None:
    """Remove what was said long ago, for good.

    Messages of all projects go, with their parts, files and what they are found by, what digests made of them, and
    sessions that have none left. Memories stay. First it is shown how much that is, and asked. The setting
    archive.retention_days does it daily.
    """
    from backstory.errors import InputError
    from backstory.services.retention import Retention

    with here.opened(lexical=True) as desk:
        days = desk.app.settings.archive.retention_days
        age = older_than or (None if days is None else timedelta(days=days))
        if age is None:
            raise InputError(
                "archive.retention_days is not set, so nothing is too old",
                field="older-than",
                hint="say --older-than 90d",
            )
        backend = desk.app.backend
        retention = Retention(backend.conversations, backend.digests, clock=desk.app.clock, days=days)
        planned = drive(retention.preview(age))
        if dry_run:
            _tell(here, planned, dry_run=True)
            return
        nothing = not planned.messages + planned.sessions + planned.blocks
        if nothing or agreed(here, yes=yes, tell=lambda: _tell(here, planned, dry_run=True)):
            _tell(here, drive(retention.prune(age)), dry_run=False)


sessions.add_command(prune)
sessions.add_command(digest)


@command("session")
@click.argument("session", metavar="ID")
@click.option("--page", type=WholeNumber(1, 1_000_000), metavar="N", help="Which page of its messages.  [default: 1]")
@click.option(
    "--limit", type=WholeNumber(1, 1000), metavar="N", default=_PAGE, help=f"Messages on it.  [default: {_PAGE}]"
)
@click.option("--from", "since", metavar="MESSAGE", help="Begin with this message.")
@click.option("--around", metavar="MESSAGE", help="This message, and those before and after it.")
@click.option("--search", metavar="WORDS", help="Find what was said in it, best first.")
@click.option("--part", metavar="PART", help="This part alone, whole.")
@click.option("--tools", is_flag=True, help="Also what tools were given and gave, and thoughts, shortened.")
@click.option("--raw", is_flag=True, help="All parts, whole, as they are kept.")
@click.option("--digest", "digested", is_flag=True, help="What stands for its older messages in requests.")
@click.option("--node", metavar="PIECE", help="Open one piece of that, as the agent does.")
@click.option("--forget-digest", "forgotten", is_flag=True, help="Remove all of that, so that it is made anew.")
@click.option("--yes", is_flag=True, help="With --forget-digest: without asking.")
@_all_projects
def session(
    here: Invocation,
    session: str,
    page: int | None,
    limit: int,
    since: str | None,
    around: str | None,
    search: str | None,
    part: str | None,
    tools: bool,
    raw: bool,
    digested: bool,
    node: str | None,
    forgotten: bool,
    yes: bool,
    all_projects: bool,
) -> None:
    """Read session ID: its messages, a page at a time.

    The beginning of an id is enough where only one begins so; that holds for messages and parts too. What the host took
    back is marked, and so are sub-agents and forks. With --digest, --node or --forget-digest it is not about messages,
    but about what stands for the older ones in requests.
    """
    from backstory.services.sessions import Sessions

    paged = {"page": page, "digest": digested or None} if node is None else {}  # a node has pages too
    about_digest = {"node": node, "forget-digest": forgotten or None}
    _only_one(**paged, since=since, around=around, search=search, part=part, **about_digest)
    refuse_alone("--yes", yes, "--forget-digest", forgotten)
    with here.opened(lexical=search is None, all_projects=all_projects) as desk:
        archive = Sessions(desk.app.backend.conversations)
        if forgotten:
            forget_digest(here, desk, digested_session(desk, session), yes=yes)
        elif node is not None:
            open_piece(here, desk, digested_session(desk, session), node, page=page or 1)
        elif digested:
            show_digest(here, desk, digested_session(desk, session))
        elif search is not None:
            _search(here, desk, drive(archive.find(session, desk.viewer)), search, limit=min(limit, 100))
        elif part is not None:
            _show_part(here, archive, drive(archive.find(session, desk.viewer)), part)
        else:
            _read(here, desk, archive, session, (page, since, around), limit=limit, tools=tools, raw=raw)


def _only_one(**given: object) -> None:
    from backstory.errors import InputError

    names = [name.replace("since", "from") for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InputError(f"--{names[0]} and --{names[1]} cannot go together", field=names[1])


def _list(here: Invocation, *, limit: int, all_projects: bool) -> None:
    from backstory.entrypoints.session_views import card_shape, session_table
    from backstory.services.sessions import Sessions

    with here.opened(lexical=True, all_projects=all_projects) as desk:
        cards, total = drive(Sessions(desk.app.backend.conversations).cards(desk.viewer, limit=limit))
        projects = desk.projects()
        found = drive(inspection_of(desk).cards([card.session.id for card in cards]))
        digests = {card.session: card for card in found}
        if here.out.as_json:
            shapes = [card_shape(card, projects, digests.get(card.session.id)) for card in cards]
            here.out.json({"sessions": shapes, "total": total})
            return
        here.out.table(session_table(cards, projects, digests))
        if total > len(cards):
            here.out.note(f"{len(cards)} of {total}; --limit shows more")


def _read(
    here: Invocation,
    desk: Desk,
    archive: Sessions,
    ref: str,
    place: tuple[int | None, str | None, str | None],
    *,
    limit: int,
    tools: bool,
    raw: bool,
) -> None:
    from backstory.entrypoints.session_views import card_shape, head_lines, page_lines, page_shape

    card, projects = drive(archive.card(ref, desk.viewer)), desk.projects()
    digested = drive(inspection_of(desk).card(card.session.id))
    number, since, around = place
    if around is not None:
        page = drive(archive.page_around(card.session, around, size=limit))
    elif since is not None:
        page = drive(archive.page_from(card.session, since, size=limit))
    else:
        page = drive(archive.page(card.session, number=number or 1, size=limit))
    page = _whole(archive, page) if raw else page
    if here.out.as_json:
        here.out.json({"session": card_shape(card, projects, digested)} | page_shape(page))
        return
    here.out.lines(head_lines(card, projects, digested))
    here.out.lines(page_lines(page, tools=tools, raw=raw))
    if page.left and page.messages:
        last = page.messages[-1].id
        more = f"--page {(number or 1) + 1}" if since is None and around is None else f"--from {last}"
        here.out.note(f"{page.left} of {page.total} messages come after these: {more}")


def _whole(archive: Sessions, page: Page) -> Page:
    messages = [
        replace(message, parts=tuple(drive(archive.whole(part)) for part in message.parts)) for message in page.messages
    ]
    return replace(page, messages=tuple(messages))


def _search(here: Invocation, desk: Desk, session: Session, words: str, *, limit: int) -> None:
    found = drive(desk.app.evidence.search(words, viewer=desk.viewer, limit=limit, session=session.id))
    if here.out.as_json:
        from backstory.entrypoints.shapes import evidence_shape

        here.out.json(evidence_shape(found))
        return
    from backstory.entrypoints.render import evidence_lines

    here.out.lines(evidence_lines(found))
    if found.skipped is not None:
        here.out.note(f"meaning was not searched: {found.skipped}")


def _show_part(here: Invocation, archive: Sessions, session: Session, ref: str) -> None:
    from backstory.entrypoints.session_views import part_lines

    message, part = drive(archive.part(session, ref))
    if here.out.as_json:
        from backstory.codecs.messages import encode_message

        here.out.json(encode_message(replace(message, parts=(part,))))
    else:
        here.out.lines(part_lines(message, part))


def _tell(here: Invocation, pruned: Pruned, *, dry_run: bool) -> None:
    from backstory.entrypoints.session_views import pruned_lines, pruned_shape

    if here.out.as_json:
        here.out.json(pruned_shape(pruned, dry_run=dry_run))
    else:
        here.out.lines(pruned_lines(pruned, done=not dry_run))
