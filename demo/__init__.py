"""The main job, shown: an agent that remembers, in the real OpenCode, with a scripted model on this machine."""
