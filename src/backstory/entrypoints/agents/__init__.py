"""Agents that call Backstory from their shell hooks, or start it as an MCP server: what they tell, and how they are
set up."""
