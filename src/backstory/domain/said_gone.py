"""Where a text itself says that something is gone, moved or replaced, so that nobody is surprised not to find it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SENTENCE = re.compile(r"(?:[^.;!?\n]|[.!?](?=\S))+")
_VERB = re.compile(
    r"\b(?:(?P<takes>remov|delet|dropp|strip)(?:ed|ing|e|es)?|replac(?:ed|es|ing|e)|renam(?:ed|es|ing|e)|mov(?:ed|es|ing)"
    r"|migrat(?:ed|es|ing)|gone|no longer|not any ?more|anymore|used to|formerly|previously|obsolete|deprecated|retired"
    r"|got rid|supersed(?:ed|es)|instead of|re-?add|does(?:n't| not) exist|do(?:n't| not) exist"
    r"|gelöscht|entfernt|umbenannt|ersetzt|verschoben|nicht mehr|früher"
    r"|supprimé\w*|renommé\w*|déplacé\w*|remplacé\w*|n'existe plus"
    r"|eliminad\w*|borrad\w*|renombrad\w*|movid\w*|reemplazad\w*|ya no)\b",
    re.IGNORECASE,
)
_THEN = re.compile(
    r"\b(?:to|by|with|into|in fav(?:ou)?r of|now|use|nach|durch|zu|par|vers|por|a)\b|->|→|=>", re.IGNORECASE
)
_THEN_OF_TAKING = re.compile(rf"{_THEN.pattern}|\b(?:from|aus|de)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Absence:
    """A stretch of text, both ends in characters, in which what is named is said to be gone."""

    start: int
    end: int

    def covers(self, at: int) -> bool:
        return self.start <= at < self.end


def absences(text: str) -> tuple[Absence, ...]:
    """The stretches: a sentence with such a word, up to where it says what is there now ("moved to ...")."""
    found = []
    for sentence in _SENTENCE.finditer(text):
        verb = _VERB.search(text, sentence.start(), sentence.end())
        if verb is not None:
            then = _THEN_OF_TAKING if verb["takes"] else _THEN
            stop = then.search(text, verb.end(), sentence.end())
            found.append(Absence(sentence.start(), sentence.end() if stop is None else stop.start()))
    return tuple(found)
