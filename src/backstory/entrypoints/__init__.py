"""Where the outside enters: command line, tools, OpenCode, the library."""
