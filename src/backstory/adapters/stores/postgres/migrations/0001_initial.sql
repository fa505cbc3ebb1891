-- Memories, their history, their indexes, and the evidence they come from.
-- Times are microseconds since 1970-01-01 UTC. Text that is sorted or compared is in the "C" collation, so that every
-- server sorts as SQLite does.
--
-- Each row belongs to a tenant, and so does each key. row_security.sql, run after every file here, gives each table with
-- a tenant column the policy that shows a transaction the rows of its own tenant only.

-- One row for each tenant. A writer of memories or vectors locks it first and to the end of its transaction, so that
-- numbers are given in the order of commits and never twice. The sums are those over memory_terms.
CREATE TABLE tenants (
    tenant     text COLLATE "C" PRIMARY KEY DEFAULT current_setting('backstory.tenant'),
    last_n     bigint NOT NULL DEFAULT 0,
    documents  bigint NOT NULL DEFAULT 0,
    tokens     bigint NOT NULL DEFAULT 0,
    analyser   integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE projects (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id         text COLLATE "C" NOT NULL,
    name       text NOT NULL,
    root       text NOT NULL,
    created_us bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE project_aliases (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    alias      text COLLATE "C" NOT NULL,
    project    text COLLATE "C" NOT NULL,
    created_us bigint NOT NULL,
    PRIMARY KEY (tenant, alias),
    FOREIGN KEY (tenant, project) REFERENCES projects (tenant, id)
);
CREATE INDEX project_aliases_by_project ON project_aliases (tenant, project);

-- n is what people type as #n. normalised is content as the analyser normalises it, for searches within the text.
CREATE TABLE memories (
    tenant        text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    n             bigint NOT NULL,
    id            text COLLATE "C" NOT NULL,
    revision      bigint NOT NULL,
    content       text COLLATE "C" NOT NULL,
    content_key   text COLLATE "C" NOT NULL,
    normalised    text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    visibility    text COLLATE "C" NOT NULL CHECK (visibility IN ('global', 'project', 'session')),
    project       text COLLATE "C",
    session       text COLLATE "C",
    area          text COLLATE "C",
    issue         text COLLATE "C",
    tier          text COLLATE "C" NOT NULL CHECK (tier IN ('core', 'archival', 'temporary')),
    pinned        smallint NOT NULL CHECK (pinned IN (0, 1)),
    expires_us    bigint,
    sensitivity   text COLLATE "C" NOT NULL CHECK (sensitivity IN ('normal', 'private', 'local-only')),
    state         text COLLATE "C" NOT NULL CHECK (state IN ('active', 'conflicted', 'superseded', 'deleted')),
    superseded_by text COLLATE "C",
    status        text NOT NULL,
    origin        text COLLATE "C" NOT NULL,
    source        text COLLATE "C" NOT NULL,
    confidence    double precision NOT NULL,
    weight        double precision NOT NULL,
    namespace     text COLLATE "C" NOT NULL,
    provenance    text NOT NULL,
    learned_us    bigint NOT NULL,
    updated_us    bigint NOT NULL,
    confirmed_us  bigint NOT NULL,
    surfaced_us   bigint,
    used_us       bigint,
    helpful       bigint NOT NULL DEFAULT 0,
    irrelevant    bigint NOT NULL DEFAULT 0,
    surfaced      bigint NOT NULL DEFAULT 0,
    recalled      bigint NOT NULL DEFAULT 0,
    sessions      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, n),
    UNIQUE (tenant, id)
) WITH (fillfactor = 90);
CREATE INDEX memories_by_time ON memories (tenant, learned_us DESC, n DESC);
CREATE INDEX memories_by_project ON memories (tenant, project, learned_us DESC);
CREATE INDEX memories_by_text ON memories (tenant, content_key);
CREATE INDEX memories_by_replacement ON memories (tenant, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE memory_tags (
    tenant   text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    n        bigint NOT NULL,
    position integer NOT NULL,
    tag      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, n, position),
    FOREIGN KEY (tenant, n) REFERENCES memories (tenant, n)
);
CREATE INDEX memory_tags_by_tag ON memory_tags (tenant, tag, n);

-- Which sessions a memory reached: a session counts once.
CREATE TABLE memory_sessions (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    n       bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, n, session),
    FOREIGN KEY (tenant, n) REFERENCES memories (tenant, n)
);

CREATE TABLE changes (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id      text COLLATE "C" NOT NULL,
    at_us   bigint NOT NULL,
    author  text COLLATE "C" NOT NULL,
    action  text COLLATE "C" NOT NULL,
    reason  text,
    session text COLLATE "C",
    undoes  text COLLATE "C",
    key     text COLLATE "C",
    PRIMARY KEY (tenant, id),
    UNIQUE (tenant, key),
    FOREIGN KEY (tenant, undoes) REFERENCES changes (tenant, id)
);
CREATE INDEX changes_by_time ON changes (tenant, at_us DESC, id DESC);

