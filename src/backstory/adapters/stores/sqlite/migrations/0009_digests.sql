-- Digests of sessions: what stands for their older messages in requests. Derived from messages, by models mostly.

CREATE TABLE digests (
    session            TEXT PRIMARY KEY,
    strategy           TEXT NOT NULL,
    revision           INTEGER NOT NULL,
    shown              TEXT NOT NULL,
    shown_for          TEXT,
    shown_task         TEXT,
    shown_response     TEXT,
    current_task       TEXT,
    suggested_response TEXT,
    system_prompt      TEXT,
    due                INTEGER NOT NULL,
    forced             INTEGER NOT NULL,
    lease_token        TEXT,
    lease_until_us     INTEGER,
    attempts           INTEGER NOT NULL,
    not_before_us      INTEGER,
    problem            TEXT,
    last_cycle_us      INTEGER,
    last_cycle         TEXT,
    updated_us         INTEGER NOT NULL
);

CREATE INDEX digests_with_work ON digests (updated_us DESC, session) WHERE due + forced > 0;

-- The pieces of a digest, one after the other, as they are read.
CREATE TABLE digest_pieces (
    session       TEXT NOT NULL REFERENCES digests (session) ON DELETE CASCADE,
    position      INTEGER NOT NULL,
    id            TEXT NOT NULL,
    strategy      TEXT NOT NULL,
    level         INTEGER NOT NULL,
    text          TEXT NOT NULL,
    first_message INTEGER NOT NULL,
    last_message  INTEGER NOT NULL,
    sources       TEXT NOT NULL,
    children      TEXT NOT NULL,
    parent        TEXT,
    active        INTEGER NOT NULL,
    made_by       TEXT NOT NULL,
    prompt        TEXT NOT NULL,
    source_tokens INTEGER NOT NULL,
    created_us    INTEGER NOT NULL,
    PRIMARY KEY (session, position),
    UNIQUE (session, id)
) WITHOUT ROWID;
