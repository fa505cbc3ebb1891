"""Claude Code's transcripts: one JSONL file for each session, and for each sub-agent of newer versions."""
