-- How far sessions have been distilled into memories, what the memories of a project come to, and reasons to check a
-- memory. States are a journal; summaries and doubts are derived, and made anew by whoever makes them.

CREATE TABLE dreams (
    tenant         text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    session        text COLLATE "C" NOT NULL,
    project        text COLLATE "C",
    revision       bigint NOT NULL,
    through        text,
    through_us     bigint,
    target         text,
    due            smallint NOT NULL,
    not_before_us  bigint,
    lease_token    text,
    lease_until_us bigint,
    attempts       bigint NOT NULL,
    problem        text,
    updated_us     bigint NOT NULL,
    PRIMARY KEY (tenant, session)
);

CREATE INDEX dreams_due ON dreams (tenant, updated_us DESC, session) WHERE due = 1;

-- project is '' for what is global.
CREATE TABLE summaries (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    project    text COLLATE "C" NOT NULL,
    text       text NOT NULL,
    made_by    text NOT NULL,
    prompt     text NOT NULL,
    created_us bigint NOT NULL,
    PRIMARY KEY (tenant, project)
);

-- From which memories a summary was made: a commit that changes one of them lets go of the summary.
CREATE TABLE summary_sources (
    tenant   text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    project  text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    memory   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, project, position),
    FOREIGN KEY (tenant, project) REFERENCES summaries (tenant, project) ON DELETE CASCADE
);
CREATE INDEX summary_sources_by_memory ON summary_sources (tenant, memory);

CREATE TABLE doubts (
    tenant   text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    memory   text COLLATE "C" NOT NULL,
    anchor   text NOT NULL,
    reason   text NOT NULL,
    since_us bigint NOT NULL,
    PRIMARY KEY (tenant, memory),
    FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
);
