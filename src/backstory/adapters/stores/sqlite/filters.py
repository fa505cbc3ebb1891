"""A Selection as SQL conditions. ``domain/selection.py`` is the meaning; the contract suite holds this against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from backstory.adapters.stores.sqlite.rows import content_key, dump, to_us
from backstory.domain.ids import MemoryId
from backstory.domain.provenance import Origin, is_injectable
from backstory.domain.scope import Audience, Viewer
from backstory.domain.selection import Selection
from backstory.domain.text import normalise

# The literal of an index: nothing else than a list with something in it can look so in a provenance's JSON.
DERIVED = 'instr(m.provenance, \'"derived_from":["\') > 0'


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
    if selection.derived_from is not None:
        holds = "EXISTS (SELECT 1 FROM json_each(m.provenance, '$.derived_from') d WHERE d.value = ?)"
        clause.add(f"{DERIVED} AND {holds}", selection.derived_from)
    if selection.against is not None:
        clause.add("m.state = 'conflicted' AND instr(m.status, ?) > 0", names_against(selection.against))
    if selection.offerable is not None:
        clause.add(offerable(selection.offerable))
    return clause


def offerable(wanted: bool) -> str:
    """Memories that may be offered unasked, or all others; in the words of every SQL."""
    # literals, not parameters: an index holds those that are not, and serves this very condition only
    origins = ", ".join(sorted(f"'{origin.value}'" for origin in Origin if is_injectable(origin)))
    condition = f"(m.sensitivity = 'normal' AND m.origin IN ({origins}))"
    return condition if wanted else f"NOT {condition}"


def names_against(memory: MemoryId) -> str:
    """How the JSON of a status names the memory that it is in conflict with; no text in it can look so."""
    return f'"against":{dump(memory)}'


def where_in_sight(viewer: Viewer) -> Where:
    """``in_sight`` as a condition over ``changes AS c``. The images in ``change_edits`` are JSON."""
    seen = Where()
    _visible(seen, viewer)
    for image in ("e.after", "e.before"):
        stage = Where()
        _visible(stage, viewer, value=partial(_of_image, image))
        seen.add(f"({image} IS NULL OR {stage.sql})", *stage.parameters)
    clause = Where()
    # a comparison with NULL is unknown, which counts as unseen
    clause.add(
        "NOT EXISTS (SELECT 1 FROM change_edits e JOIN memories m ON m.n = e.n"
        f" WHERE e.change = c.id AND NOT coalesce({seen.sql}, 0))",
        *seen.parameters,
    )
    return clause


def _visible(clause: Where, viewer: Viewer, *, value: Callable[[str], str] = "m.{}".format) -> None:
    """``value`` gives the SQL of a memory's field."""
    if viewer.audience is not Audience.PERSON:
        clause.add(f"{value('sensitivity')} <> 'local-only'")
    project = "1" if viewer.all_projects else f"{value('project')} = ?"
    session = f"{value('session')} = ?"
    parameters: list[object] = [] if viewer.all_projects else [viewer.project]
    parameters.append(viewer.session)
    if viewer.audience is Audience.PERSON:
        session = f"({session} OR {value('project')} = ?)"
        parameters.append(viewer.project)
    clause.add(
        f"({value('visibility')} = 'global' OR ({value('visibility')} = 'project' AND {project})"
        f" OR ({value('visibility')} = 'session' AND {session}))",
        *parameters,
    )


def _of_image(image: str, name: str) -> str:
    return f"json_extract({image}, '$.{name}')"


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
    if selection.states == {"conflicted"}:
        clause.add("m.state = 'conflicted'")  # implied by what precedes, and an index knows it


def _marks(count: int) -> str:
    return ", ".join("?" * count)
