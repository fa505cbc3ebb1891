"""What stands for a session's older messages, for people: looked at, opened, forgotten, and made now.

The commands that lead here are in ``sessions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from backstory.entrypoints.cli.asking import agreed
from backstory.entrypoints.cli.command import command
from backstory.entrypoints.cli.invocation import Invocation
from backstory.entrypoints.cli.output import counting
from backstory.entrypoints.drive import drive
from backstory.entrypoints.local_time import shown_time
from backstory.errors import InputError, ModelUnavailable, NotFound, StoreBusy, StoreDamaged, StoreError

if TYPE_CHECKING:
    from backstory.bootstrap import App
    from backstory.bootstrap.sessions import LongSessions
    from backstory.domain.conversation import Session
    from backstory.domain.ids import SessionId
    from backstory.entrypoints.cli.invocation import Desk
    from backstory.services.digest_inspection import DigestCard, DigestInspection


def inspection_of(desk: Desk) -> DigestInspection:
    """The service over a desk's store."""
    from backstory.services.digest_inspection import DigestInspection

    return DigestInspection(desk.app.backend.digests, clock=desk.app.clock)


def digested_session(desk: Desk, ref: str) -> SessionId:
    """The session that is meant, as ``Sessions.find`` finds it. One of which nothing is kept but its digest belongs to
    no project any more: it must be named whole, by somebody who looks at all projects."""
    from backstory.domain.ids import SessionId
    from backstory.services.sessions import Sessions

    try:
        return drive(Sessions(desk.app.backend.conversations).find(ref, desk.viewer)).id
    except NotFound:
        if desk.viewer.all_projects and drive(inspection_of(desk).exists(SessionId(ref))):
            return SessionId(ref)
        raise


def show_digest(here: Invocation, desk: Desk, session: SessionId) -> None:
    """The pieces of a session's digest, and the log of one that is observed."""
    from backstory.domain.observation_log import render_log
    from backstory.entrypoints.digest_views import digest_shape, is_note, log_lines, piece_table, state_lines

    inspection = inspection_of(desk)
    with _told_how_to_forget(session):
        digest = drive(inspection.digest(session))
    notes = [] if digest is None else [piece for piece in digest.active() if is_note(piece)]
    log = render_log(notes) if notes else None
    if here.out.as_json:
        here.out.json(digest_shape(session, digest, log))
        return
    if digest is None:
        here.out.lines([(f"{session} has no digest: its requests show its messages as they are.", "faint")])
        return
    if here.out.is_terminal:
        here.out.lines(state_lines(digest, now=inspection.now()))
    here.out.table(piece_table(digest))
    if log:
        here.out.lines(log_lines(log, digest.state))


def open_piece(here: Invocation, desk: Desk, session: SessionId, piece_id: str, *, page: int) -> None:
    """One piece: a tree's node as ``search_memory_tree`` opens it, an observation with what it was made from."""
    from backstory.entrypoints.digest_views import is_note, note_lines, piece_shape
    from backstory.services.tree_lookup import TreeLookup

    with _told_how_to_forget(session):
        digest = drive(inspection_of(desk).digest(session))
        piece = None if digest is None else digest.piece(piece_id)
        if piece is not None and is_note(piece):
            lines = list(note_lines(piece))
        else:
            lookup = TreeLookup(desk.app.backend.digests, desk.app.backend.conversations)
            lines = [(drive(lookup.open(session, piece_id, page=page)), "plain")]
    if here.out.as_json:
        told = None if piece is None or digest is None else piece_shape(piece, digest)
        here.out.json({"session": session, "piece": told, "opened": "\n".join(text for text, _ in lines)})
    else:
        here.out.lines(lines)


def forget_digest(here: Invocation, desk: Desk, session: SessionId, *, yes: bool) -> None:
    """Remove a digest, once a person agreed."""
    inspection = inspection_of(desk)
    card = drive(inspection.card(session))
    if card is not None and not agreed(here, yes=yes, tell=lambda: here.out.lines([(_would_go(card), "plain")])):
        return
    forgotten = drive(inspection.forget(session))
    if here.out.as_json:
        here.out.json({"session": session, "forgotten": forgotten})
    elif forgotten:
        here.out.lines([(f"Forgot the digest of {session}.", "good")])
        said = "Its messages are kept. Requests show them as they are until the digest is made anew."
        here.out.lines([(said, "faint")])
    else:
        here.out.lines([(f"{session} has no digest.", "faint")])


def _would_go(card: DigestCard) -> str:
    from backstory.entrypoints.digest_views import summary

    return f"Would forget the digest of {card.session} with {summary(card)}; making it anew may ask a model again."


@contextmanager
def _told_how_to_forget(session: SessionId) -> Iterator[None]:
    """A digest that cannot be read is told with its way out, not that of a damaged store. Raises StoreError."""
    from backstory.entrypoints.digest_views import way_to_forget

    try:
        yield
    except StoreDamaged as error:
        raise StoreError(f"{error}; nothing is lost: {way_to_forget(session)} has it made anew") from error


