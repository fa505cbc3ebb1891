"""The tools of older products, under their own names and parameters, on this engine."""
