"""One use case a file: fetch through ports, let the domain decide, store through ports."""
