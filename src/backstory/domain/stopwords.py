"""English function words: too common to say what a text is about. What a query keeps of them is up to ``text.py``.

Words that are content in a technical text (use, set, near, new, done, never, without) are left out on purpose.
"""

from __future__ import annotations

_WORDS = """
    a an the this that these those
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
    myself yourself itself ourselves themselves
    am is are was were be been being do does did doing have has had having
    can could may might must shall should will would
    dont doesnt didnt isnt arent wasnt werent havent hasnt hadnt cant cannot couldnt shouldnt wouldnt wont
    and or nor but if then than so because as while though although
    of at by for from in into on onto to with about over under between through during upon
    not no there here what which who whom whose when where why how
    some any such each both all other own same too very just also only
    please e.g i.e etc
"""
STOP_WORDS = frozenset(_WORDS.split())

MEANT_ALONE = frozenset({"and", "or", "not", "no", "nor", "if", "but"})
"""Stop words that people do search for by themselves: the words of logic."""
