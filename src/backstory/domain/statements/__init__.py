"""What a conversation states outright, found by rules: what is kept of it where no language model is.

Fewer statements and surer ones. ``wording.py`` knows the words that make a sentence a lasting statement, a rejection or
an agreement; ``exchange.py`` reads what was said in turns; ``stated.py`` decides what of it is kept.
"""

from backstory.domain.statements.stated import StatedFact, stated

__all__ = ["StatedFact", "stated"]
