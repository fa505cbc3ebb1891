"""A digest without a model: the telling sentences of a conversation word for word, what was run, and what was changed.

``sentences.py`` cuts text, ``signs.py`` weighs a sentence, ``work.py`` reads tool parts, ``lines.py`` chooses what
fits; ``digest.py`` and ``merge.py`` put the parts together.
"""

from backstory.domain.extract.digest import extract_digest
from backstory.domain.extract.lines import EXTRACT
from backstory.domain.extract.merge import extract_merge

__all__ = ["EXTRACT", "extract_digest", "extract_merge"]
