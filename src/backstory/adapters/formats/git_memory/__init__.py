"""The stores of opencode-plugin-git-memory: refs and bundles, its exports, its ancestor's files; read and written."""
