-- What a server with pgvector searches: the vectors once more, in pgvector's own type. Run when pgvector is there and
-- this was not yet, so also on a store that is older than its server's pgvector.
--
-- vectors and passage_vectors stay the truth, for every process and every server. Triggers copy what is written there,
-- so that no writer can forget; foreign keys remove it. The copies are tables of their own, without the vectors of
-- words, because a search by distance reads all of a row's page: this way twice as many vectors fit on one.

-- Little-endian float16 as numbers; infinities and not-a-numbers, which pgvector refuses, are NULL.
CREATE FUNCTION half_floats(packed bytea) RETURNS real[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT array_agg(
        CASE bits >> 10 & 31
            WHEN 31 THEN NULL
            WHEN 0 THEN (bits & 1023) * 2::float8 ^ -24
            ELSE (1024 + (bits & 1023)) * 2::float8 ^ ((bits >> 10 & 31) - 25)
        END * CASE WHEN bits >= 32768 THEN -1 ELSE 1 END
        ORDER BY place
    )
    FROM generate_series(0, length(packed) / 2 - 1) place,
        LATERAL (SELECT get_byte(packed, 2 * place) + 256 * get_byte(packed, 2 * place + 1) AS bits) read
$$;

-- halfvec came with pgvector 0.7 and takes half the room; before it there is only vector.
DO $$
DECLARE
    kind text := CASE WHEN to_regtype('halfvec') IS NULL THEN 'vector' ELSE 'halfvec' END;
BEGIN
    EXECUTE format(
        'CREATE TABLE embeddings (
            tenant    text COLLATE "C" NOT NULL DEFAULT current_setting(''backstory.tenant''),
            seq       bigint NOT NULL,
            n         bigint NOT NULL,
            model     text COLLATE "C" NOT NULL,
            dimension integer NOT NULL,
            embedding %1$s NOT NULL,
            PRIMARY KEY (tenant, seq),
            FOREIGN KEY (tenant, seq) REFERENCES vectors (tenant, seq) ON DELETE CASCADE
        )', kind
    );
    EXECUTE format(
        'CREATE TABLE passage_embeddings (
            tenant    text COLLATE "C" NOT NULL DEFAULT current_setting(''backstory.tenant''),
            n         bigint NOT NULL,
            model     text COLLATE "C" NOT NULL,
            dimension integer NOT NULL,
            embedding %1$s NOT NULL,
            PRIMARY KEY (tenant, n, model),
            FOREIGN KEY (tenant, n, model) REFERENCES passage_vectors (tenant, n, model) ON DELETE CASCADE
        )', kind
    );
END $$;
CREATE INDEX embeddings_by_memory ON embeddings (tenant, n, model);

CREATE FUNCTION copy_vectors() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO embeddings (tenant, seq, n, model, dimension, embedding)
        SELECT tenant, seq, n, model, dimension, floats::vector
        FROM added, LATERAL (SELECT half_floats(vector) AS floats OFFSET 0) read
        WHERE array_position(floats, NULL) IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER vectors_copied AFTER INSERT ON vectors
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION copy_vectors();

CREATE FUNCTION copy_passage_vectors() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO passage_embeddings (tenant, n, model, dimension, embedding)
        SELECT tenant, n, model, dimension, floats::vector
        FROM added, LATERAL (SELECT half_floats(vector) AS floats OFFSET 0) read
        WHERE array_position(floats, NULL) IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER passage_vectors_copied AFTER INSERT ON passage_vectors
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION copy_passage_vectors();

-- Copies what is there already, for all tenants: the owner lifts row security for it, in this transaction alone.
ALTER TABLE vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_vectors NO FORCE ROW LEVEL SECURITY;
INSERT INTO embeddings (tenant, seq, n, model, dimension, embedding)
    SELECT tenant, seq, n, model, dimension, floats::vector
    FROM vectors, LATERAL (SELECT half_floats(vector) AS floats OFFSET 0) read
    WHERE array_position(floats, NULL) IS NULL;
INSERT INTO passage_embeddings (tenant, n, model, dimension, embedding)
    SELECT tenant, n, model, dimension, floats::vector
    FROM passage_vectors, LATERAL (SELECT half_floats(vector) AS floats OFFSET 0) read
    WHERE array_position(floats, NULL) IS NULL;
ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
ALTER TABLE passage_vectors FORCE ROW LEVEL SECURITY;

-- Name of the HNSW index over a tenant's vectors of one model.
CREATE FUNCTION embeddings_index(model text, dimension integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT 'embeddings_hnsw_' || md5(concat_ws(chr(1), current_setting('backstory.tenant'), model, dimension))
$$;

-- Makes that index, by inner product as all vectors are of unit length, once the tenant has enough vectors of the model
-- to need one; tells whether it is there. Each tenant and model has its own, so that a search in one never walks
-- through another's. SECURITY DEFINER: only the owner of a table may give it an index, and a role that writes memories
-- need not be the owner. Writers of vectors wait while it is made, 1 to 2 ms for each vector; readers do not.
CREATE FUNCTION index_embeddings(wanted_model text, wanted_dimension integer, enough bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    name text := embeddings_index(wanted_model, wanted_dimension);
    kind text := (
        SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'embeddings'::regclass AND attname = 'embedding'
    );
    kind_name text := regexp_replace(kind, '^.*\.', '');
    making text;
BEGIN
    IF to_regclass(name) IS NOT NULL THEN
        RETURN true;
    END IF;
    -- the longest that HNSW takes
    IF wanted_dimension NOT BETWEEN 1 AND (CASE kind_name WHEN 'halfvec' THEN 4000 ELSE 2000 END) THEN
        RETURN false;
    END IF;
    IF greatest(enough, 1000) > (
        SELECT count(*) FROM embeddings
        WHERE tenant = current_setting('backstory.tenant') AND model = wanted_model AND dimension = wanted_dimension
    ) THEN
        RETURN false;
    END IF;
    -- HNSW is many times slower to make when it does not fit: about 1.3 kB for each vector of 384 numbers
    IF pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('256MB') THEN
        PERFORM set_config('maintenance_work_mem', '256MB', true);
    END IF;
    making := format(
        'CREATE INDEX IF NOT EXISTS %1$I ON embeddings USING hnsw ((embedding::%2$s(%3$s)) %4$s)
            WHERE tenant = %5$L AND model = %6$L AND dimension = %3$s',
        name, kind, wanted_dimension, kind_name || '_ip_ops', current_setting('backstory.tenant'), wanted_model
    );
    -- with the helpers that the server allows; they need that as shared memory, and many a container has 64 MB of it
    BEGIN
        EXECUTE making;
    EXCEPTION WHEN disk_full OR insufficient_resources OR out_of_memory THEN
        PERFORM set_config('max_parallel_maintenance_workers', '0', true);
        EXECUTE making;
    END;
    RETURN true;
END $$;

-- Drops it, when the tenant is done with the model.
CREATE FUNCTION unindex_embeddings(model text, dimension integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS %I', embeddings_index(model, dimension));
END $$;
