-- How far sessions have been distilled into memories, what the memories of a project come to, and reasons to check a
-- memory. States are a journal; summaries and doubts are derived, and made anew by whoever makes them.

CREATE TABLE dreams (
    session        TEXT PRIMARY KEY,
    project        TEXT,
    revision       INTEGER NOT NULL,
    through        TEXT,
    through_us     INTEGER,
    target         TEXT,
    due            INTEGER NOT NULL,
    not_before_us  INTEGER,
    lease_token    TEXT,
    lease_until_us INTEGER,
    attempts       INTEGER NOT NULL,
    problem        TEXT,
    updated_us     INTEGER NOT NULL
);

CREATE INDEX dreams_due ON dreams (updated_us DESC, session) WHERE due = 1;

-- project is '' for what is global.
CREATE TABLE summaries (
    project    TEXT PRIMARY KEY,
    text       TEXT NOT NULL,
    made_by    TEXT NOT NULL,
    prompt     TEXT NOT NULL,
    created_us INTEGER NOT NULL
);

-- From which memories a summary was made: a commit that changes one of them lets go of the summary.
CREATE TABLE summary_sources (
    project  TEXT NOT NULL REFERENCES summaries (project) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    memory   TEXT NOT NULL,
    PRIMARY KEY (project, position)
) WITHOUT ROWID;
CREATE INDEX summary_sources_by_memory ON summary_sources (memory);

CREATE TABLE doubts (
    memory   TEXT PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    anchor   TEXT NOT NULL,
    reason   TEXT NOT NULL,
    since_us INTEGER NOT NULL
) WITHOUT ROWID;
