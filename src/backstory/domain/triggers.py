"""The words by which people ask to be remembered, in English and other languages, and the pattern that finds them.

The pattern says where a request may stand. Whether it is one, and what it asks to keep, is decided in ``capture.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

GAP = r"(?>[^\S\n]+\n?[^\S\n]*|\n[^\S\n]*)"
"""Blanks between two words: at most one line break, so never across paragraphs."""
_BLANKS = r"(?>[^\S\n]*)"
_SAME_LINE = r"(?>[^\S\n]+)"
_MARKS = r"[*_]{0,3}"
_COLON = r"(?::(?=[*_]{0,3}\s)|\uff1a)"
_DASH = r"(?:[\u2014\u2013]|--?(?=\s))"


class Phrase(NamedTuple):
    """How one language asks: a verb, then a link to what is to be kept; a colon is a link in every language.

    ``stems`` are literal pieces of which every verb contains one: the cheap test whether to look at all. In ``verbs``
    and ``links`` a blank stands for any gap between words, ``links`` include what has to stand around them.
    """

    language: str
    stems: tuple[str, ...]
    verbs: str
    links: str


OTHER_LANGUAGES = (
    Phrase(
        language="it",
        stems=("ricord", "tieni", "dimentic", "scord"),
        verbs=r"ricorda(?:ti|te|tevi)?|tieni (?:a mente|presente)|non (?:ti )?(?:dimenticar(?:e|ti)|scordar(?:e|ti))",
        links=r" che\b| di\b",
    ),
    Phrase(
        language="de",
        stems=("merk", "vergiss", "vergess", "denk", "kopf"),
        verbs=r"merke? dir|merkt euch|merken sie sich|vergiss(?: bitte)? nicht|vergesst nicht|vergessen sie nicht"
        r"|nicht vergessen|denke? (?:daran|dran)|behalte? im (?:hinter)?kopf",
        links=r"(?: bitte)?,? dass\b|,(?= )",
    ),
    Phrase(
        language="fr",
        stems=("souv", "rappel", "oubli", "retiens", "retenez", "garde"),
        verbs=r"souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|n'oublie[sz]? (?:pas|jamais)|retiens|retenez"
        r"|gardez? (?:à l'esprit|en tête|en mémoire)",
        links=r"(?: bien)? qu(?:e\b|')| d(?:e\b|')",
    ),
    Phrase(
        language="es",
        stems=("recu", "record", "acuérd", "olvid", "cuenta", "presente"),
        verbs=r"recuerd[ae]|recordad|acuérdate|no (?:te )?olvid(?:es|e|éis)|ten (?:en cuenta|presente)",
        links=r"(?: de)? que\b| de\b",
    ),
    Phrase(
        language="pt",
        stems=("lembr", "esqueç", "mente"),
        verbs=r"lembr(?:e-se|em-se|a-te|e|a)|não (?:se |te )?esqueç(?:as|a)|te(?:nha|m) em mente",
        links=r"(?: de)? que\b| de\b",
    ),
    Phrase(
        language="nl",
        stems=("onthoud", "vergeet", "denk", "gedachten"),
        verbs=r"onthoud|vergeet niet|denk eraan|houd? in gedachten",
        links=r",? (?:dat|om)\b",
    ),
    Phrase(
        language="pl",
        stems=("pamięta", "zapomn", "uwadze"),
        verbs=r"(?:za)?pamiętaj(?:cie)?|nie zapomnij(?:cie)?|miej na uwadze",
        links=r",? (?:że|żeby|aby)\b",
    ),
    Phrase(
        language="cs",
        stems=("pamatuj", "zapome"),
        verbs=r"(?:za)?pamatuj(?:te)? si|pamatuj(?:te)?|nezapome(?:ň|ňte)",
        links=r",? že\b",
    ),
    Phrase(
        language="ru",
        stems=("помни", "забудь", "забыва", "виду", "учт"),
        verbs=r"(?:за)?помни(?:те)?|не забудь(?:те)?|не забывай(?:те)?|имей(?:те)? в виду|учти(?:те)?",
        links=r",? (?:что|чтобы)\b",
    ),
    Phrase(
        language="uk",
        stems=("пам'ят", "забудь", "забува", "увазі"),
        verbs=r"(?:за)?пам'ятай(?:те)?|не забудь(?:те)?|не забувай(?:те)?|май(?:те)? на увазі",
        links=r",? (?:що|щоб)\b",
    ),
    Phrase(
        language="tr",
        stems=("unutma", "hatırla", "aklında"),
        verbs=r"unutma(?:yın)?|hatırla(?:yın)?|aklında (?:tut|bulunsun)",
        links=r" ki\b|,(?= )",
    ),
    Phrase(
        language="sv, da, nb",
        stems=("ihåg", "glöm", "åtanke", "husk", "glem"),
        verbs=r"kom ihåg|glöm inte(?: bort)?|ha i åtanke|husk|ikke glem|glem ikke",
        links=r" (?:att|at|å)\b",
    ),
    Phrase(
        language="fi",
        stems=("muista", "unohda"),
        verbs=r"muista|älä unohda|pidä mielessä",
        links=r",? että\b",
    ),
    Phrase(
        language="vi",
        stems=("nhớ", "quên"),
        verbs=r"(?:hãy |xin )?(?:ghi )?nhớ|đừng quên",
        links=r" rằng\b|,(?= )",
    ),
    Phrase(
        language="id",
        stems=("ingat", "lupa"),
        verbs=r"ingat(?:lah)?|jangan lupa",
        links=r",? (?:bahwa|untuk)\b",
    ),
    Phrase(
        language="zh",
        stems=("记", "記", "忘"),
        verbs=r"(?:[请請]你?)?(?:记住|記住|记得|記得|牢记|牢記|切记|切記|別忘了?|别忘了?|(?:不要|别|別|勿)忘[记記]?)"
        r"(?:一下|这一?点|這一?點)?",
        links=r"[,\uff0c]|(?=我|本项目|本專案|所有|不要|必须|必須)",
    ),
    Phrase(
        language="ja",
        stems=("覚え", "忘れない", "記憶して"),
        verbs=r"(?:覚えておいて|覚えといて|覚えて|忘れないで|記憶して(?:おいて)?)(?:ください|下さい|ほしい)?ね?",
        links=r"[,、\uff0c]",
    ),
    Phrase(
        language="ko",
        stems=("기억해", "잊지", "명심"),
        verbs=r"(?:기억해|명심해) ?(?:줘|주세요|둬|두세요)?|잊지 ?(?:마|마세요|말아 ?줘|말아 ?주세요)",
        links=r"[,\uff0c]",
    ),
    Phrase(
        language="ar",
        stems=("تذك", "تنس", "اعتبار"),
        verbs=r"تذك\u0651?ر\u0651?ي?|لا تنس[ىي]?|ضع في اعتبارك",
        links=r" ب?[أا]ن\u0651?(?= )|\u060c",
    ),
    Phrase(
        language="he",
        stems=("זכור", "זכרי", "תשכח", "בחשבון"),
        verbs=r"ת?זכור|ת?זכרי|אל תשכחי?|קחי? בחשבון",
        links=r" ש(?=\w)| כי\b|,(?= )",
    ),
    Phrase(
        language="hi",
        stems=("याद", "ध्यान", "भूल"),
        verbs=r"याद रख(?:ो|ना|ें|िए|िएगा)|ध्यान (?:में )?रख(?:ो|ना|ें|िए)|मत भूल(?:ो|ना)",
        links=r" कि(?= )|,(?= )",
    ),
)

ENGLISH_STEMS = ("remember", "memori", "forget", "mind", "memory", "note", "reference")

_ENGLISH_LEADS = (
    "please|pls|plz|kindly|ok|okay|also|and|but|now|then|so|plus|well|yes|yeah|yep|sure|thanks|thank you|hey|hi|hello"
    "|just|always|oh|btw|by the way|first|finally|lastly|again|ps|fyi|important|note(?! to self)|reminder|from now on"
    "|going forward|in (?:the )?future|for (?:the )?future(?! ref)|(?:for )?next time|for this (?:project|repo|session)"
    "|you (?:should|must|need to|have to|ought to)|(?:i|we) (?:want|need|would like) you to|(?:i|we)'d like you to"
    "|make sure(?: that)? (?:you|to)|be sure (?:that you|to)|let's|let us|try to|one more thing"
)
_OTHER_LEADS = (
    "bitte|und|aber|also|auch|ok|per favore|e|ma|anche|s'il te plaît|s'il vous plaît|et|mais|aussi|por favor|y|pero"
    "|mas|alsjeblieft|en|maar|proszę|i|ale|prosím|пожалуйста|и|но|а|будь ласка|та|але|lütfen|ve|snälla|och|men|og"
    "|请|請|请你|請你|那|कृपया|من فضلك|و|בבקשה|tolong|dan|ja|mutta"
)
_ORDERS = (
    "add|apply|build|change|check|clean|close|commit|convert|create|delete|deploy|document|drop|edit|explain|find|fix"
    "|format|go|implement|improve|install|keep|look|make|merge|migrate|move|open|push|put|read|rebase|refactor|release"
    "|remove|rename|replace|restore|revert|review|rewrite|run|set|start|stop|switch|take|test|try|update|upgrade|use"
    "|wait|write"
)
"""Verbs with which an order begins: only in "fix the test and remember that ..." is the second half an order, too."""


def stems_in(plain: str) -> list[str]:
    """The stems that occur in a text that ``markup.plain`` made; where there are none, nobody asks for anything."""
    return [stem for stem in _all_stems() if stem in plain]


def find_cues(skeleton: str, stems: Sequence[str]) -> Iterator[re.Match[str]]:
    """The places in a skeleton (``markup.Page``) where a request may stand, in order and apart.

    A match begins with the character that opens the clause. Groups: ``polite`` (can you), ``marks`` or ``inner``
    (emphasis that opens before the clause or before the cue), ``english`` or ``other`` (the words that ask, with their
    link); within ``english`` one of ``veto`` (asks not to remember), ``strict`` (a fixed phrase with its own link),
    ``colon``, ``that``, ``to`` and ``bare`` (no link at all). Linear; only lines with one of ``stems`` (at least one),
    and those before them, are searched closely.
    """
    any_stem = re.compile("|".join(map(re.escape, stems)))
    done = 0
    while hit := any_stem.search(skeleton, done):
        line = skeleton.rfind("\n", 0, hit.start())
        line_end = _line_end(skeleton, hit.end())
        horizon = _line_end(skeleton, line_end + 1)
        done = max(done, skeleton.rfind("\n", 0, max(line, 0)), 0)
        while (cue := _cue_pattern().search(skeleton, done, horizon)) and cue.start() < line_end:
            yield cue
            done = cue.end()
        done = max(done, line_end)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


@cache
def _all_stems() -> tuple[str, ...]:
    return tuple(dict.fromkeys([*ENGLISH_STEMS, *(stem for phrase in OTHER_LANGUAGES for stem in phrase.stems)]))


@cache
def _cue_pattern() -> re.Pattern[str]:
    """The pattern behind ``find_cues``. Repetition is atomic, bounded, or ends at the next opening."""
    question = "|(?P<polite>(?:can|could|would|will) you)"
    english = rf"{_leads(_ENGLISH_LEADS + question)}{_second_order()}(?P<inner>{_MARKS})(?P<english>{_english()})"
    other = rf"{_leads(_OTHER_LEADS)}(?P<other>{_others()})"
    return re.compile(f"{_opening()}(?:{english}|{other})")


def _spaced(words: str, *, gap: str = GAP) -> str:
    return words.replace(" ", gap)


def _opening() -> str:
    """The start of a line, list item, sentence or clause, with decoration such as emoji."""
    item = r"(?:(?:[-*\u2022]|\d{1,4}[.)]|[a-z][.)])[^\S\n]+)?(?:\[[ x]\][^\S\n]+)?"
    wide = "\u3002\uff01\uff1f\uff1b\uff1a\uff0c\u3001\u060c\u061b\u0964"
    return (
        rf"[\n.!?;:,)(\u2026{wide}\u2014\u2013-]"
        rf"(?:(?<=\n){_BLANKS}{item}|(?<=[.!?;:,)\u2026])[*_\"'\u201d\u00bb)\]]{{0,4}}(?=\s)|(?<=[{wide}\u2014\u2013])"
        rf"|(?<=\()(?<!\w\()|(?<=\s-)(?=\s))"
        rf"{_BLANKS}(?>[\u2190-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]*){_BLANKS}(?P<marks>{_MARKS})(?=[^\W\d])"
    )


def _leads(words: str) -> str:
    """Any number of words that may stand before the verb, on its line. No commas: they begin a clause of their own."""
    return _spaced(f"(?>(?:(?:{words}) )*)", gap=_SAME_LINE)


def _second_order() -> str:
    """The first half of "fix the test and remember that ...", with its joint."""
    first = rf"(?:{_ORDERS})\b[^\n.!?;:,()\u2026]{{1,160}}?"
    return rf"(?:{first}\s(?:and|but|then)\s(?>(?:(?:also|please|always|then)\s)*))?"


def _english() -> str:
    in_mind = "(?:keep|bear) in mind"
    verb = rf"(?:remember|memori[sz]e|(?:do not|don't|dont|never|not)(?: ever)? forget|{in_mind})"
    later = "(?:,? (?:please|also|always|for (?:later|next time|(?:the )?future|future (?:reference|sessions))))"
    told = r"(?: that| (?:this|these|the following)(?: (?!is\b|are\b|has\b|uses\b|needs\b)[\w'-]+){0,6}?)?"
    memory = "(?:your |the |my |long-term |persistent )?memory"
    veto = r"(?:do not|don't|dont|never|no need to) (?:remember|memori[sz]e|(?:keep|bear)(?: \w+)? in mind)\b"
    note = "(?:note|memo) to self|for (?:your |my |our )?future reference"
    store = f"(?:save|add|commit|store|put|write)(?: this| the following)? (?:to|in|into) {memory}"
    strict = (
        rf"(?:{note}){_MARKS}{_BLANKS}(?:{_COLON}|,|{_DASH})"
        rf"|(?:keep|bear) (?:this|these|the following) in mind{_MARKS}{_BLANKS}(?:{_COLON}|{_DASH})"
        rf"|{store}(?:{_BLANKS}{_COLON}| that\b)"
    )
    link = (
        rf"(?P<colon>{told}{_MARKS}{_BLANKS}(?:{_COLON}|{_DASH}))"
        rf"|(?P<that> that(?![\w'-])(?!{_BLANKS}[,.!?;)]))"
        r"|(?P<to> to(?=\s))"
        r"|(?P<bare>,? (?=\S))"
    )
    return _spaced(rf"(?P<veto>{veto})|(?P<strict>{strict})|{verb}{_MARKS}{later}*(?:{link}){_MARKS}")


def _others() -> str:
    colon = rf"{_MARKS}{_BLANKS}{_COLON}"
    return "|".join(_spaced(f"(?:{phrase.verbs})(?:{colon}|{phrase.links})") for phrase in OTHER_LANGUAGES)
