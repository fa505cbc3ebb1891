-- Whose each memory is, so that a search looks only where its reader may look at all.

-- circle is domain.scope.circle: a project, or 'global' or 'session'.
ALTER TABLE memories ADD COLUMN circle text COLLATE "C" NOT NULL
    GENERATED ALWAYS AS (CASE visibility WHEN 'project' THEN coalesce(project, '') ELSE visibility END) STORED;
CREATE INDEX memories_by_circle ON memories (tenant, circle, n DESC);
