"""Memories and sessions as a folder of Markdown, for people to read. Nothing reads it back."""
