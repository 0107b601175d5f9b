"""Alembic's scripts: the tables of every format that a release wrote, and the ways between them."""
