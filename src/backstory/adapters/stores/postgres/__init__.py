"""Memories of a team in Postgres: one schema, many tenants, any number of machines."""
