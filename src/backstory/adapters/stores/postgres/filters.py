"""A Selection as SQL conditions. ``domain/selection.py`` is the meaning; the contract suite holds this against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from backstory.adapters.stores.postgres.tenancy import TENANT
from backstory.adapters.stores.sqlite.filters import names_against, offerable
from backstory.adapters.stores.sqlite.rows import content_key, dump, to_us
from backstory.domain.scope import Audience, Viewer, circles
from backstory.domain.selection import Selection
from backstory.domain.text import normalise


@dataclass(slots=True)
class Where:
    """Conditions joined by AND, with their parameters in order."""

    conditions: list[str] = field(default_factory=list)
    parameters: list[object] = field(default_factory=list)

    def add(self, condition: str, *parameters: object) -> None:
        self.conditions.append(condition)
        self.parameters.extend(parameters)

    @property
    def sql(self) -> str:
        return " AND ".join(self.conditions) if self.conditions else "true"


def where(selection: Selection) -> Where:
    """Every condition of a selection over ``memories AS m``, the tenant's first."""
    clause = Where([f"m.tenant = {TENANT}"])
    if (within := circles(selection.viewer)) is not None:
        clause.add("m.circle = ANY(%s)", sorted(within))  # implied by what follows, and an index knows it
    _visible(clause, selection.viewer)
    return _narrow(clause, selection)


def roughly_where(selection: Selection) -> Where:
    """About the same memories, for the planner's estimate: of a condition and another that it implies, the planner
    multiplies the shares, and takes a project with an eighth of the memories for one with a sixty-fourth."""
    clause = Where([f"m.tenant = {TENANT}"])
    if (within := circles(selection.viewer)) is not None:
        clause.add("m.circle = ANY(%s)", sorted(within))
    else:
        _visible(clause, selection.viewer)
    return _narrow(clause, selection)


def _narrow(clause: Where, selection: Selection) -> Where:
    """Add all conditions but those on who may see a memory."""
    _states(clause, selection)
    if selection.kinds:
        clause.add("m.kind = ANY(%s)", sorted(kind.value for kind in selection.kinds))
    for tag in selection.tags:
        clause.add("EXISTS (SELECT 1 FROM memory_tags t WHERE t.tenant = m.tenant AND t.n = m.n AND t.tag = %s)", tag)
    if selection.area is not None:
        clause.add("(m.area = %s OR starts_with(m.area, %s))", selection.area, selection.area + "/")
    if selection.learned is not None and selection.learned.since is not None:
        clause.add("m.learned_us >= %s", to_us(selection.learned.since))
    if selection.learned is not None and selection.learned.until is not None:
        clause.add("m.learned_us <= %s", to_us(selection.learned.until))
    if selection.visibility is not None:
        clause.add("m.visibility = %s", selection.visibility.value)
    if selection.sensitivity is not None:
        clause.add("m.sensitivity = %s", selection.sensitivity.value)
    if selection.tier is not None:
        clause.add("m.tier = %s", selection.tier.value)
    if selection.pinned is not None:
        clause.add("m.pinned = %s", int(selection.pinned))
    if selection.same_text is not None:
        clause.add("m.content_key = %s", content_key(selection.same_text))
    if selection.contains is not None:
        clause.add("position(%s IN m.normalised) > 0", normalise(selection.contains))
    if selection.superseded_by is not None:
        clause.add("m.superseded_by = %s", selection.superseded_by)
    if selection.derived_from is not None:
        # not read as JSON, which may hold a NUL that the server cannot take
        sources = 'substring(m.provenance FROM \'"derived_from":\\[("[^]]*)\\]\')'
        holds = 'position(\'"derived_from":["\' IN m.provenance) > 0'  # as the index has it
        clause.add(f"{holds} AND position(%s IN {sources}) > 0", dump(selection.derived_from))
    if selection.against is not None:
        clause.add("m.state = 'conflicted' AND position(%s IN m.status) > 0", names_against(selection.against))
    if selection.offerable is not None:
        clause.add(offerable(selection.offerable))
    return clause


def where_in_sight(viewer: Viewer) -> Where:
    """``in_sight`` as a condition over ``changes AS c``, the tenant's first. ``change_edits`` has images as JSON."""
    seen = Where()
    _visible(seen, viewer)
    for image in ("e.after", "e.before"):
        stage = Where()
        _visible(stage, viewer, value=partial(_of_image, image))
        seen.add(f"({image} IS NULL OR {stage.sql})", *stage.parameters)
    clause = Where([f"c.tenant = {TENANT}"])
    # a comparison with NULL is unknown, which counts as unseen
    clause.add(
        "NOT EXISTS (SELECT 1 FROM change_edits e JOIN memories m ON m.tenant = e.tenant AND m.n = e.n"
        f" WHERE e.tenant = c.tenant AND e.change = c.id AND NOT coalesce({seen.sql}, false))",
        *seen.parameters,
    )
    return clause


def _visible(clause: Where, viewer: Viewer, *, value: Callable[[str], str] = "m.{}".format) -> None:
    """``value`` gives the SQL of a memory's field."""
    if viewer.audience is not Audience.PERSON:
        clause.add(f"{value('sensitivity')} <> 'local-only'")
    project = "true" if viewer.all_projects else f"{value('project')} = %s"
    session = f"{value('session')} = %s"
    parameters: list[object] = [] if viewer.all_projects else [viewer.project]
    parameters.append(viewer.session)
    if viewer.audience is Audience.PERSON:
        session = f"({session} OR {value('project')} = %s)"
        parameters.append(viewer.project)
    clause.add(
        f"({value('visibility')} = 'global' OR ({value('visibility')} = 'project' AND {project})"
        f" OR ({value('visibility')} = 'session' AND {session}))",
        *parameters,
    )


def _of_image(image: str, name: str) -> str:
    return f"({image} ->> '{name}')"


def _states(clause: Where, selection: Selection) -> None:
    """Expiry is derived: an active or conflicted memory whose time has come counts as expired."""
    now = to_us(selection.now)
    alive = sorted(selection.states & {"active", "conflicted"})
    options, parameters = [], list[object]()
    if alive:
        options.append("(m.state = ANY(%s) AND (m.expires_us IS NULL OR m.expires_us > %s))")
        parameters += [alive, now]
    if "expired" in selection.states:
        options.append("(m.state IN ('active', 'conflicted') AND m.expires_us <= %s)")
        parameters.append(now)
    ended = sorted(selection.states & {"superseded", "deleted"})
    if ended:
        options.append("m.state = ANY(%s)")
        parameters.append(ended)
    clause.add(f"({' OR '.join(options) or 'false'})", *parameters)
    if selection.states == {"conflicted"}:
        clause.add("m.state = 'conflicted'")  # implied by what precedes, and an index knows it
