"""The command line: one file a group of commands. They parse, call one service, and hand the result to be rendered."""
