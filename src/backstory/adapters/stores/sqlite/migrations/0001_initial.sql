-- Memories, their history, their indexes, and the evidence they come from.
-- Times are microseconds since 1970-01-01 UTC. See docs/reference/sqlite-format.md.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE projects (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    root       TEXT NOT NULL,
    created_us INTEGER NOT NULL
);

CREATE TABLE project_aliases (
    alias      TEXT PRIMARY KEY,
    project    TEXT NOT NULL REFERENCES projects (id),
    created_us INTEGER NOT NULL
);
CREATE INDEX project_aliases_by_project ON project_aliases (project);

-- n is what people type as #n; AUTOINCREMENT keeps a number from ever being given twice.
CREATE TABLE memories (
    n             INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    revision      INTEGER NOT NULL,
    content       TEXT NOT NULL,
    content_key   TEXT NOT NULL,
    kind          TEXT NOT NULL,
    visibility    TEXT NOT NULL CHECK (visibility IN ('global', 'project', 'session')),
    project       TEXT,
    session       TEXT,
    area          TEXT,
    issue         TEXT,
    tier          TEXT NOT NULL CHECK (tier IN ('core', 'archival', 'temporary')),
    pinned        INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    expires_us    INTEGER,
    sensitivity   TEXT NOT NULL CHECK (sensitivity IN ('normal', 'private', 'local-only')),
    state         TEXT NOT NULL CHECK (state IN ('active', 'conflicted', 'superseded', 'deleted')),
    superseded_by TEXT,
    status        TEXT NOT NULL,
    origin        TEXT NOT NULL,
    source        TEXT NOT NULL,
    confidence    REAL NOT NULL,
    weight        REAL NOT NULL,
    namespace     TEXT NOT NULL,
    provenance    TEXT NOT NULL,
    learned_us    INTEGER NOT NULL,
    updated_us    INTEGER NOT NULL,
    confirmed_us  INTEGER NOT NULL,
    surfaced_us   INTEGER,
    used_us       INTEGER,
    helpful       INTEGER NOT NULL DEFAULT 0,
    irrelevant    INTEGER NOT NULL DEFAULT 0,
    surfaced      INTEGER NOT NULL DEFAULT 0,
    recalled      INTEGER NOT NULL DEFAULT 0,
    sessions      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX memories_by_time ON memories (learned_us DESC, n DESC);
CREATE INDEX memories_by_project ON memories (project, learned_us DESC);
CREATE INDEX memories_by_text ON memories (content_key);
CREATE INDEX memories_by_replacement ON memories (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE memory_tags (
    n        INTEGER NOT NULL REFERENCES memories (n),
    position INTEGER NOT NULL,
    tag      TEXT NOT NULL,
    PRIMARY KEY (n, position)
) WITHOUT ROWID;
CREATE INDEX memory_tags_by_tag ON memory_tags (tag, n);

-- Which sessions a memory reached: a session counts once.
CREATE TABLE memory_sessions (
    n       INTEGER NOT NULL REFERENCES memories (n),
    session TEXT NOT NULL,
    PRIMARY KEY (n, session)
) WITHOUT ROWID;

CREATE TABLE changes (
    id      TEXT PRIMARY KEY,
    at_us   INTEGER NOT NULL,
    author  TEXT NOT NULL,
    action  TEXT NOT NULL,
    reason  TEXT,
    session TEXT,
    undoes  TEXT REFERENCES changes (id),
    key     TEXT UNIQUE
);
CREATE INDEX changes_by_time ON changes (at_us DESC, id DESC);

CREATE TABLE change_edits (
    change   TEXT NOT NULL REFERENCES changes (id),
    position INTEGER NOT NULL,
    n        INTEGER NOT NULL REFERENCES memories (n),
    before   TEXT,
    after    TEXT NOT NULL,
    PRIMARY KEY (change, position)
) WITHOUT ROWID;
CREATE INDEX change_edits_by_memory ON change_edits (n);

-- The analyser's tokens, separated by blanks; rowid is memories.n. The ascii tokenizer leaves letters beyond ASCII
-- alone, and tokenchars keeps every other printable sign inside a token: only a blank separates.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    tokens,
    tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'"
);
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab (memory_words, row);

-- One row of sums over memory_words, kept by the writer, so that a search need not count.
CREATE TABLE word_statistics (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    documents INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    analyser  INTEGER NOT NULL
);

-- One vector of a memory for each model, as little-endian float16; words is a row of 128 int8 for each of its words, of
-- which only the direction counts, NULL where the model gives none. seq tells a running process what is new.
CREATE TABLE vectors (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    n         INTEGER NOT NULL REFERENCES memories (n),
    model     TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    vector    BLOB NOT NULL,
    words     BLOB,
    UNIQUE (n, model)
);
CREATE INDEX vectors_by_model ON vectors (model, seq);

-- Counts removals, so that a process with the vectors in memory sees that some are gone.
CREATE TABLE vector_removals (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    total INTEGER NOT NULL
);
INSERT INTO vector_removals (id, total) VALUES (1, 0);
CREATE TRIGGER vectors_removed AFTER DELETE ON vectors BEGIN
    UPDATE vector_removals SET total = total + 1;
END;

CREATE TABLE sessions (
    id         TEXT PRIMARY KEY,
    project    TEXT,
    host       TEXT NOT NULL,
    directory  TEXT NOT NULL,
    parent     TEXT,
    title      TEXT,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    deleted_us INTEGER
);
CREATE INDEX sessions_by_time ON sessions (updated_us DESC);

-- No foreign key to sessions: a host may tell a message before its session.
CREATE TABLE messages (
    id           TEXT PRIMARY KEY,
    session      TEXT NOT NULL,
    role         TEXT NOT NULL,
    agent        TEXT,
    model        TEXT,
    created_us   INTEGER NOT NULL,
    completed_us INTEGER,
    removed_us   INTEGER
);
CREATE INDEX messages_by_session ON messages (session, created_us, id);

CREATE TABLE parts (
    id        TEXT PRIMARY KEY,
    message   TEXT NOT NULL,
    session   TEXT NOT NULL,
    kind      TEXT NOT NULL,
    text      TEXT NOT NULL,
    tool      TEXT,
    synthetic INTEGER NOT NULL CHECK (synthetic IN (0, 1)),
    detail    TEXT
);
CREATE INDEX parts_by_message ON parts (message, id);

-- What was put beside a user message, replayed byte for byte ever after; an empty text means that nothing was.
CREATE TABLE recall_blocks (
    message    TEXT PRIMARY KEY,
    session    TEXT NOT NULL,
    text       TEXT NOT NULL,
    shown      TEXT NOT NULL,
    silent     TEXT,
    created_us INTEGER NOT NULL
);
CREATE INDEX recall_blocks_by_time ON recall_blocks (created_us DESC);

CREATE TABLE snapshots (
    session    TEXT PRIMARY KEY,
    text       TEXT NOT NULL,
    shown      TEXT NOT NULL,
    created_us INTEGER NOT NULL
);
