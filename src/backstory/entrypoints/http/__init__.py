"""The server for agents that speak HTTP: the tools, what agents read, and a stream of changes."""
