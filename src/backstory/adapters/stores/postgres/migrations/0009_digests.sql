-- Digests of sessions: what stands for their older messages in requests. Derived from messages, by models mostly.

CREATE TABLE digests (
    tenant             text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    session            text COLLATE "C" NOT NULL,
    strategy           text COLLATE "C" NOT NULL,
    revision           bigint NOT NULL,
    shown              text NOT NULL,
    shown_for          text,
    shown_task         text,
    shown_response     text,
    current_task       text,
    suggested_response text,
    system_prompt      text,
    due                smallint NOT NULL,
    forced             smallint NOT NULL,
    lease_token        text,
    lease_until_us     bigint,
    attempts           bigint NOT NULL,
    not_before_us      bigint,
    problem            text,
    last_cycle_us      bigint,
    last_cycle         text,
    updated_us         bigint NOT NULL,
    PRIMARY KEY (tenant, session)
);

CREATE INDEX digests_with_work ON digests (tenant, updated_us DESC, session) WHERE due + forced > 0;

CREATE TABLE digest_pieces (
    tenant        text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    session       text COLLATE "C" NOT NULL,
    position      bigint NOT NULL,
    id            text COLLATE "C" NOT NULL,
    strategy      text COLLATE "C" NOT NULL,
    level         bigint NOT NULL,
    text          text NOT NULL,
    first_message bigint NOT NULL,
    last_message  bigint NOT NULL,
    sources       text NOT NULL,
    children      text NOT NULL,
    parent        text COLLATE "C",
    active        smallint NOT NULL,
    made_by       text NOT NULL,
    prompt        text NOT NULL,
    source_tokens bigint NOT NULL,
    created_us    bigint NOT NULL,
    PRIMARY KEY (tenant, session, position),
    UNIQUE (tenant, session, id),
    FOREIGN KEY (tenant, session) REFERENCES digests (tenant, session) ON DELETE CASCADE
);
