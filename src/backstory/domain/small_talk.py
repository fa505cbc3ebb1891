"""Words that keep a conversation going and ask for nothing: "ok", "continue", "try again", "thanks".

Unlike stop words they can be looked for; they only never make a prompt worth an unasked answer.
"""

from __future__ import annotations

from backstory.domain.stemming import stem

_WORDS = """
    ok okay k yes yeah yep yup no nope nah sure fine right correct exactly agreed lgtm
    thanks thank thx ty cheers sorry hi hello hey bye welcome
    good great nice cool perfect awesome excellent wonderful better looks look
    go ahead proceed continue carry keep going next again now then later back done ready finish finished
    try retry do it run stop wait hold hmm well actually really maybe
    one ones thing things something anything everything else way bit rest
    let lets want wants need needs see get got make made use used say said think know tell show give take
    ja nein danke weiter gut genau bitte oui non merci si gracias vale bueno
"""
SMALL_TALK = frozenset(stem(word) for word in _WORDS.split())
"""As tokens, the way ``text.analyse`` makes them."""
