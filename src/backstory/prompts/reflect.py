"""The request to condense a log of observations; its fixed words are in ``reflect.md``."""

from __future__ import annotations

from backstory.domain.transcript import outside_text
from backstory.prompts.observe import with_instruction
from backstory.prompts.prompt import Prompt, words

VERSION = "reflect/1"

_FIRMER = (
    "",
    "Make them clearly shorter than they are: put more together, and keep details only where somebody may need them.",
    "Half their length at most. Older days become one or two notes each; of finished work keep the result alone.",
    "A third of their length at most. Of everything but the last day keep only decisions, limits, what is open, and"
    " results that others build on.",
    "A fifth of their length at most, at whatever cost in detail: what holds now, what is open, what the user decided.",
)


def reflect_prompt(log: str, *, compression: int = 0, instruction: str = "") -> Prompt:
    """Ask for a shorter log. ``compression`` from 0 to ``MAX_COMPRESSION`` says how much shorter it must be.

    ``instruction`` comes from the settings, a project's file among them: it says what to attend to, and no more.
    """
    asked = " ".join(filter(None, ["Your notes anew, shorter, in the form.", _FIRMER[compression]]))
    text = "\n".join(["<notes>", outside_text(log), "</notes>", asked])
    return Prompt(version=VERSION, system=with_instruction(words("reflect"), instruction), text=text)
