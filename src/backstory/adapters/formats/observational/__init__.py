"""The stores of opencode-observational-memory: the states of sessions as JSON files, read and written."""
