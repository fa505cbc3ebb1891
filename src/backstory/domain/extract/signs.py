"""How much a sentence tells that may be asked for later: what was decided, and which facts it names."""

from __future__ import annotations

import re
from functools import cache

from backstory.domain.extract.sentences import is_small_talk

MAX_FACTS = 6
"""Of one sentence; what names more is a list, not worth more."""


def weight(sentence: str) -> float:
    """0 for what tells nothing, about 1 for a fact, 3 and more for a decision or correction, at most 9.

    Facts are seen in any language (numbers, paths, names of code, quotations), decisions in some dozen.
    """
    if is_small_talk(sentence):
        return 0.0
    facts = min(fact_count(sentence), MAX_FACTS)
    told = 0.75 * facts + (3.0 if is_decision(sentence) else 0.0)
    if _narration().match(sentence):
        told -= 2.0
    if sentence.endswith(("?", "？")):
        told -= 1.0
    return max(told, 0.0)


def is_decision(sentence: str) -> bool:
    """Whether it says what shall be, shall not be, or was wrong, or why."""
    return _decision().search(sentence) is not None


def decision_start(sentence: str) -> int:
    """Where the words begin that make it a decision; 0 for none."""
    found = _decision().search(sentence)
    return found.start() if found else 0


def fact_count(sentence: str) -> int:
    """How many different names and figures it holds."""
    return len({match.group().lower() for match in _fact().finditer(sentence)})


def is_error_line(line: str) -> bool:
    """Whether a line of output reports a failure."""
    return _error().search(line) is not None


@cache
def _fact() -> re.Pattern[str]:
    return re.compile(
        r"""
        https?://[^\s<>"')\]]+
        | `[^`\n]{1,120}`
        | ["“„«][^"“”„«»\n]{2,80}["”“»]
        | (?<![\w/])(?:[\w.@~-]{1,80}/)+[\w.@-]{0,80}          # paths
        | \b[\w-]{1,60}\.(?:[a-z]{1,4}\d?|[a-z]+rc|lock|toml|yaml|json|html)\b  # names of files
        | (?<!\w)--?[a-zA-Z][\w-]{0,60}                        # flags
        | \b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b                      # snake_case
        | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b                        # camelCase
        | \b(?:[A-Z][a-z0-9]+){2,}\b                           # CamelCase
        | \b[A-Z]{2,}[A-Z0-9-]*\b
        | [#@]\w+
        | \b[0-9a-f]{7,40}\b
        | \bv?\d+(?:[.,:/-]\d+)*\w{0,4}%?
        | (?<=[a-z,]\s)[A-Z][a-z]+                             # a name inside a sentence
        """,
        re.VERBOSE,
    )


@cache
def _decision() -> re.Pattern[str]:
    english = (
        r"instead|rather than|no longer|not any ?more|never|always|must(?:n['’]t)?|should(?:n['’]t)?|don['’]t|do not"
        r"|cannot|can['’]t|won['’]t|decid\w+|decision|agreed?|actually|correction|wrong|mistake|prefer\w*|because|avoid"
        r"|root cause|caused by|turn(?:s|ed) out|the fix|fixed by|switch(?:ed|ing)? (?:to|from)|mov(?:e|ed|ing) to"
        r"|renam\w+|replac\w+|chang\w+ (?:\S+ ){0,4}(?:to|from)|we(?:['’]ll| will)? (?:now )?use|us(?:e|ing) \S+ for"
        r"|only|keep|remember|from now on|deadline|due|require\w*|not allowed|forbidden|make sure|so that|workaround"
        r"|todo|open question|still (?:open|missing|to do|fails)|remaining|next step|blocked|deprecat\w+|default"
    )
    european = (
        r"nicht|nie(?:mals)?|immer|stattdessen|statt|sondern|weil|entschieden|entscheidung|muss|müssen|soll(?:en|te)?"
        r"|darf|kein\w*|falsch|lieber|nur|ab jetzt|jamais|toujours|plutôt|au lieu|parce que|décid\w+|doit|il faut"
        r"|ne pas|seulement|désormais|nunca|siempre|en (?:lugar|vez) de|porque|decid\w+|debe\w*|no uses|solo|sólo"
        r"|sempre|mai|invece|perché|deciso|deve|em vez|nooit|altijd|in plaats|omdat|besloten|moet|nigdy|zawsze|zamiast"
        r"|ponieważ|nie używaj|aldrig|alltid|istället|никогда|всегда|вместо|потому что|решили|нельзя|должн\w+|только"
        r"|ніколи|завжди|замість|asla|her zaman|yerine|çünkü"
    )
    unspaced = (
        r"不要|不能|必须|必須|改用|改成|而不是|因为|因為|决定|決定|只用|禁止|しない|代わり|必ず|ください"
        r"|하지 ?마|대신|항상|때문"
    )
    return re.compile(rf"\b(?:{english}|{european})\b|{unspaced}", re.IGNORECASE)


@cache
def _narration() -> re.Pattern[str]:
    return re.compile(
        r"(?:ok(?:ay)?|sure|great|good|perfect|now|alright|right|so|first|next|then)?[,.!: ]*"
        r"(?:let me|let['’]s|i['’]ll|i will|i['’]m going to|i am going to|i need to|i should|now i|looking at"
        r"|let us|ich werde|lass mich|je vais|voy a)\b",
        re.IGNORECASE,
    )


@cache
def _error() -> re.Pattern[str]:
    return re.compile(
        r"\b\w*(?:Error|Exception)\b|\b(?:error|fail(?:ed|ure|s)?|fatal|panic(?:ked)?|traceback|cannot|can't|could not"
        r"|unable|not found|no such|denied|refused|timed? ?out|undefined|unexpected|invalid|exhausted|conflict"
        r"|aborted|killed|segmentation|missing|fehler|erreur|échec)\b|错误|失败|エラー|失敗|ошибка",
        re.IGNORECASE,
    )
