-- What stores of other products said beside their memories and sessions, word for word, for exports in their formats.

CREATE TABLE keepsakes (
    format  TEXT NOT NULL,
    store   TEXT NOT NULL,
    key     TEXT NOT NULL,
    text    TEXT NOT NULL,
    session TEXT,
    memory  TEXT,
    PRIMARY KEY (format, store, key)
) WITHOUT ROWID;
CREATE INDEX keepsakes_by_session ON keepsakes (session) WHERE session IS NOT NULL;
CREATE INDEX keepsakes_by_memory ON keepsakes (memory) WHERE memory IS NOT NULL;
