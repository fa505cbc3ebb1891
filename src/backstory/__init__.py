"""Persistent memory for coding agents."""

from backstory.__about__ import __version__

__all__ = ["__version__"]
