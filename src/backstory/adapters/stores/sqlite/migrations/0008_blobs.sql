-- What is too large for a part, once for each content, and which parts refer to it. hash is BLAKE2b-256 of the content
-- in hexadecimal, size the content's bytes, packing "plain" or "zlib". Triggers remove what nothing refers to any more,
-- so that whoever removes a part need not think of it.

CREATE TABLE blobs (
    hash    TEXT PRIMARY KEY,
    size    INTEGER NOT NULL,
    packing TEXT NOT NULL,
    packed  BLOB NOT NULL
);

CREATE TABLE part_blobs (
    part       TEXT NOT NULL,
    position   INTEGER NOT NULL,
    hash       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    PRIMARY KEY (part, hash)
) WITHOUT ROWID;
CREATE INDEX part_blobs_by_hash ON part_blobs (hash);

CREATE TRIGGER parts_removed AFTER DELETE ON parts BEGIN
    DELETE FROM part_blobs WHERE part = old.id;
END;

CREATE TRIGGER part_blobs_removed AFTER DELETE ON part_blobs BEGIN
    DELETE FROM blobs WHERE hash = old.hash AND NOT EXISTS (SELECT 1 FROM part_blobs WHERE hash = old.hash);
END;

-- What is older than a day is found without a walk through all.
CREATE INDEX messages_by_time ON messages (created_us);
