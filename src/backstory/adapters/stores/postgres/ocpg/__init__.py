"""An ocpg database kept in step with the store: read into memories, and written so that ocpg reads it.

``layout`` recognises it, ``reading`` and ``writing`` translate, ``links`` remember what both sides said last, ``pull``
and ``push`` bring one side to the other, ``connection`` decides when. ocpg's tables are never altered.
"""
