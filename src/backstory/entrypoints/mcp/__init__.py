"""The tools over the Model Context Protocol. Only a process that serves it imports what is in here: the SDK is slow."""
