-- Gives both roles of postgres-roles.sql the password of the container's superuser. For compose.yaml, where one person
-- has them all; on a shared server each role gets its own, with \password.
\getenv password POSTGRES_PASSWORD
ALTER ROLE backstory_owner PASSWORD :'password';
ALTER ROLE backstory_app PASSWORD :'password';
