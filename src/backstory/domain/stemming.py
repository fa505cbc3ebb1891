"""Word forms: one stem for the inflections of a word. Pure and exact, so that every machine builds the same index.

English follows the Porter2 algorithm (M. F. Porter, "The English (Porter2) stemming algorithm", 2001), plus the
irregular forms it does not know; other languages in Latin script go through the same rules. Cyrillic and Arabic get
light stemmers.
Words come in case-folded and with accents removed (see ``text.py``). What a word is, is decided there.
"""

from __future__ import annotations

from functools import lru_cache

MAX_STEM_CHARS = 32
"""Longer runs of letters are data rather than words; callers leave them as they are."""

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset({"bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"})
_LI_ENDINGS = frozenset("cdeghkmnrt")

# Prefixes after which region 1 starts, for families that would fall together (general, generate; universe, university).
_REGION_PREFIXES = ("gener", "commun", "arsen", "univers", "organ", "inter", "later", "emerg")

# Form -> the stem it shares with its regular relatives. The first rows are Porter2's own exceptions.
_IRREGULAR = {
    "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "vying": "vie",
    "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
    "sky": "sky", "news": "news", "atlas": "atlas", "cosmos": "cosmos", "bias": "bias",
    "evening": "evening", "evenings": "evening",
    "bought": "buy", "broke": "break", "broken": "break", "brought": "bring", "built": "build", "came": "come",
    "caught": "catch", "chose": "choos", "chosen": "choos", "drawn": "draw", "drew": "draw", "driven": "drive",
    "drove": "drive", "fell": "fall", "fallen": "fall", "forgot": "forget", "forgotten": "forget", "found": "find",
    "froze": "freez", "frozen": "freez", "gave": "give", "given": "give", "gone": "go", "went": "go", "goes": "go",
    "grew": "grow", "grown": "grow", "heard": "hear", "held": "hold", "hidden": "hide", "hid": "hide",
    "kept": "keep", "knew": "know", "known": "know", "lost": "lose", "made": "make", "meant": "mean", "met": "meet",
    "paid": "pay", "ran": "run", "said": "say", "says": "say", "sent": "send", "shown": "show", "sold": "sell",
    "spent": "spend", "spoke": "speak", "spoken": "speak", "stuck": "stick", "taken": "take", "took": "take",
    "taught": "teach", "thought": "think", "threw": "throw", "thrown": "throw", "told": "tell",
    "understood": "understand", "woke": "wake", "woken": "wake", "won": "win", "wrote": "write", "written": "write",
    "ate": "eat", "eaten": "eat", "began": "begin", "begun": "begin", "flew": "fli", "flown": "fli", "saw": "see",
    "seen": "see", "slept": "sleep", "sang": "sing", "sung": "sing", "swam": "swim", "wore": "wear", "worn": "wear",
    "children": "child", "men": "man", "women": "woman", "people": "person", "wives": "wife",
    "feet": "foot", "teeth": "tooth", "mice": "mous", "indices": "index", "indexes": "index", "matrices": "matrix",
    "vertices": "vertex", "vertexes": "vertex", "analyses": "analysi", "schemata": "schema", "criteria": "criterion",
}  # fmt: skip

_KEPT_AFTER_STEP_1A = frozenset({"inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed"})

# Ending -> replacement; the longest ending that fits is the one that counts.
_STEP_2 = {
    "ization": "ize", "ational": "ate", "fulness": "ful", "ousness": "ous", "iveness": "ive", "tional": "tion",
    "biliti": "ble", "lessli": "less", "entli": "ent", "ation": "ate", "alism": "al", "aliti": "al", "ousli": "ous",
    "iviti": "ive", "fulli": "ful", "enci": "ence", "anci": "ance", "abli": "able", "izer": "ize", "ator": "ate",
    "alli": "al", "bli": "ble", "ogist": "og", "ogi": "og", "li": "",
}  # fmt: skip
_STEP_3 = {
    "ational": "ate", "tional": "tion", "alize": "al", "icate": "ic", "iciti": "ic", "ative": "", "ical": "ic",
    "ness": "", "ful": "",
}  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic",
)  # fmt: skip

_STEP_2_ENDINGS = tuple(_STEP_2)
_STEP_3_ENDINGS = tuple(_STEP_3)

