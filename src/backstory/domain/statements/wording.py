"""The words by which a sentence is a lasting statement, and those by which it is none. One sentence at a time.

English first, then German; of other languages the words that make a rule, a refusal or an agreement.
"""

from __future__ import annotations

import re
from functools import cache


def is_rule(sentence: str) -> bool:
    """Whether it says what shall always or never be, what must or may be, or what is preferred."""
    return any_of(_RULES).search(sentence) is not None


def is_order(sentence: str) -> bool:
    """Whether it begins as a rule, so that it gives one and does not complain of what always happens."""
    return any_of(_ORDERS).match(sentence) is not None


def is_decision(sentence: str) -> bool:
    """Whether it says what was decided, or what to use, keep or leave."""
    return any_of(_DECISIONS).search(sentence) is not None


def is_cause(sentence: str) -> bool:
    """Whether it says why something is, or was, as it is."""
    return any_of(_CAUSES).search(sentence) is not None


def is_being(sentence: str) -> bool:
    """Whether it says what something is, has or does."""
    return any_of(_BEING).search(sentence) is not None


def is_claim(sentence: str, *, agreed: bool = False) -> bool:
    """Whether it claims anything for certain: no question, guess or wish, nothing that might be. Where it was
    ``agreed`` to, what somebody would do counts as what is done."""
    if is_question(sentence):
        return False
    conditional = not agreed and any_of(_WOULD).search(sentence) is not None
    return not (conditional or is_guess(sentence))


def is_question(sentence: str) -> bool:
    """Whether it asks, with a question mark or, as people type, without one."""
    return sentence.rstrip(" \"')*\u201d").endswith(("?", "\uff1f")) or any_of(_ASKING).match(sentence) is not None


def is_guess(sentence: str) -> bool:
    """Whether it says so itself that it may not be so."""
    return any_of(_UNSURE).search(sentence) is not None


def is_passing(sentence: str) -> bool:
    """Whether it tells of this moment or of this session's work: what was run, what is red, what comes next."""
    return any_of(_PASSING).search(sentence) is not None


def is_passing_state(statement: str) -> bool:
    """Whether all that a statement tells is a state that will be over tomorrow: a red test, a queued job."""
    return any_of(_STATES).search(statement) is not None


def is_for_assistants(statement: str) -> bool:
    """Whether a statement orders an assistant to remember, or tells what assistants are to do."""
    return any_of(_FOR_ASSISTANTS).search(statement) is not None


def is_trouble(sentence: str) -> bool:
    """Whether it reports what does not work, as the errand of a session begins."""
    return any_of(_TROUBLE).search(sentence) is not None


def is_errand(sentence: str) -> bool:
    """Whether it sends the assistant to do something that is over once it is done."""
    return any(any_of(_ERRANDS).match(clause) for clause in sentence.split(", "))


def is_about_agents(sentence: str) -> bool:
    """Whether it tells of, or orders, assistants and their memory: nothing of that is a fact about a project."""
    return any_of(_AGENTS).search(sentence) is not None


def points_elsewhere(sentence: str) -> bool:
    """Whether its subject, or what it wants done, is a word that stands for something said before."""
    return any_of(_POINTING).match(sentence) is not None


def dictates(sentence: str) -> bool:
    """Whether it gives words to be written somewhere, which say nothing themselves."""
    return any_of(_DICTATING).search(sentence) is not None


