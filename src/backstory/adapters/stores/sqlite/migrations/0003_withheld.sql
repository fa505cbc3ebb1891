-- Until now a frozen text went on showing a memory that had been forgotten, or made private or local-only.

UPDATE recall_blocks SET text = '', silent = 'a memory in it was forgotten, or made private or local-only'
WHERE text <> '' AND EXISTS (
    SELECT 1 FROM json_each(recall_blocks.shown) item
    JOIN memories m ON m.id = json_extract(item.value, '$.memory')
    WHERE m.state = 'deleted' OR m.sensitivity <> 'normal'
);

DELETE FROM snapshots WHERE EXISTS (
    SELECT 1 FROM json_each(snapshots.shown) item
    JOIN memories m ON m.id = item.value
    WHERE m.state = 'deleted' OR m.sensitivity <> 'normal'
);

-- The few that are never offered unasked, so that "is there one?" costs no walk through all. It is used while the words
-- of a selection's condition are these.
CREATE INDEX memories_never_offered ON memories (learned_us DESC, n DESC)
    WHERE NOT (sensitivity = 'normal' AND origin IN ('agent', 'user'));
