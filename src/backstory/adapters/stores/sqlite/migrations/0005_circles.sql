-- The word index learns whose each memory is, so that a search meets only what its reader may see at all.

DROP TABLE memory_vocabulary;
ALTER TABLE memory_words RENAME TO memory_words_before;

-- circle is domain.scope.circle: a project, or 'global' or 'session'.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    tokens,
    circle,
    tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'"
);
INSERT INTO memory_words (rowid, tokens, circle)
    SELECT w.rowid, w.tokens, CASE m.visibility WHEN 'project' THEN coalesce(m.project, '') ELSE m.visibility END
    FROM memory_words_before w JOIN memories m ON m.n = w.rowid;
DROP TABLE memory_words_before;

-- Counts each column apart: a project's name is no word of its memories.
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab (memory_words, col);
