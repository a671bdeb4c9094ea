"""Taking a study out of its database."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.study.schema import metadata, studies, tokens
from entrywise.study.store import Store


def delete(store: Store, name: str) -> None:
    """Take a study out of its database, all of it."""

    record = store.record(name)

    def clear(connection: Connection) -> None:
        connection.execute(sa.delete(tokens).where(tokens.c.study == record.name))
        for table in metadata.tables.values():
            if "study" in table.columns and table is not tokens:  # tokens name their study
                connection.execute(sa.delete(table).where(table.c.study == record.id))
        connection.execute(sa.delete(studies).where(studies.c.id == record.id))

    store.database.write(clear)