CREATE TABLE change_edits (
    tenant   text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    change   text COLLATE "C" NOT NULL,
    position integer NOT NULL,
    n        bigint NOT NULL,
    before   jsonb,
    after    jsonb NOT NULL,
    PRIMARY KEY (tenant, change, position),
    FOREIGN KEY (tenant, change) REFERENCES changes (tenant, id),
    FOREIGN KEY (tenant, n) REFERENCES memories (tenant, n)
);
CREATE INDEX change_edits_by_memory ON change_edits (tenant, n);

-- The inverted index of the analyser's tokens: which memory holds a term how often, and how many tokens it has. A plain
-- table, since a tsvector has no room for more than 255 positions of a term, and since row-level security keeps every
-- role that is bound by it from a GIN index over one: "@@" is not leakproof, while "=" is. The first index answers
-- alone; the second finds the terms of a memory.
CREATE TABLE memory_terms (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    term   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    count  integer NOT NULL,
    length integer NOT NULL,
    PRIMARY KEY (tenant, term, n) INCLUDE (count, length)
);
CREATE INDEX memory_terms_by_memory ON memory_terms (tenant, n);

-- In how many memories each term is, kept by the writer, so that a search need not count.
CREATE TABLE term_frequencies (
    tenant    text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    term      text COLLATE "C" NOT NULL,
    documents bigint NOT NULL,
    PRIMARY KEY (tenant, term)
) WITH (fillfactor = 70);

-- One vector of a memory for each model, as little-endian float16; words is a row of 128 int8 for each of its words, of
-- which only the direction counts, NULL where the model gives none. These columns are all a server without pgvector
-- needs; pgvector.sql adds, where there is one, what pgvector searches. seq tells a running process what is new: it is
-- given under the lock on tenants, so that it rises in the order of commits.
CREATE TABLE vectors (
    tenant    text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    seq       bigint GENERATED BY DEFAULT AS IDENTITY,
    n         bigint NOT NULL,
    model     text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    vector    bytea NOT NULL,
    words     bytea,
    PRIMARY KEY (tenant, seq),
    UNIQUE (tenant, n, model),
    FOREIGN KEY (tenant, n) REFERENCES memories (tenant, n)
);
CREATE INDEX vectors_by_model ON vectors (tenant, model, seq);
ALTER TABLE vectors ALTER COLUMN vector SET STORAGE EXTERNAL, ALTER COLUMN words SET STORAGE EXTERNAL;

-- Counts removals, so that a process with the vectors in memory sees that some are gone. A tenant without a row has 0.
CREATE TABLE vector_removals (
    tenant text COLLATE "C" PRIMARY KEY DEFAULT current_setting('backstory.tenant'),
    total  bigint NOT NULL
);
CREATE FUNCTION count_removed_vectors() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO vector_removals AS known (tenant, total)
        SELECT tenant, count(*) FROM removed GROUP BY tenant
        ON CONFLICT (tenant) DO UPDATE SET total = known.total + excluded.total;
    RETURN NULL;
END $$;
CREATE TRIGGER vectors_removed AFTER DELETE ON vectors
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removed_vectors();

CREATE TABLE sessions (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id         text COLLATE "C" NOT NULL,
    project    text COLLATE "C",
    host       text COLLATE "C" NOT NULL,
    directory  text NOT NULL,
    parent     text COLLATE "C",
    title      text,
    created_us bigint NOT NULL,
    updated_us bigint NOT NULL,
    deleted_us bigint,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_by_time ON sessions (tenant, updated_us DESC);

-- No foreign key to sessions: a host may tell a message before its session.
CREATE TABLE messages (
    tenant       text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id           text COLLATE "C" NOT NULL,
    session      text COLLATE "C" NOT NULL,
    role         text COLLATE "C" NOT NULL,
    agent        text,
    model        text,
    created_us   bigint NOT NULL,
    completed_us bigint,
    removed_us   bigint,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX messages_by_session ON messages (tenant, session, created_us, id);

CREATE TABLE parts (
    tenant    text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id        text COLLATE "C" NOT NULL,
    message   text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    text      text NOT NULL,
    tool      text,
    synthetic smallint NOT NULL CHECK (synthetic IN (0, 1)),
    detail    text,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX parts_by_message ON parts (tenant, message, id);

-- What was put beside a user message, replayed byte for byte ever after; an empty text means that nothing was.
CREATE TABLE recall_blocks (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    message    text COLLATE "C" NOT NULL,
    session    text COLLATE "C" NOT NULL,
    text       text NOT NULL,
    shown      jsonb NOT NULL,
    silent     text,
    created_us bigint NOT NULL,
    PRIMARY KEY (tenant, message)
);
CREATE INDEX recall_blocks_by_time ON recall_blocks (tenant, created_us DESC);

CREATE TABLE snapshots (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    session    text COLLATE "C" NOT NULL,
    text       text NOT NULL,
    shown      jsonb NOT NULL,
    created_us bigint NOT NULL,
    PRIMARY KEY (tenant, session)
);
