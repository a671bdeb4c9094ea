"""Who may do what through the service: tokens with a role, for one study or for all, that expire and can be revoked.

A token is shown once, when it is made; the database keeps its hash. It has 256 random bits, so a plain hash is enough.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.exceptions import ParameterError
from entrywise.study.schema import tokens
from entrywise.study.store import Store

ROLES = ("reader", "worker", "owner")  # each may do what those before it may
DAY = 86400.0
LONGEST = 3650.0  # days


@dataclass(frozen=True)
class Token:
    """What is known of a token; not the token itself."""

    id: int
    title: str
    role: str
    study: str | None
    made_at: float
    expires_at: float
    revoked_at: float | None = None

    def may(self, role: str, study: str | None) -> bool:
        """Tell whether it allows what `role` may do with `study` (None: with the whole database)."""
        enough = ROLES.index(self.role) >= ROLES.index(role)
        return enough and (self.study is None or self.study == study)


def create(
    store: Store, role: str, *, study: str | None = None, days: float = 30.0, title: str = ""
) -> tuple[str, Token]:
    """Make a token and return it with what is kept of it; it cannot be read again."""
    if role not in ROLES:
        raise ParameterError(f"a role is one of {', '.join(ROLES)}, got {role!r}")
    if not (math.isfinite(days) and 0 < days <= LONGEST):
        raise ParameterError(f"days must be above 0 and at most {LONGEST:g}, got {days}")
    if "\n" in title:
        raise ParameterError(f"a token's title must be one line of text, got {title!r}")
    if study is not None:
        store.record(study)  # refuses a study that is not there
    secret = "ew_" + secrets.token_urlsafe(32)

    def make(connection: Connection) -> Token:
        now = store.database.now(connection)
        row: dict[str, Any] = {
            "hash": hashed(secret),
            "title": title or f"{role} of {study or 'all studies'}",
            "role": role,
            "study": study,
            "made_at": now,
            "expires_at": now + DAY * days,
        }
        made = connection.execute(sa.insert(tokens).values(**row).returning(tokens.c.id))
        del row["hash"]
        return Token(id=int(made.scalar_one()), **row)

    return secret, store.database.write(make)


def hashed(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def verify(store: Store, secrets: Sequence[str]) -> list[Token | None]:
    """Return what each token allows; None for one that is unknown, expired or revoked."""
    hashes = [hashed(secret) for secret in secrets]
    found = _valid(store, tokens.c.hash.in_(sorted(set(hashes))))
    return [found.get(key) for key in hashes]


def still_valid(store: Store, id: int) -> Token | None:
    """Return what a token allows that was verified before; None when it has expired or was revoked since."""
    return next(iter(_valid(store, tokens.c.id == id).values()), None)


def _valid(store: Store, which: sa.ColumnElement[bool]) -> dict[str, Token]:
    """Return the tokens that are valid now, by their hashes."""

    def look(connection: Connection) -> list[Any]:
        now = store.database.now(connection)
        good = (which, tokens.c.expires_at > now, tokens.c.revoked_at.is_(None))
        return list(connection.execute(_rows().add_columns(tokens.c.hash).where(*good)))

    rows = [row._asdict() for row in store.database.read(look)]
    return {row.pop("hash"): Token(**row) for row in rows}


def listed(store: Store) -> list[Token]:
    """Return every token that was made, those that no longer work included."""
    rows = store.database.read(lambda c: c.execute(_rows().order_by(tokens.c.id)).all())
    return [Token(**row._asdict()) for row in rows]


def revoke(store: Store, id: int) -> None:
    """Make a token useless at once."""

    def mark(connection: Connection) -> int:
        now = store.database.now(connection)
        here = (tokens.c.id == id, tokens.c.revoked_at.is_(None))
        return connection.execute(sa.update(tokens).where(*here).values(revoked_at=now)).rowcount

    if not store.database.write(mark) and id not in {token.id for token in listed(store)}:
        raise ParameterError(f"there is no token {id}; `entrywise token list` shows them")


def _rows() -> sa.Select[Any]:
    return sa.select(*(c for c in tokens.columns if c.name != "hash"))
