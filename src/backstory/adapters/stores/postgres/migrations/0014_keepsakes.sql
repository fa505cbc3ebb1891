-- What stores of other products said beside their memories and sessions, word for word, for exports in their formats.

CREATE TABLE keepsakes (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    format  text COLLATE "C" NOT NULL,
    store   text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    text    text NOT NULL,
    session text COLLATE "C",
    PRIMARY KEY (tenant, format, store, key)
);
CREATE INDEX keepsakes_by_session ON keepsakes (tenant, session) WHERE session IS NOT NULL;
