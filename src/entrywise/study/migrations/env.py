"""How alembic runs here: on the connection that opens the database, inside its transaction."""

from __future__ import annotations

from alembic import context

from entrywise.study.schema import metadata


def migrate() -> None:
    """Bring the tables up to date."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        transactional_ddl=False,  # the caller's transaction holds it all
        version_table="entrywise_version",
    )
    context.run_migrations()


if hasattr(context, "config"):  # alembic runs this file; anybody else only reads it
    migrate()
