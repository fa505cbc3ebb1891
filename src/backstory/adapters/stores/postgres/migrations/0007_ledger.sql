-- Each call of a model, with what it took: evidence, not derived from anything.

CREATE TABLE ledger (
    tenant        text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id            text COLLATE "C" NOT NULL,
    at_us         bigint NOT NULL,
    feature       text COLLATE "C" NOT NULL,
    model         text COLLATE "C" NOT NULL,
    session       text COLLATE "C",
    project       text COLLATE "C",
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost          bigint,
    duration_us   bigint NOT NULL,
    requests      int NOT NULL,
    outcome       text COLLATE "C" NOT NULL,
    estimated     smallint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX ledger_by_time ON ledger (tenant, at_us);
CREATE INDEX ledger_by_session ON ledger (tenant, session) WHERE session IS NOT NULL;