@command("digest")
@click.argument("session", metavar="ID")
@click.option("--extracts", is_flag=True, help="Ask no language model: make extracts by rule.")
@click.option("--dry-run", is_flag=True, help="Show what there is to do, and change nothing.")
@click.option("--all-projects", is_flag=True, help="Another project's session too.")
def digest(here: Invocation, session: str, extracts: bool, dry_run: bool, all_projects: bool) -> None:
    """Digest session ID now, as far as work is due.

    Otherwise that is done beside the conversation, while OpenCode runs. It needs a strategy (session.strategy) and asks
    the language model that the settings name. Safe to stop at any moment: what was made by then is kept.
    """
    from backstory.services.sessions import Sessions

    with here.opened(lexical=True, all_projects=all_projects) as desk:
        meant = drive(Sessions(desk.app.backend.conversations).find(session, desk.viewer))
        app = _without_model(here, desk) if extracts else desk.app
        sessions = _long_sessions(app, meant, extracts=extracts)
        made_by = "extracts, by rule" if app.text_model is None else app.text_model.name
        if dry_run:
            _tell_plan(here, desk, sessions, meant, made_by)
            return
        with counting("Digesting", "steps", shown=not here.out.as_json) as advance:
            steps = _worked(sessions, meant, advance)
        _tell_end(here, desk, meant.id, steps, made_by)


def _worked(sessions: LongSessions, session: Session, advance: Callable[[int], None]) -> int:
    """Do what is due, round by round; how many steps that were."""
    import anyio

    async def rounds() -> int:
        steps = 0
        while done := await sessions.work.work(session.id, project=session.project):
            advance(done)
            steps += done
        return steps

    return anyio.run(rounds)  # with an event loop, since whoever stops it must not leave the lease behind


def _tell_plan(here: Invocation, desk: Desk, sessions: LongSessions, session: Session, made_by: str) -> None:
    total, undigested = drive(inspection_of(desk).undigested(desk.app.backend.conversations, session.id))
    if here.out.as_json:
        told = {"dry_run": True, "session": session.id, "strategy": sessions.strategy.value, "made_by": made_by}
        here.out.json(told | {"messages": total, "undigested": undigested})
        return
    said = f"{undigested} of the {total} messages of {session.id} are in no piece"
    here.out.lines([(f"{said}. What is due of them is digested by {made_by} ({sessions.strategy.value}).", "plain")])


def _tell_end(here: Invocation, desk: Desk, session: SessionId, steps: int, made_by: str) -> None:
    """What was done. Raises ModelUnavailable where a model failed, StoreBusy where another process is at it."""
    from backstory.entrypoints.digest_views import summary

    inspection = inspection_of(desk)
    card = drive(inspection.card(session))
    did = f"{steps} {'step' if steps == 1 else 'steps'} done"
    if card is not None and (until := card.worked_on_until(inspection.now())) is not None:
        raise StoreBusy(f"{did}; another process works on {session}, until {shown_time(until)} at most")
    if card is not None and card.problem and (until := card.resting_until(inspection.now())) is not None:
        raise ModelUnavailable(f"{did}; then it failed: {card.problem}; it is tried again after {shown_time(until)}")
    if here.out.as_json:
        from backstory.entrypoints.digest_views import card_shape

        here.out.json({"dry_run": False, "session": session, "steps": steps, "digest": card_shape(card)})
    elif steps == 0:
        here.out.lines([(f"Nothing is due in {session}.", "plain")])
    else:
        now = "" if card is None else f" It has {summary(card)}."
        here.out.lines([(f"{did} in {session}, by {made_by}.{now}", "good")])


def _without_model(here: Invocation, desk: Desk) -> App:
    settings = here.settings_with({"recall.mode": "lexical", "models.provider": "none"}).settings
    return desk.app.with_settings(settings)


def _long_sessions(app: App, session: Session, *, extracts: bool) -> LongSessions:
    """The services. Raises InputError where the settings, or the session, are against it."""
    sessions = app.long_sessions
    if sessions is None:
        field = "session.strategy" if app.settings.session.strategy == "off" else "archive.enabled"
        raise InputError(f"{field} is off, so no session is digested", field=field)
    agent = _agent_of(app, session)
    if session.parent is not None:
        raise InputError(f"{session.id} is a sub-agent's session; those are left as they are", field="session")
    if not sessions.serves(agent, app.settings):
        raise InputError(f"sessions of the agent {agent} are left as they are, by the settings", field="session")
    if app.text_model is None and not extracts and app.settings.models.provider != "none":
        raise InputError(
            "outside OpenCode no language model is set up",
            field="extracts",
            hint="set models.base_url and models.model, or say --extracts",
        )
    return sessions


def _agent_of(app: App, session: Session) -> str | None:
    """The agent that a person spoke to last."""
    from backstory.services.sessions import Sessions

    archive = Sessions(app.backend.conversations)
    total = drive(archive.page(session, number=1, size=1)).total
    last = drive(archive.page(session, number=max(total, 1), size=1)).messages
    return last[0].agent if last else None
