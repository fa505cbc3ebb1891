-- Each call of a model, with what it took: evidence, not derived from anything.

CREATE TABLE ledger (
    id            TEXT PRIMARY KEY,
    at_us         INTEGER NOT NULL,
    feature       TEXT NOT NULL,
    model         TEXT NOT NULL,
    session       TEXT,
    project       TEXT,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost          INTEGER,
    duration_us   INTEGER NOT NULL,
    requests      INTEGER NOT NULL,
    outcome       TEXT NOT NULL,
    estimated     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX ledger_by_time ON ledger (at_us);
CREATE INDEX ledger_by_session ON ledger (session) WHERE session IS NOT NULL;
