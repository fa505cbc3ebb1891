"""One folder or file for each place where memories can live."""
