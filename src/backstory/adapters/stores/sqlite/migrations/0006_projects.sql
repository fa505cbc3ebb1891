-- What tells the thing at a place from another that stands there later, and what several projects may have in common.

ALTER TABLE project_aliases ADD COLUMN stamp TEXT NOT NULL DEFAULT '';
ALTER TABLE project_aliases ADD COLUMN looked TEXT NOT NULL DEFAULT '';
ALTER TABLE project_aliases ADD COLUMN seen_us INTEGER NOT NULL DEFAULT 0;
UPDATE project_aliases SET seen_us = created_us;

CREATE TABLE project_traits (
    alias TEXT NOT NULL REFERENCES project_aliases (alias) ON UPDATE CASCADE ON DELETE CASCADE,
    trait TEXT NOT NULL,
    PRIMARY KEY (alias, trait)
) WITHOUT ROWID;

-- Aliases and sessions that passed from one project to another with a change, so that undoing it takes them back.
CREATE TABLE project_moves (
    change   TEXT PRIMARY KEY REFERENCES changes (id),
    source   TEXT NOT NULL,
    target   TEXT NOT NULL,
    aliases  TEXT NOT NULL,
    sessions TEXT NOT NULL
);

CREATE INDEX sessions_by_project ON sessions (project);
