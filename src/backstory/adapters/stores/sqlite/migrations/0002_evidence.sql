-- What was said in sessions, cut into passages that are searched by words and by vectors. All of it is derived from
-- messages and parts, and can be made anew.

-- n is never given twice, so that a vector that comes late finds its passage or none.
CREATE TABLE passages (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    part       TEXT NOT NULL,
    position   INTEGER NOT NULL,
    message    TEXT NOT NULL,
    session    TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    text       TEXT NOT NULL,
    UNIQUE (part, position)
);
CREATE INDEX passages_by_session ON passages (session, created_us, message, part, position);
CREATE INDEX passages_by_message ON passages (message);

CREATE VIRTUAL TABLE passage_words USING fts5 (
    tokens,
    tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'"
);
CREATE VIRTUAL TABLE passage_vocabulary USING fts5vocab (passage_words, row);

-- One row of sums over passage_words, as word_statistics is for memories.
CREATE TABLE passage_statistics (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    documents INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    analyser  INTEGER NOT NULL
);
-- Version 0 of the analyser: messages are here already, and have still to be cut.
INSERT INTO passage_statistics (id, documents, tokens, analyser)
SELECT 1, 0, 0, CASE WHEN EXISTS (SELECT 1 FROM messages) THEN 0 ELSE 1 END;

CREATE TABLE passage_vectors (
    n         INTEGER NOT NULL REFERENCES passages (n) ON DELETE CASCADE,
    model     TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    vector    BLOB NOT NULL,
    PRIMARY KEY (n, model)
);
