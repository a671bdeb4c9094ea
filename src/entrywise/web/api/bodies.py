"""What requests bring, and what is said of a mistake."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from entrywise.web.story import LEVEL

MOST = 1_000_000  # questions, answers or entries in one call


class Mistake(BaseModel):
    """What was wrong with a request: a sentence, or what of it could not be understood."""

    message: str | None = None
    kind: str | None = None
    detail: Any = None


class Body(BaseModel):
    """What a request brings; a name that is unknown is refused."""

    model_config = ConfigDict(extra="forbid")


class New(Body):
    """A new study."""

    name: str = Field(min_length=1, max_length=200)
    plan: str
    params: dict[str, Any] = {}
    seed: int | None = Field(None, ge=0, lt=2**63)
    budget: float | None = None
    currency: str | None = None
    prices: dict[str, Any] | None = None
    rows: list[str] | None = None
    cols: list[str] | None = None


class Ask(Body):
    """Questions that are wanted."""

    limit: int | None = Field(None, ge=1, le=MOST)
    worker: str | None = None
    lease: float = Field(3600.0, gt=0, le=366 * 86400.0)
    rows: list[str | int] | None = None
    cols: list[str | int] | None = None
    mode: str | None = None


class Tell(Body):
    """Answers by columns: of ids, or of rows and columns; a value of null has failed."""

    id: list[str] | None = Field(None, max_length=MOST)
    row: list[str | int] | None = Field(None, max_length=MOST)
    col: list[str | int] | None = Field(None, max_length=MOST)
    value: list[float | str | None] = Field(max_length=MOST)
    worker: str | None = None
    sure: bool = (
        True  # False: answers far from what was expected are asked back, and nothing is kept
    )


class Release(Body):
    """Questions to give back."""

    worker: str | None = None


class Entries(Body):
    """Completed entries that are wanted."""

    row: list[str | int] = Field(max_length=MOST)
    col: list[str | int] = Field(max_length=MOST)
    level: float = Field(LEVEL, gt=0, lt=1)


class Amend(Body):
    """A correction: of an answer by its id, or of an entry."""

    id: str | None = None
    row: str | int | None = None
    col: str | int | None = None
    value: float | str | None = None
    worker: str | None = None
    reason: str | None = Field(None, max_length=2000)


class Extend(Body):
    """What a study gets more of."""

    rows: list[str] | int | None = None
    cols: list[str] | int | None = None
    budget: float | None = None
    row_features: dict[str, Any] | None = None
    col_features: dict[str, Any] | None = None


class NewToken(Body):
    """A token to make."""

    role: str
    study: str | None = None
    days: float = 30.0
    title: str = Field("", max_length=200)
