"""What an export in another product's format wrote, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backstory.entrypoints.counted import counted, memories_counted

if TYPE_CHECKING:
    from backstory.entrypoints.render import Line
    from backstory.entrypoints.shapes import Shape
    from backstory.ports.formats import Written

_LEFT_OUT_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreWritten:
    """One store: its label, where it was written, and what."""

    label: str
    place: str
    written: Written


def export_shape(stores: Sequence[StoreWritten], *, format_name: str, place: str) -> Shape:
    """The records written in all, and each store."""
    return {
        "exported": sum(store.written.memories + store.written.sessions for store in stores),
        "format": format_name,
        "place": place,
        "stores": [
            {
                "label": store.label,
                "place": store.place,
                "memories": store.written.memories,
                "sessions": store.written.sessions,
                "files": len(store.written.files),
                "left_out": list(store.written.left_out),
            }
            for store in stores
        ],
    }


def export_lines(stores: Sequence[StoreWritten], *, format_name: str) -> Iterator[Line]:
    """A line for each store, and what its format has no place for."""
    if not stores:
        yield f"There is nothing to export as {format_name}.", "plain"
    for store in stores:
        written = store.written
        held = f"{memories_counted(written.memories)} and {counted(written.sessions, 'session')}"
        yield f"Exported {held} to {store.place}", "good"
        for sentence in written.left_out[:_LEFT_OUT_SHOWN]:
            yield f"Left out: {sentence}", "faint"
        if len(written.left_out) > _LEFT_OUT_SHOWN:
            yield f"Left out: {len(written.left_out) - _LEFT_OUT_SHOWN} more", "faint"
