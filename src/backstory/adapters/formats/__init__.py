"""Formats of other products, a folder or file each: how their stores are found, read and written."""
