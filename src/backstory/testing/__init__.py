"""For our own tests and for authors of stores and hosts: fakes, contract checks, real programs run in isolation."""
