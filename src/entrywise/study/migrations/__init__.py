"""Migrations of a study's tables, applied when a database is opened."""
