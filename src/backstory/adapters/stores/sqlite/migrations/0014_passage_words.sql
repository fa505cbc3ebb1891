-- Passages that begin with a speaker's name keep the vectors of their words, as memories do. They have a table of their
-- own: a search by vector reads every row of passage_vectors, and takes half as long again where a page holds one of
-- them instead of four. It has a rowid: without one, what a row has beyond a quarter of a page goes to a page of its own.

CREATE TABLE passage_word_vectors (
    n     INTEGER NOT NULL,
    model TEXT NOT NULL,
    words BLOB NOT NULL,
    PRIMARY KEY (n, model),
    FOREIGN KEY (n, model) REFERENCES passage_vectors (n, model) ON DELETE CASCADE
);

-- What was said and may begin with a name is read once more, with its words, by the one model that tells them apart.
-- More are taken than do: only ASCII's small letters are known for such here.
DELETE FROM passage_vectors WHERE model = 'all-MiniLM-L6-v2-int8' AND n IN (
    SELECT p.n FROM passages p JOIN parts k ON k.id = p.part
    WHERE k.kind = 'text' AND instr(p.text, ': ') BETWEEN 2 AND 64
        AND (p.text GLOB '[A-Z]*' OR unicode(p.text) > 127)
);
