-- Which memories each block shows, so that all showings of a memory are found at once. Triggers keep it in step.

CREATE TABLE recall_block_memories (
    memory  TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (memory, message)
) WITHOUT ROWID;
CREATE INDEX recall_block_memories_by_message ON recall_block_memories (message);

INSERT OR IGNORE INTO recall_block_memories (memory, message)
    SELECT json_extract(item.value, '$.memory'), block.message FROM recall_blocks block, json_each(block.shown) item;

CREATE TRIGGER recall_blocks_added AFTER INSERT ON recall_blocks BEGIN
    INSERT OR IGNORE INTO recall_block_memories (memory, message)
        SELECT json_extract(item.value, '$.memory'), new.message FROM json_each(new.shown) item;
END;

CREATE TRIGGER recall_blocks_changed AFTER UPDATE OF shown ON recall_blocks BEGIN
    DELETE FROM recall_block_memories WHERE message = new.message;
    INSERT OR IGNORE INTO recall_block_memories (memory, message)
        SELECT json_extract(item.value, '$.memory'), new.message FROM json_each(new.shown) item;
END;

CREATE TRIGGER recall_blocks_removed AFTER DELETE ON recall_blocks BEGIN
    DELETE FROM recall_block_memories WHERE message = old.message;
END;
