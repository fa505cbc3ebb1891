"""Memories on a git ref of their own, beside the code they are about."""
