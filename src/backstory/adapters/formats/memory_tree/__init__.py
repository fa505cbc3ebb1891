"""The stores of opencode-memory-tree: summary trees of sessions as folders of JSON files, read and written."""
