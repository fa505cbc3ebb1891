"""The stores of opencode-memory in and out: ``store.json`` of versions 1 and 2, with state and summary beside it.

``entries`` says what an entry's fields mean here, ``salvage`` what is left of a damaged file, ``keeping`` what has no
place among memories; ``reader`` and ``writer`` are the two ways.
"""
