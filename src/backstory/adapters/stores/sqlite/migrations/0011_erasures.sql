-- What was erased for good, without a word of it: receipts, and the parts whose text a host may tell once more.

-- memories are ids, places counts by place, remains sentences, traces what a search of the raw bytes found or NULL
-- where there was none: all JSON. While finished is 0, old bytes may still lie about in the file.
CREATE TABLE erasures (
    id       TEXT PRIMARY KEY,
    at_us    INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    memories TEXT NOT NULL,
    places   TEXT NOT NULL,
    remains  TEXT NOT NULL,
    traces   TEXT,
    finished INTEGER NOT NULL
);
CREATE INDEX erasures_by_time ON erasures (at_us DESC, id DESC);

CREATE TABLE erased_parts (
    part TEXT PRIMARY KEY
) WITHOUT ROWID;