@cache
def any_of(wordings: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern of several, in which a straight apostrophe stands for a curled one as well."""
    return re.compile("|".join(wordings).replace("'", "['\u2019]"), re.IGNORECASE)


def _words(*alternatives: str) -> str:
    return rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)"


_RULES = (
    _words(
        r"always|never(?! (?:mind|heard|seen|knew|said|asked|worked|did|had|got|saw|used to))|must(?:n't| not)?",
        r"(?:are|is) (?:not )?(?:allowed|forbidden|required|mandatory|to be)|may (?:only|not)|need not|rule is"
        r"|only .{1,40} (?:may|can)"
        r"|policy is",
        r"only (?:ever|if|when|via|through|after|with|in|on|behind|by|for|once)|from now on|going forward"
        r"|in (?:the )?future",
        r"every (?:commit|release|pr|pull request|migration|change|new)|by (?:default|convention)|the default",
        r"(?:ask|check|talk) (?:(?:me|us|first|with me) )?before|without (?:asking|approval|review)|at (?:most"
        r"|least)",
        r"no more than|no .{1,60}, ever|(?:i|we)(?:'d)? (?:prefer|always want|rather)|(?:don't|dont"
        r"|do not) (?:ever|[^.,;]{1,60} again)|should (?:always"
        r"|never)",
        r"there should be|(?:have|has|needs?) to be|make sure",
    ),
    _words(
        r"immer|nie(?:mals)?|muss|müssen|darf|dürfen|grundsätzlich|ab (?:jetzt|sofort)|künftig|höchstens|mindestens",
        r"nur (?:noch|wenn|mit|über|in|im)|standardmäßig|bevorzuge|lieber|nicht (?:anfassen|ändern|verwenden"
        r"|benutzen)",
        r"gar nicht",
    ),
    _words(
        r"toujours|jamais|doit|doivent|il faut|dorénavant|siempre|nunca|debe(?:n|mos)?|a partir de ahora|sempre|deve",
        r"devem|d'ora in poi|altijd|nooit|moet|zawsze|nigdy|musi|всегда|никогда|нельзя|должн\w+|завжди|ніколи",
    ),
    r"必须|必須|禁止|一律|总是|總是|不要|必ず|常に|항상|반드시|금지",
)
_DECISIONS = (
    _words(
        r"let's (?:go with|use|keep|stick|take|stay)|(?:we|i)(?:'ll| will|'re going to|'ve| have)? (?:go with"
        r"|stick with",
        r"stick to|use|keep|stay (?:with|on)|agreed|decided|chose|picked|settled|switched|moved|dropped)|decided"
        r"|decision",
        r"agreed (?:on|that|with)|instead(?: of)?|rather than|no longer|not any ?more|stays?|is (?:gone|dead|banned)",
    ),
    r"(?:^|[,;:.] |\band |\bbut |\bso |\bthen |\bwould |\d )(?:use|keep|drop|leave|enforce|refuse|return|reject"
    r"|exclude|include"
    r"|change (?:it )?to|switch to|set|lower|raise|cap|store|name|throw|make|put|count|treat|map|mask)\b(?=\s+\S)",
    _words(
        r"wir (?:nehmen|verwenden|nutzen|benutzen|bleiben|machen|wollen)|entschieden|beschlossen|so lassen"
        r"|stattdessen",
        r"statt|sondern",
    ),
)
_CAUSES = (
    _words(
        r"because|since (?!last|yesterday|then|monday|tuesday|wednesday|thursday|friday|january|\d)|otherwise"
        r"|so that",
        r"the (?:reason|cause|culprit|root cause)|caused by|due to|c[ao]mes? from|turn(?:s|ed) out|(?:that's"
        r"|that is) why",
        r"which means|which is why|means that|thanks to|therefore|else (?:we|it|they|the)|they corrupted|so it",
    ),
    _words(r"weil|sonst|dadurch|deshalb|daher|dann verlieren|wegen|der grund|denn|bringt nichts|kommt von"),
    _words(r"parce que|porque|perché|omdat|ponieważ|потому что"),
    r"因为|因為|なぜなら|때문",
)
_BEING = (
    _words(
        r"is|are|was|were|has|have|had|isn't|aren't|wasn't|lives?|runs?|used?|uses|needs?|expects?|returns?"
        r"|accepts?|signs?",
        r"sends?|reads?|writes?|stores?|holds?|takes?|counts?|means?|goes?|costs?|contains?|comes?|belongs?"
        r"|wants?|works?",
        r"checks?|supports?|do(?:es)?|don't|doesn't|gets?|lies|sits|points?|blocks?|breaks?|kills?|reduces?|repeats?",
        r"drops?|keeps?|owns?|needed|requires?|decides?|allows?|limits?|serves?|listens?|builds?|deploys?|skips?"
        r"|stops?",
    ),
    _words(
        r"ist|sind|war|waren|hat|haben|liegt|läuft|nutzt|braucht|kostet|gilt|heißt|kommt|steht|loggen|gehört"
        r"|macht"
    ),
    r" (?:=|->|→) ",
)
_ASKING = (
    r"\s*(?:(?:and|but|so|ok|hm+|also|und|aber),? )?(?:could it be|can (?:you|we|it)|could (?:you|we)"
    r"|would (?:you|it)|do (?:we|you|i)"
    r"|does (?:it|the|this|that)|is (?:it|there|that|this|the) [^.,:]{0,80}$(?<!\.)|are (?:there|we|they)"
    r"|should (?:we|i|it)|shall (?:we|i)"
    r"|what(?:'s| about| if| is| are| does| do)?|why|how|where|which|who|when (?:do|does|did|is|are|will)|wie"
    r"|warum|was|wo|wer|wann"
    r"|kann|können|soll(?:en)? (?:wir|ich))(?!\w)(?=[^.!]*$)",
)
_UNSURE = (
    _words(
        r"must be (?:one|some)|maybe|perhaps|possibly|probably|presumably|might|could(?:n't)?|i'd say",
        r"i (?:think|guess|suppose|believe|assume|wonder|suspect|hope|doubt)|not sure|unsure|suspects?|hypothes\w+",
        r"candidates?|what if|if we|let's see|either .{1,60} or|options? (?:is|are|would)|seems?|looks like"
        r"|apparently",
        r"assuming|in theory|tbd|tentative\w*|one day|some day|eventually|claims?|strange|what about",
    ),
    _words(
        r"vielleicht|eventuell|vermutlich|wahrscheinlich|womöglich|könnte\w*|hätte\w*|ich (?:glaube|denke|meine"
        r"|tippe)",
        r"kandidat\w*|man könnte|angeblich\w*",
    ),
    _words(r"peut-être|quizás?|tal vez|forse|talvez|misschien|может|возможно"),
)
_WOULD = (
    _words(
        r"(?:we|you|one|it|that|there) would|would be|i'd|i would|wouldn't|proposal|suggestion|vorschlag"
        r"|ich würde"
    ),
)
_PASSING = (
    _words(
        r"(?<!\()(?<!from )now|(?<!fallback )today(?!\))|tonight|yesterday|tomorrow|currently|right now"
        r"|at the moment|for now",
        r"for the moment|lol|wtf|omg|yet|still (?:fails?|failing|open|missing|to do|red|broken|running|busy|\d+)",
        r"this (?:morning|afternoon|week|time|session)|just (?:now|ran|did)|in progress|wip|first thing|last thing",
        r"(?:is|are|was|were) (?:red|green|failing|queued|pending|running|skipped|done|ready|scheduled|committed"
        r"|busy)(?=[\s.,;:!]|$)",
        r"(?:tests?|cases?|specs?|checks?|suite|build|ci|linter|everything|both|all(?: three"
        r"| \d+)?(?: \w+)?) (?:is |are |now )?"
        r"(?:pass(?:es|ed)?|fail(?:s|ed)?|green|red|clean)|pass(?:es|ed)? now|fails? with|(?:two|three"
        r"|\d+) commits|i (?:don't|do not) like",
        r"i(?:'ll|'m| am| will|'ve| have)? (?:also )?(?:going to|run|ran|start|started|check|checked|look|looked"
        r"|add|added|change"
        r"|changed|fix|fixed|wrote|write|do|did|made|make|took|take|put|removed?|moved?|renamed?|ignored?|leave"
        r"|left|measured?"
        r"|read|saw|see|commit(?:ted)?|push(?:ed)?|split|wrapped|scheduled|forward|approve)",
        r"let me|checking|looking (?:at|into)|working on|committed|pushed|installed|removed;|skipped with|rerun"
        r"|re-run|scheduled",
        r"(?:nothing to do|to do|todo(?!\())|\d+ (?:\w+ )?(?:waiting|remaining|copying|to go)|places? left",
    ),
    _words(
        r"jetzt|heute|gestern|morgen|gerade|momentan|noch (?:nicht|immer|offen|\d+)|zuerst|als nächstes|committet"
        r"|erledigt|fertig",
        r"ich (?:messe|lege|mache|schaue|prüfe|baue|nehme|lasse|ändere)|läuft durch|unverändert",
    ),
)
_TROUBLE = (
    _words(
        r"complain\w*|slow|crash\w*|fail\w*|broken|diverge\w*|hangs?|bugs?|off by|wrong|too (?:many|much|early"
        r"|late|slow|little)",
        r"expires? too|takes? \d[\d.]* ?(?:s|ms|min|minutes|seconds)|found \d+|weird|queue up|no idea|unusable",
        r"frisst|langsam|kaputt|stürzt|fehler|hängt|zu (?:viel|früh|spät|langsam)|spinnt",
    ),
)
_ERRANDS = (
    r"(?:(?:please|then|now|and|also|ok|first|can you|could you|next|bitte|dann) )*"
    r"(?:commit|push|write|add|check|find|look|see|show|run|rerun|test|try|fix|make a (?:ticket|note|test|branch"
    r"|pr)|open|create|read"
    r"|explain|profile|measure|investigate|install|delete|rename|regenerate|merge|continue|go on|start|stop|tell"
    r"|give|list|search"
    r"|undo|revert|build|do|say|skip|move on|summari[sz]e|document|compare|schreib|such|zeig|bau|prüf|mach|teste"
    r"|finde|lösch)\w?\b",
)
_AGENTS = (
    _words(
        r"assistants?|(?:ai|llm|coding|language)[ -](?:agents?|models?|assistants?|operators?)|agents|llms?"
        r"|chatbots?|assistenten",
        r"(?:hidden|versteckte\w*) (?:text|instruction|comment|paragraph|absatz|anweisung)\w*|instructions?"
        r"|prompt injections?",
        r"(?:long-term|permanent) memory|remember (?:that|this|for)|i (?:ignored?|won't|don't take)|ich ignoriere"
        r"|system prompt",
    ),
)
_POINTING = (
    r"(?:and |but |so |also |then |yes |ok )*(?:(?:it|its|that|this|these|those|he|she|his|her|es|das (?=ist|war"
    r"|wird|muss|hat|geht|kommt|sind)|dies\w*|er|ihn)"
    r"(?:'\w+)?"
    r"|(?:put|fix|do|make|leave|take|lower|raise|set|use|keep|drop|change|move|call|undo|revert) (?:it|that|this"
    r"|them|both|those|these|all|the (?:same|full|other|whole)|only \d+)"
    r"|they|them|both|neither|only \d+|no \S+ either|the (?:same|rest|others?|first|second|third|former|latter)"
    r"|(?:for|after|before|with|dropping|keeping) (?:only )?(?:that|this|those|these|the (?:first|second|third|other))"
    r"|dann|so lassen|(?:der |die |das )?rest)(?!\w)",
    r"\s*-?\d[\d.,]* it is\b",
)
_DICTATING = (r":\s*[\"\u201c\u201e\u00ab][^\"\u201c\u201d\u201e\u00ab\u00bb]*[\"\u201c\u201d\u00bb][.!]?$",)
_STATES = (
    r"\b(?:is|are|was|were) (?:\w+ )?(?:red|failing|queued|pending|running|skipped|scheduled|busy|in progress"
    r"|being \w+ed"
    r"|waiting|rebooting|restarted by)\b(?=[^,;:]{0,30}$)",
    r"\b\d+ (?:of|out of) \d+ .{0,40}\b(?:fail|pass|are (?:red|green|done))\w*",
    r"\b(?:still|yet) (?:has|have|to be|needs?|fails?|missing|open|pending)\b|\b(?:has|have|had|needs?) (?:still"
    r"|yet) to\b|\bnot (?:done|finished|merged"
    r"|tested|measured|deployed) yet\b|\bstill (?:has|have) to\b",
    r"\b(?:currently|right now|at the moment|tonight|tomorrow|gerade|momentan)\b",
    r"\bnot (?:\w+ )?\w+ed yet\b|\bnot (?:done|run|sent|built|written|begun) yet\b|\bnoch nicht\b",
    r"\brestarted? (?:by a timer )?at \d",
)
_FOR_ASSISTANTS = (
    r"(?:^|[.:;!] )(?:please )?(?:always )?(?:remember|memori[sz]e|don't forget|keep in mind|merke? dir)\b",
    r"\b(?:(?:ai|llm|coding|automated) (?:assistants?|agents?|tools?|models?|operators?)|ai-\w+|assistants?"
    r"|llms?) (?:must|should|shall|have to"
    r"|need to|are to|may|can|reading)\b",
)
_ORDERS = (
    r"(?:please |bitte )?(?:always|never|do not ever|don't ever|from now on|immer|nie(?:mals)?|ab (?:jetzt"
    r"|sofort))\b",
)
