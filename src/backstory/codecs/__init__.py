"""Memories as text and back: pure, tested for round trips."""
