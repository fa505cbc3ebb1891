"""Measurements of retrieval quality and speed. Not shipped; run from a checkout with ``python -m bench NAME``."""
