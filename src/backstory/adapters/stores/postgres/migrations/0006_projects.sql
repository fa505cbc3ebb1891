-- What tells the thing at a place from another that stands there later, and what several projects may have in common.

ALTER TABLE project_aliases
    ADD COLUMN stamp   text NOT NULL DEFAULT '',
    ADD COLUMN looked  text NOT NULL DEFAULT '',
    ADD COLUMN seen_us bigint NOT NULL DEFAULT 0;

CREATE TABLE project_traits (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    alias  text COLLATE "C" NOT NULL,
    trait  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, alias, trait),
    FOREIGN KEY (tenant, alias) REFERENCES project_aliases (tenant, alias) ON UPDATE CASCADE ON DELETE CASCADE
);

-- Aliases and sessions that passed from one project to another with a change, so that undoing it takes them back.
CREATE TABLE project_moves (
    tenant   text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    change   text COLLATE "C" NOT NULL,
    source   text COLLATE "C" NOT NULL,
    target   text COLLATE "C" NOT NULL,
    aliases  text[] NOT NULL,
    sessions text[] NOT NULL,
    PRIMARY KEY (tenant, change),
    FOREIGN KEY (tenant, change) REFERENCES changes (tenant, id)
);

CREATE INDEX sessions_by_project ON sessions (tenant, project);
