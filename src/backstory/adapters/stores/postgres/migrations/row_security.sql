-- Gives every table with a tenant column its policy, also the owner: a transaction sees and writes the rows of the
-- tenant it was begun for, and none at all before it has named one.
DO $$
DECLARE
    unprotected regclass;
BEGIN
    FOR unprotected IN
        SELECT c.oid FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE s.nspname = current_schema() AND c.relkind IN ('r', 'p') AND a.attname = 'tenant'
            AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', unprotected);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', unprotected);
        EXECUTE format(
            'CREATE POLICY own_tenant ON %s USING (tenant = current_setting(''backstory.tenant'', true))', unprotected
        );
    END LOOP;
END $$;
