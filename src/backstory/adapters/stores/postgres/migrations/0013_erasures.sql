-- What was erased for good, without a word of it: receipts, and the parts whose text a host may tell once more.

-- memories are ids, places counts by place, remains sentences, traces what a search of all rows found or NULL where
-- there was none: all JSON as text. While finished is 0, old rows may still lie about in the server's files.
CREATE TABLE erasures (
    tenant   text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    id       text COLLATE "C" NOT NULL,
    at_us    bigint NOT NULL,
    reason   text NOT NULL,
    memories text NOT NULL,
    places   text NOT NULL,
    remains  text NOT NULL,
    traces   text,
    finished smallint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE erased_parts (
    tenant text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    part   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, part)
);
