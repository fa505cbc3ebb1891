"""ocpg's memories in and out: its dumps, CSV files and databases, in each of its three layouts.

``rows`` says what its words and columns mean, here and for a database kept in step with the store
(``stores/postgres/ocpg``). ``values``, ``characters``, ``tokens``, ``script``, ``csv_text`` and ``database`` take its
sources apart, ``reader`` makes memories of them; ``exported`` and ``writer`` go the other way.
"""
