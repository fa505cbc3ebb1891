-- What stores of other products said beside their memories and sessions, word for word, for exports in their formats.

CREATE TABLE keepsakes (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    format  text COLLATE "C" NOT NULL,
    store   text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    text    text NOT NULL,
    session text COLLATE "C",
    memory  text COLLATE "C",
    PRIMARY KEY (tenant, format, store, key)
);
CREATE INDEX keepsakes_by_session ON keepsakes (tenant, session) WHERE session IS NOT NULL;
CREATE INDEX keepsakes_by_memory ON keepsakes (tenant, memory) WHERE memory IS NOT NULL;
