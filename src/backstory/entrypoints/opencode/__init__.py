"""OpenCode as a host: the plugin it loads, the process behind the plugin, and their installation."""
