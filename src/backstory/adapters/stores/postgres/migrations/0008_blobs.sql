-- What is too large for a part, once for each content, and which parts refer to it. hash is BLAKE2b-256 of the content
-- in hexadecimal, size the content's bytes, packing "plain" or "zlib". Triggers remove what nothing refers to any more,
-- so that whoever removes a part need not think of it.

CREATE TABLE blobs (
    tenant  text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    hash    text COLLATE "C" NOT NULL,
    size    bigint NOT NULL,
    packing text COLLATE "C" NOT NULL,
    packed  bytea NOT NULL,
    PRIMARY KEY (tenant, hash)
);
-- It is packed already.
ALTER TABLE blobs ALTER COLUMN packed SET STORAGE EXTERNAL;

CREATE TABLE part_blobs (
    tenant     text COLLATE "C" NOT NULL DEFAULT current_setting('backstory.tenant'),
    part       text COLLATE "C" NOT NULL,
    position   int NOT NULL,
    hash       text COLLATE "C" NOT NULL,
    size       bigint NOT NULL,
    media_type text NOT NULL,
    PRIMARY KEY (tenant, part, hash)
);
CREATE INDEX part_blobs_by_hash ON part_blobs (tenant, hash);

CREATE FUNCTION drop_blobs_of_parts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM part_blobs r USING removed WHERE r.tenant = removed.tenant AND r.part = removed.id;
    RETURN NULL;
END $$;
CREATE TRIGGER parts_removed AFTER DELETE ON parts
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION drop_blobs_of_parts();

CREATE FUNCTION drop_lone_blobs() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM blobs b USING (SELECT DISTINCT tenant, hash FROM removed) gone
        WHERE b.tenant = gone.tenant AND b.hash = gone.hash
            AND NOT EXISTS (SELECT 1 FROM part_blobs r WHERE r.tenant = b.tenant AND r.hash = b.hash);
    RETURN NULL;
END $$;
CREATE TRIGGER part_blobs_removed AFTER DELETE ON part_blobs
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION drop_lone_blobs();

-- What is older than a day is found without a walk through all.
CREATE INDEX messages_by_time ON messages (tenant, created_us);
