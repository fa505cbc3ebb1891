-- What was made from which memory, and what is in conflict: few rows among many, looked up at every replacement.

-- A text that nothing else in a provenance's JSON can look like; the query says it in the same words.
CREATE INDEX memories_derived ON memories (learned_us DESC, n DESC)
    WHERE instr(provenance, '"derived_from":["') > 0;
CREATE INDEX memories_in_conflict ON memories (learned_us DESC, n DESC) WHERE state = 'conflicted';
