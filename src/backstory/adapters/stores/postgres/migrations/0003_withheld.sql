-- The few that are never offered unasked, so that "is there one?" costs no walk through all. It is used while the words
-- of a selection's condition are these.
CREATE INDEX memories_never_offered ON memories (tenant, learned_us DESC, n DESC)
    WHERE NOT (sensitivity = 'normal' AND origin IN ('agent', 'user'));
