"""The contracts of the ports as checks, for every backend, ours and others'.

Run each check of ``BACKEND_CHECKS`` with a function that makes a new, empty backend; see ``tests/contracts``.
"""

from __future__ import annotations

from backstory.testing.contracts.blobs import BLOB_CHECKS
from backstory.testing.contracts.change_history import CHANGE_HISTORY_CHECKS
from backstory.testing.contracts.checks import Check, Checks, MakeBackend
from backstory.testing.contracts.conversation_store import CONVERSATION_STORE_CHECKS
from backstory.testing.contracts.counters import COUNTER_CHECKS
from backstory.testing.contracts.digest_pieces import DIGEST_PIECE_CHECKS
from backstory.testing.contracts.digest_store import DIGEST_STORE_CHECKS
from backstory.testing.contracts.doubt_store import DOUBT_STORE_CHECKS
from backstory.testing.contracts.dream_store import DREAM_STORE_CHECKS
from backstory.testing.contracts.eraser import ERASER_CHECKS
from backstory.testing.contracts.evidence_index import EVIDENCE_INDEX_CHECKS
from backstory.testing.contracts.evidence_words import EVIDENCE_WORDS_CHECKS
from backstory.testing.contracts.keepsake_store import KEEPSAKE_STORE_CHECKS
from backstory.testing.contracts.ledger import LEDGER_CHECKS
from backstory.testing.contracts.memory_store import MEMORY_STORE_CHECKS
from backstory.testing.contracts.project_registry import PROJECT_REGISTRY_CHECKS
from backstory.testing.contracts.retention import RETENTION_CHECKS
from backstory.testing.contracts.selections import SELECTION_CHECKS
from backstory.testing.contracts.summaries import SUMMARY_CHECKS
from backstory.testing.contracts.text_index import TEXT_INDEX_CHECKS
from backstory.testing.contracts.vector_index import VECTOR_INDEX_CHECKS

BACKEND_CHECKS: tuple[Check, ...] = (
    *MEMORY_STORE_CHECKS,
    *CHANGE_HISTORY_CHECKS,
    *COUNTER_CHECKS,
    *SELECTION_CHECKS,
    *PROJECT_REGISTRY_CHECKS,
    *TEXT_INDEX_CHECKS,
    *VECTOR_INDEX_CHECKS,
    *CONVERSATION_STORE_CHECKS,
    *BLOB_CHECKS,
    *RETENTION_CHECKS,
    *EVIDENCE_INDEX_CHECKS,
    *EVIDENCE_WORDS_CHECKS,
    *LEDGER_CHECKS,
    *DIGEST_STORE_CHECKS,
    *DIGEST_PIECE_CHECKS,
    *DREAM_STORE_CHECKS,
    *SUMMARY_CHECKS,
    *DOUBT_STORE_CHECKS,
    *KEEPSAKE_STORE_CHECKS,
    *ERASER_CHECKS,
)

__all__ = [
    "BACKEND_CHECKS",
    "BLOB_CHECKS",
    "CHANGE_HISTORY_CHECKS",
    "CONVERSATION_STORE_CHECKS",
    "COUNTER_CHECKS",
    "DIGEST_PIECE_CHECKS",
    "DIGEST_STORE_CHECKS",
    "DOUBT_STORE_CHECKS",
    "DREAM_STORE_CHECKS",
    "ERASER_CHECKS",
    "EVIDENCE_INDEX_CHECKS",
    "EVIDENCE_WORDS_CHECKS",
    "KEEPSAKE_STORE_CHECKS",
    "LEDGER_CHECKS",
    "MEMORY_STORE_CHECKS",
    "PROJECT_REGISTRY_CHECKS",
    "RETENTION_CHECKS",
    "SELECTION_CHECKS",
    "SUMMARY_CHECKS",
    "TEXT_INDEX_CHECKS",
    "VECTOR_INDEX_CHECKS",
    "Check",
    "Checks",
    "MakeBackend",
]
