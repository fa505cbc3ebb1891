"""The default store: one SQLite file for a person and a machine, safe with many processes."""
