-- Which memories each block shows, so that all showings of a memory are found at once. Triggers keep it in step.

CREATE TABLE recall_block_memories (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    memory  text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory, message)
);
CREATE INDEX recall_block_memories_by_message ON recall_block_memories (tenant, message);

CREATE FUNCTION note_block_memories() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM recall_block_memories WHERE tenant = old.tenant AND message = old.message;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO recall_block_memories (tenant, memory, message)
            SELECT DISTINCT new.tenant, item ->> 'memory', new.message FROM jsonb_array_elements(new.shown) item;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER recall_blocks_added AFTER INSERT ON recall_blocks
    FOR EACH ROW EXECUTE FUNCTION note_block_memories();
CREATE TRIGGER recall_blocks_changed AFTER UPDATE OF shown ON recall_blocks
    FOR EACH ROW EXECUTE FUNCTION note_block_memories();
CREATE TRIGGER recall_blocks_removed AFTER DELETE ON recall_blocks
    FOR EACH ROW EXECUTE FUNCTION note_block_memories();
