"""The real things behind the ports: disks, indexes, models."""
