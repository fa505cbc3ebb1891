"""OpenCode's own history: sessions, sub-agents included, from its database, its older files, or a running server."""
