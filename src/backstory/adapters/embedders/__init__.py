"""Embedders, one provider a file. Nothing is imported here: each costs time that only its user should pay."""
