-- Two roles for Backstory: one that owns its tables, one that uses them.
--
-- Run in the database that holds the store, as a role that may create roles; again whenever you like:
--
--     psql --set ON_ERROR_STOP=1 --dbname backstory --file postgres-roles.sql
--     psql --dbname backstory --command '\password backstory_owner' --command '\password backstory_app'
--
-- backstory_owner makes the schema "backstory" and brings it up to date; the first use of a new version has to be its.
-- backstory_app reads and writes memories and evidence, and can change no table. Row-level security binds both: a
-- connection sees the rows of the tenant it was opened for. It keeps a mistake in one team's settings, or in a
-- statement, from showing another team's memories. It does not keep out who holds the password and means to: whoever
-- may connect may also name another tenant. Teams that must not trust each other get a database each.

-- Roles belong to the whole server, so they may be there already.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['backstory_owner', 'backstory_app'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', name);
        END IF;
    END LOOP;
    IF EXISTS (
        SELECT FROM pg_roles WHERE rolname IN ('backstory_owner', 'backstory_app') AND (rolsuper OR rolbypassrls)
    ) THEN
        RAISE EXCEPTION 'backstory_owner and backstory_app must not be superusers or exempt from row-level security';
    END IF;
    -- who is no superuser has to be a member of a role to set up what belongs to it
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
        AND NOT pg_has_role(current_user, 'backstory_owner', 'USAGE')
    THEN
        EXECUTE format('GRANT backstory_owner TO %I', current_user);
    END IF;
END $$;

-- Nobody else comes in, and only the owner makes schemas.
DO $$
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT, CREATE ON DATABASE %I TO backstory_owner', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO backstory_app', current_database());
END $$;
CREATE SCHEMA IF NOT EXISTS backstory AUTHORIZATION backstory_owner;

-- pgvector, where the server has it: most servers let only an administrator add it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        CREATE EXTENSION IF NOT EXISTS vector;
    ELSE
        RAISE NOTICE 'this server has no pgvector; Backstory compares vectors itself';
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'pgvector is there, but an administrator has to run: CREATE EXTENSION vector';
END $$;

-- What the owner has made and will make, the other may use. Not TRUNCATE: row-level security does not bind it.
GRANT USAGE ON SCHEMA backstory TO backstory_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA backstory TO backstory_app;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA backstory TO backstory_app;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA backstory TO backstory_app;
ALTER DEFAULT PRIVILEGES FOR ROLE backstory_owner IN SCHEMA backstory
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO backstory_app;
ALTER DEFAULT PRIVILEGES FOR ROLE backstory_owner IN SCHEMA backstory GRANT USAGE ON SEQUENCES TO backstory_app;
ALTER DEFAULT PRIVILEGES FOR ROLE backstory_owner IN SCHEMA backstory GRANT EXECUTE ON FUNCTIONS TO backstory_app;
-- two functions act with the owner's rights (they make and drop the index over a tenant's vectors)
ALTER DEFAULT PRIVILEGES FOR ROLE backstory_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA backstory FROM PUBLIC;

-- Which format the tables have is the owner's to say. Absent before the first use, so run this file once more then.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['schema_version', 'schema_options'] LOOP
        IF to_regclass(format('backstory.%I', name)) IS NOT NULL THEN
            EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON backstory.%I FROM backstory_app', name);
        END IF;
    END LOOP;
END $$;
