-- What was made from which memory, and what is in conflict: few rows among many, looked up at every replacement.

-- A text that nothing else in a provenance's JSON can look like; the query says it in the same words.
CREATE INDEX memories_derived ON memories (tenant, learned_us DESC, n DESC)
    WHERE position('"derived_from":["' IN provenance) > 0;
CREATE INDEX memories_in_conflict ON memories (tenant, learned_us DESC, n DESC) WHERE state = 'conflicted';
