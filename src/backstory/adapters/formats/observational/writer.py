"""Writes stores of opencode-observational-memory, as its own code writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backstory.adapters.formats.kept_json import kept_object
from backstory.adapters.formats.observational.layout import CONFIG, STATES, is_session_name
from backstory.adapters.formats.observational.state import FORMAT, state_text
from backstory.adapters.formats.written_files import FolderDraft
from backstory.domain.digest import SessionDigest, Strategy
from backstory.domain.interchange import Keepsake
from backstory.ports.formats import Exported, Told, Written

Json = Mapping[str, Any]


class ObservationalWriter:
    """A file for each session that was observed. Those that were digested otherwise, or not at all, are left out."""

    name = FORMAT

    def write(self, exported: Exported, target: Path) -> Written:
        """The states in ``om-state`` below the folder ``target``, or in it where that is a folder of that name.

        Files of other sessions there stay.
        """
        written, left_out = Written(), Counter[str]()
        folder = "" if target.name == STATES else f"{STATES}/"
        kept = {k.session: kept_object(k.text) for k in exported.keepsakes if k.key.startswith("state:")}
        with FolderDraft(target) as draft:
            for told in exported.sessions:
                digest = _observed(told)
                if digest is None:
                    left_out["sessions that were not observed"] += 1
                elif not is_session_name(told.session.id):
                    left_out["sessions whose id cannot be the name of a file"] += 1
                else:
                    text = state_text(digest, kept.get(told.session.id, {}), count=_tokens)
                    draft.put(f"{folder}{told.session.id}.json", text.encode("utf-8", "replace"))
                    written.sessions += 1
            for name, text in _as_they_were(exported.keepsakes).items():
                path = name if name == CONFIG else f"{folder}{name}"
                if target / path not in draft.files:
                    draft.put(path, text.encode("utf-8", "replace"))
        left_out["memories, since the format holds sessions only"] += len(exported.memories)
        written.files = draft.files
        written.left_out = [f"{count} {what}" for what, count in left_out.items() if count]
        return written


def _observed(told: Told) -> SessionDigest | None:
    digest = told.digest
    return digest if digest is not None and digest.state.strategy is Strategy.OBSERVATIONS else None


def _tokens(text: str) -> int:
    from backstory.adapters.tokens import token_counter

    return token_counter(exact=True).count(text)


def _as_they_were(keepsakes: Sequence[Keepsake]) -> Mapping[str, str]:
    """The settings, and states that could not be read, by the names of their files."""
    found: dict[str, str] = {}
    for keepsake in keepsakes:
        kind, _, session = keepsake.key.partition(":")
        text = kept_object(keepsake.text).get("text")
        if isinstance(text, str) and kind == CONFIG:
            found[CONFIG] = text
        elif isinstance(text, str) and kind == "file" and is_session_name(session):
            found[f"{session}.json"] = text
    return found
