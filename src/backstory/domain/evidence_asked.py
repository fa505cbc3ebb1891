"""Whether a prompt asks for something that was said or done earlier. What answers it is found and judged elsewhere."""

from __future__ import annotations

import re

MOST_CHARS = 1000
"""Of a prompt that are read: whoever asks back says so shortly, and a pasted log has every word in it."""

# A clause that asks, and tells of the past: "which port did you pick", "why was the cache dropped".
_ASKING = (
    r"what|which|why|how|when|where|who|whom|whose|did|was|were|had|have|has"
    r"|was|welche[nrsm]?|warum|wieso|weshalb|wie|wann|wo|wer|wen|wem|womit|wodurch|wozu|worauf|hatten?|haben|habe"
    r"|quoi|quel(?:le)?s?|pourquoi|comment|quand|où|qui|qué|cuál(?:es)?|cómo|cuándo|dónde|quién|cuánt[oa]s?"
)
_PAST = (
    r"did(?:n['’]?t)?|was(?:n['’]?t)?(?! (?:ist|sind|für|heißt|bedeutet|macht|kann|muss|soll|gibt))|were(?:n['’]?t)?"
    r"|had|have (?:we|you|i)|has been|happened|ended up|decided|agreed|settled|chose|picked|tried|rejected|removed"
    r"|replaced|changed|fixed|said|told|mentioned|discussed|planned|broke|went wrong|came up|came (?:in|with|out)"
    r"|used to|(?:what|who|we|you|i) (?:made|caused|leaked|found|took|gave|wrote|used)"
    r"|war(?:en|st)?|wurden?|hatten?|haben wir|hast du|habe ich|gesagt|entschieden|beschlossen|gewählt|geworden"
    r"|était|étaient|avons[- ]nous|as[- ]tu|avait|avions|a été"
    r"|fue|fueron|era|eran|hicimos|hemos|habíamos|decidimos|dijiste"
)
_TIME = (
    r"last (?:time|week|month|year|sprint|session)|yesterday|earlier|previously|back then|the other day|a while ago"
    r"|(?:days|weeks|months) ago|letzte[ns]? (?:mal|woche|monat|jahr)|gestern|vorhin|damals|neulich"
    r"|hier|la dernière fois|ayer|la última vez|la semana pasada"
)
# Talk that is called back to mind, in a question or not: "do it as we agreed", "remind me".
_RECALLED = (
    r"\b(?:we|you|i)(?:['’]d|['’]ve| had| have)?(?: \w+)? "
    r"(?:decided|agreed|settled|discussed|talked|spoke|said|told|mentioned|chose|picked|planned|concluded)\b"
    r"|\bremind me\b|\bremember (?:when|how|what|why|which|that time)\b|\bwhat (?:was|were) (?:it|that|those) again\b"
    r"|\b(?:wie|was|wo|wann)\b[^.!?\n]{0,60}\b(?:besprochen|vereinbart|ausgemacht|entschieden|beschlossen)\b"
    r"|\berinner(?:e|st)? (?:mich|du dich)\b|\brappelle-moi\b|\brecuérdame\b"
)
# A clause that asks begins with such a word: "the case where it was removed" does not ask.
_BEGINS = (
    r"(?:^\W*|[,;:(–—-]\s*|\b(?:and|but|so|also|again|wait|hey|hi|hm+|ok(?:ay)?|und|aber|also|et|mais|y|pero)\s+)"
    r"(?:(?:in|on|at|for|from|to|by|with|until|since|after|about|bis|seit|von|mit|für|auf|à|de|en|con|por) )?"
)
_SENTENCE_END = r"(?<=[.!?。？！])\s+|\n+"


def asks_back(prompt: str) -> bool:
    """Whether a prompt asks about earlier talk or work, by its form: a question in the past tense or about a past
    time, or a reference to what was agreed, said or planned. English mostly; the common forms of German, French and
    Spanish. Says nothing about whether there is an answer."""
    text = prompt[:MOST_CHARS].lower()
    if re.search(_RECALLED, text):
        return True
    return any(_asks_about_past(sentence) for sentence in re.split(_SENTENCE_END, text))


def _asks_about_past(sentence: str) -> bool:
    asking = re.search(rf"{_BEGINS}(?:{_ASKING})\b", sentence)
    if asking is None and not sentence.rstrip().endswith("?"):
        return False
    return re.search(rf"\b(?:{_PAST}|{_TIME})\b", sentence) is not None
