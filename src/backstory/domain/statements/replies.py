"""How people answer: by refusing, by agreeing, or by saying again what was said; and a sentence without its answer."""

from __future__ import annotations

from backstory.domain.statements.wording import any_of


def is_rejection(text: str) -> bool:
    """Whether a reply begins by refusing or correcting what was said before it."""
    return any_of(_REJECTING).match(text) is not None


def is_agreement(text: str) -> bool:
    """Whether a reply begins by agreeing with what was proposed or told."""
    return not is_rejection(text) and any_of(_AGREEING).match(text) is not None


def restates(sentence: str) -> bool:
    """Whether it begins as one that says in other words what was agreed or found: "understood:", "in short:"."""
    return any_of(_RESTATING).match(sentence) is not None


def as_proposed(sentence: str) -> str:
    """A proposal without the words that make it one: "I'd use X" proposes "use X"."""
    return any_of(_PROPOSING).sub("", sentence, count=1)


def without_reply(sentence: str) -> str:
    """A sentence without the words in front that only answer: "yes,", "no,", "exactly."."""
    while found := any_of(_REPLIES).match(sentence):
        sentence = sentence[found.end() :]
    return sentence.strip()


_REJECTING = (
    r"\s*(?:(?:wow|lol|wtf|hm+|ugh|oh|ah|well|ok(?:ay)?|sorry|thanks|thx)[.,!:]*\s+)*(?:(?:yes|ja)[.,!]+\s+)?(?:"
    r"no(?! (?:problem|worries|idea|need|rush|way to))|nope|nah|not (?:that|this|like|so|yet|here|in|on|the|a)"
    r"|wrong|incorrect"
    r"|(?:that|this)(?:'s| is| was) (?:wrong|not|incorrect|nonsense)|don't|dont|do not|never|stop|undo|revert"
    r"|rather|actually|instead"
    r"|please don't|only \d+|wait|hold on|nein|nee|nö|falsch|stimmt nicht|nicht|doch nicht|stopp?|lieber|non|pas"
    r"|não|нет)(?!\w)"
    r"|\s*(?:不对|不是|不要|違|违|いや|아니)",
)
_AGREEING = (
    r"\s*(?:(?:wow|lol|hm+|oh|ah|nice|thanks|thx|interesting|interessant|ugh)[.,!:]*\s+)*(?:"
    r"yes|yep|yeah|yup|ok(?:ay)?|go|do (?:it|that|so|both)|agreed|exactly|correct|right|true|good|great|sounds"
    r"|sure|perfect|fine|nice"
    r"|makes sense|fair|lgtm|please do|approved|thanks|thx|ja|jo|jawohl|genau|passt|gut|klar|stimmt"
    r"|mach\w* (?:das|es|so)|einverstanden|danke"
    r"|oui|d'accord|sí|vale|de acuerdo|sì|va bene|sim|tak|да|давай)(?![\w-])|\s*(?:好|可以|はい|네)",
)
_RESTATING = (
    r"(?:understood|ok(?:ay)?|right|got it|so|summary|in short|important|note|agreed|verstanden|wichtig|also"
    r"|kurz)\s*[:,]|(?:so|therefore|thus|also) (?=\w)",
)
_REPLIES = (
    r"\s*(?:(?:yes|yep|yeah|yup|ok(?:ay)?|no|nope|nah|go|agreed|exactly|correct|right|good|great|sure|perfect"
    r"|fine|understood|got it|wow|lol"
    r"|hm+|ugh|oh|ah|nice|thanks|thx|thank you|interesting|well|so|also|please|then|one thing|one more(?: thing)?"
    r"|ja|nein|genau|passt"
    r"|gut|klar|verstanden|danke|interessant|btw|note|important|wichtig|summary|in short|done|green|fixed"
    r"|all green|wtf|asked|asked him"
    r"|you're right|you are right|fair|true|better|on the contrary|last thing"
    r"|next)\b\s*(?:[.,!:;\u2013\u2014]+\s*|- |$)|(?:and|but|und|aber) |(?:yes|ja|ok) (?=\w))",
)
_PROPOSING = (
    r"^(?:(?:i'd|i would|i suggest(?: to)?|ich würde|proposal:|suggestion:|vorschlag:|better(?: to)?:?"
    r"|plan:)\s+)+(?:go with )?",
)