_CYRILLIC_ENDINGS = (
    "иями", "иях", "ями", "ами", "ием", "иеи", "ого", "его", "ому", "ему", "ыми", "ими", "ешь", "ишь", "ете", "ите",
    "ях", "ах", "ов", "ев", "еи", "ом", "ем", "ам", "ям", "ия", "ья", "ию", "ью", "ие", "ье", "ии", "ыи", "ои", "ая",
    "яя", "ую", "юю", "ою", "ею", "ые", "ых", "их", "ым", "им", "ть", "ет", "ит", "ут", "ют", "ат", "ят", "ла", "ло",
    "ли", "а", "я", "о", "е", "и", "ы", "у", "ю", "ь", "і", "є",
)  # fmt: skip
_ARABIC_ARTICLES = ("وال", "بال", "كال", "فال", "لل", "ال")
_MIN_LIGHT_STEM_CHARS = 3


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The stem of one word of letters; a word of a script without rules comes back as it is.

    The stem need not be a word itself. Not idempotent: stem a word once, at index and at query time alike.
    """
    if word.isascii():
        return _IRREGULAR.get(word) or _english(word)
    first = word[0]
    if "а" <= first <= "ӿ":
        return _cyrillic(word)
    if "؀" <= first <= "ۿ":
        return _arabic(word)
    return word


def _cyrillic(word: str) -> str:
    if word.endswith(("ся", "сь")) and len(word) > _MIN_LIGHT_STEM_CHARS + 3:
        word = word[:-2]
    for ending in _CYRILLIC_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_LIGHT_STEM_CHARS:
            return word[: -len(ending)]
    return word


def _arabic(word: str) -> str:
    for article in _ARABIC_ARTICLES:
        if word.startswith(article) and len(word) - len(article) >= _MIN_LIGHT_STEM_CHARS:
            return word[len(article) :]
    return word


def _english(word: str) -> str:
    if len(word) <= 2:
        return word
    word = _mark_consonant_y(word)
    r1, r2 = _regions(word)
    word = _step_1a(word)
    if word in _KEPT_AFTER_STEP_1A:
        return word
    word = _step_1b(word, r1)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    if word.endswith(_STEP_2_ENDINGS):
        word = _replace_ending(word, _STEP_2, r1=r1, r2=r2)
    if word.endswith(_STEP_3_ENDINGS):
        word = _replace_ending(word, _STEP_3, r1=r1, r2=r2)
    if word.endswith(_STEP_4):
        word = _step_4(word, r2)
    return _step_5(word, r1, r2).lower()


def _mark_consonant_y(word: str) -> str:
    """Write ``Y`` where y is a consonant: at the start, or after a vowel."""
    if "y" not in word:
        return word
    letters = list(word)
    for i, letter in enumerate(letters):
        if letter == "y" and (i == 0 or letters[i - 1] in _VOWELS):
            letters[i] = "Y"
    return "".join(letters)


def _regions(word: str) -> tuple[int, int]:
    """Where R1 and R2 start: each after the first consonant that follows a vowel, R2 counted within R1."""
    if word.startswith(_REGION_PREFIXES):
        r1 = next(len(prefix) for prefix in _REGION_PREFIXES if word.startswith(prefix))
    else:
        r1 = _after_vowel_consonant(word, 0)
    return r1, _after_vowel_consonant(word, r1)


def _after_vowel_consonant(word: str, start: int) -> int:
    for i in range(start + 1, len(word)):
        if word[i] not in _VOWELS and word[i - 1] in _VOWELS:
            return i + 1
    return len(word)


def _has_vowel(part: str) -> bool:
    return not _VOWELS.isdisjoint(part)


def _ends_in_short_syllable(word: str) -> bool:
    if len(word) == 2:
        return word[0] in _VOWELS and word[1] not in _VOWELS
    return (
        len(word) > 2
        and word[-1] not in _VOWELS
        and word[-1] not in "wxY"
        and word[-2] in _VOWELS
        and word[-3] not in _VOWELS
    )


def _step_1a(word: str) -> str:
    """Plurals."""
    if not word.endswith(("s", "ied")):
        return word
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith(("us", "ss")) or not _has_vowel(word[:-2]):
        return word
    return word[:-1]


def _step_1b(word: str, r1: int) -> str:
    """Past tenses and participles."""
    for ending in ("eedly", "eed"):
        if word.endswith(ending):
            return word[: -len(ending)] + "ee" if len(word) - len(ending) >= r1 else word
    for ending in ("ingly", "edly", "ing", "ed"):
        if word.endswith(ending):
            base = word[: -len(ending)]
            return _repair(base, r1) if _has_vowel(base) else word
    return word


def _repair(base: str, r1: int) -> str:
    """Give back the e that was lost, or drop the doubled consonant: hop(p)ing, hop(e)ing."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if base[-2:] in _DOUBLES:
        return base if len(base) == 3 and base[0] in "aeo" else base[:-1]
    if r1 >= len(base) and _ends_in_short_syllable(base):
        return base + "e"
    return base


def _replace_ending(word: str, endings: dict[str, str], *, r1: int, r2: int) -> str:
    for size in range(min(7, len(word)), 1, -1):
        ending = word[-size:]
        replacement = endings.get(ending)
        if replacement is None:
            continue
        start = len(word) - size
        allowed = start >= r1 and (
            (ending != "li" or word[start - 1] in _LI_ENDINGS)
            and (ending != "ogi" or word[start - 1] == "l")
            and (ending != "ative" or start >= r2)
        )
        return word[:start] + replacement if allowed else word
    return word


def _step_4(word: str, r2: int) -> str:
    for ending in _STEP_4:
        if word.endswith(ending):
            start = len(word) - len(ending)
            removable = start >= r2 and (ending != "ion" or word[start - 1] in "st")
            return word[:start] if removable else word
    return word


def _step_5(word: str, r1: int, r2: int) -> str:
    last = len(word) - 1
    if word[last] == "e" and (last >= r2 or (last >= r1 and not _ends_in_short_syllable(word[:last]))):
        return word[:last]
    if word[last] == "l" and last >= r2 and word[last - 1] == "l":
        return word[:last]
    return word
