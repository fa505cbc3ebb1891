-- What keeps memories and the rows of an ocpg database in step. Run once, where such a database is found; ocpg's own
-- tables stay as they are.

-- Whose it is: its rows are one tenant's, and nobody else's. place is the schema of ocpg's tables.
CREATE TABLE ocpg_source (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    owner    text COLLATE "C" NOT NULL,
    place    text NOT NULL
);

-- One row for each of ocpg's. version is its xmin as of the last look. theirs and ours are what both sides said then,
-- texts as digests, so that it can be told which side changed what; revision is the memory's of that moment. memory is
-- NULL for a row that could not become one, and note says why. present is false once the row is gone; removed_here,
-- where that was our decision.
CREATE TABLE ocpg_links (
    tenant       text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    ocpg_id      bigint NOT NULL,
    memory       text COLLATE "C",
    revision     bigint NOT NULL,
    version      text NOT NULL,
    theirs       jsonb NOT NULL,
    ours         jsonb,
    access_count bigint NOT NULL,
    recalled     bigint NOT NULL,
    present      boolean NOT NULL,
    removed_here boolean NOT NULL,
    note         text,
    PRIMARY KEY (tenant, ocpg_id),
    UNIQUE (tenant, memory)
);

-- Memories that were written, and not there yet. Triggers note them, so that no writer can forget, not even one that
-- does not keep the link. A note says why a memory is left out, until it changes again.
CREATE TABLE ocpg_pending (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    n      bigint NOT NULL,
    note   text,
    PRIMARY KEY (tenant, n)
);
CREATE INDEX ocpg_pending_unwritten ON ocpg_pending (tenant, n) WHERE note IS NULL;

-- Sessions that a memory reached in a transaction, until it is written.
CREATE TABLE ocpg_pending_sessions (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    n       bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, n, session)
);

-- A memory that is removed, as when a backup is restored, says nothing about its row: that is looked at again.
-- SECURITY DEFINER: whoever may write memories must not fail for want of rights to these tables.
CREATE FUNCTION note_for_ocpg() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    owner text := (SELECT s.owner FROM ocpg_source s);
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE ocpg_links SET version = '' WHERE tenant = old.tenant AND memory = old.id;
        DELETE FROM ocpg_pending WHERE tenant = old.tenant AND n = old.n;
    ELSIF new.tenant = owner THEN
        INSERT INTO ocpg_pending (tenant, n) VALUES (new.tenant, new.n)
            ON CONFLICT (tenant, n) DO UPDATE SET note = NULL;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memories_noted_for_ocpg AFTER INSERT OR DELETE OR UPDATE OF revision, recalled ON memories
    FOR EACH ROW EXECUTE FUNCTION note_for_ocpg();

-- BEFORE: it also has to see a session that is there already, because a block showed it the memory.
CREATE FUNCTION note_session_for_ocpg() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
    IF new.tenant = (SELECT s.owner FROM ocpg_source s) THEN
        INSERT INTO ocpg_pending_sessions (tenant, n, session) VALUES (new.tenant, new.n, new.session)
            ON CONFLICT DO NOTHING;
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER memory_sessions_noted_for_ocpg BEFORE INSERT ON memory_sessions
    FOR EACH ROW EXECUTE FUNCTION note_session_for_ocpg();
