-- Passages that begin with a speaker's name keep the vectors of their words, as memories do.

-- For all tenants: the owner lifts row security for it, in this transaction alone.
ALTER TABLE parts NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_vectors NO FORCE ROW LEVEL SECURITY;

ALTER TABLE passage_vectors ADD COLUMN words bytea;
ALTER TABLE passage_vectors ALTER COLUMN words SET STORAGE EXTERNAL;

-- What was said and may begin with a name is read once more, with its words, by the one model that tells them apart.
-- More are taken than do: only ASCII's small letters are known for such here.
DELETE FROM passage_vectors v USING passages p, parts k
    WHERE v.model = 'all-MiniLM-L6-v2-int8' AND p.tenant = v.tenant AND p.n = v.n AND k.tenant = p.tenant
        AND k.id = p.part AND k.kind = 'text' AND strpos(p.text, ': ') BETWEEN 2 AND 64 AND (ascii(p.text) BETWEEN 65 AND 90 OR ascii(p.text) > 127);

ALTER TABLE parts FORCE ROW LEVEL SECURITY;
ALTER TABLE passages FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_vectors FORCE ROW LEVEL SECURITY;
