"""A Selection as SQL conditions. ``domain/selection.py`` is the meaning; the contract suite holds this against it."""

from __future__ import annotations

from dataclasses import dataclass, field

from backstory.adapters.stores.sqlite.rows import content_key, to_us
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.domain.text import normalise


@dataclass(slots=True)
class Where:
    """Conditions over ``memories AS m``, joined by AND, with their parameters in order."""

    conditions: list[str] = field(default_factory=list)
    parameters: list[object] = field(default_factory=list)

    def add(self, condition: str, *parameters: object) -> None:
        self.conditions.append(condition)
        self.parameters.extend(parameters)

    @property
    def sql(self) -> str:
        return " AND ".join(self.conditions) if self.conditions else "1"


def where(selection: Selection) -> Where:
    """Every condition of a selection. ``contains`` needs the SQL function ``backstory_normalise``."""
    clause = Where()
    _visible(clause, selection.viewer)
    _states(clause, selection)
    if selection.kinds:
        clause.add(f"m.kind IN ({_marks(len(selection.kinds))})", *sorted(selection.kinds))
    for tag in selection.tags:
        clause.add("EXISTS (SELECT 1 FROM memory_tags t WHERE t.n = m.n AND t.tag = ?)", tag)
    if selection.area is not None:
        below = selection.area + "/"
        clause.add("(m.area = ? OR substr(m.area, 1, ?) = ?)", selection.area, len(below), below)
    if selection.learned is not None and selection.learned.since is not None:
        clause.add("m.learned_us >= ?", to_us(selection.learned.since))
    if selection.learned is not None and selection.learned.until is not None:
        clause.add("m.learned_us <= ?", to_us(selection.learned.until))
    if selection.visibility is not None:
        clause.add("m.visibility = ?", selection.visibility.value)
    if selection.sensitivity is not None:
        clause.add("m.sensitivity = ?", selection.sensitivity.value)
    if selection.tier is not None:
        clause.add("m.tier = ?", selection.tier.value)
    if selection.pinned is not None:
        clause.add("m.pinned = ?", int(selection.pinned))
    if selection.same_text is not None:
        clause.add("m.content_key = ?", content_key(selection.same_text))
    if selection.contains is not None:
        clause.add("instr(backstory_normalise(m.content), ?) > 0", normalise(selection.contains))
    if selection.superseded_by is not None:
        clause.add("m.superseded_by = ?", selection.superseded_by)
    return clause


def _visible(clause: Where, viewer: Viewer) -> None:
    if viewer.audience is not Audience.PERSON:
        clause.add("m.sensitivity <> 'local-only'")
    project = "1" if viewer.all_projects else "m.project = ?"
    session = "m.session = ?"
    parameters: list[object] = [] if viewer.all_projects else [viewer.project]
    parameters.append(viewer.session)
    if viewer.audience is Audience.PERSON:
        session = "(m.session = ? OR m.project = ?)"
        parameters.append(viewer.project)
    clause.add(
        f"(m.visibility = 'global' OR (m.visibility = 'project' AND {project})"
        f" OR (m.visibility = 'session' AND {session}))",
        *parameters,
    )


def _states(clause: Where, selection: Selection) -> None:
    """Expiry is derived: an active or conflicted memory whose time has come counts as expired."""
    now = to_us(selection.now)
    alive = sorted(selection.states & {"active", "conflicted"})
    options, parameters = [], list[object]()
    if alive:
        options.append(f"(m.state IN ({_marks(len(alive))}) AND (m.expires_us IS NULL OR m.expires_us > ?))")
        parameters += [*alive, now]
    if "expired" in selection.states:
        options.append("(m.state IN ('active', 'conflicted') AND m.expires_us <= ?)")
        parameters.append(now)
    ended = sorted(selection.states & {"superseded", "deleted"})
    if ended:
        options.append(f"m.state IN ({_marks(len(ended))})")
        parameters += ended
    clause.add(f"({' OR '.join(options) or '0'})", *parameters)


def _marks(count: int) -> str:
    return ", ".join("?" * count)
