"""What every answer carries: ``Result``, ``Certificate``, ``Interval``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from entrywise import npz
from entrywise.exceptions import DataError
from entrywise.types import Array


class Interval(NamedTuple):
    """Lower and upper ends, one each an entry asked."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Certificate:
    """What is promised about a result, in numbers for this very problem.

    Parameters
    ----------
    statement : str
        What `value` bounds, in a sentence.
    value : float
        The number.
    assumes : tuple of str
        What must be true for the statement to hold.
    checked : tuple of str
        Which of these were tested on the data.
    vacuous : bool
        Whether the number says nothing (larger than the trivial bound).
    """

    statement: str
    value: float
    assumes: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    vacuous: bool = False

    def __str__(self) -> str:
        words = f"{self.statement}: {self.value:.6g}"
        if self.assumes:
            words += f" (assuming {'; '.join(self.assumes)})"
        return words + (" [vacuous]" if self.vacuous else "")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """What every answer carries.

    ``cost`` is the money spent, ``status`` is ``finished``, ``exhausted`` (the money ran out) or
    ``stopped``, ``report`` says in words and numbers how the answer came about.
    """

    certificates: tuple[Certificate, ...] = ()
    cost: float = 0.0
    status: str = "finished"
    report: Mapping[str, Any] = field(default_factory=dict)

    _kinds: ClassVar[dict[str, type[Result]]] = {}

    def __init_subclass__(cls, **extra: Any) -> None:
        super().__init_subclass__(**extra)
        Result._kinds[cls.__name__] = cls

    def __repr__(self) -> str:
        """Name, shape and rank, status, cost and the first certificate: a line, not the arrays."""
        rank = getattr(self, "rank", None)
        words = [
            " x ".join(map(str, getattr(self, "shape", ()))),
            "" if rank is None else f"rank {rank}",
        ]
        words = [
            *filter(None, words),
            self.status,
            f"cost {self.cost:g}",
            *map(str, self.certificates[:1]),
        ]
        return f"{type(self).__name__}({', '.join(words)})"

    @property
    def certificate(self) -> Certificate | None:
        """The first certificate, if there is one."""
        return self.certificates[0] if self.certificates else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an npz file, whole or not at all; nothing is pickled."""
        arrays: dict[str, NDArray[Any]] = {}
        plain: dict[str, Any] = {"kind": type(self).__name__, "home": type(self).__module__}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                arrays[f.name] = value
            elif f.name == "certificates":
                plain[f.name] = [vars(c) for c in value]
            else:
                plain[f.name] = value
        npz.save(path, arrays, plain)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the result that :meth:`save` wrote."""
        plain, found = npz.unpack(path, "a result")
        if "kind" not in plain or "certificates" not in plain:
            raise DataError(f"{path} must hold a result saved by entrywise")
        home = str(plain.pop("home", ""))
        if plain["kind"] not in Result._kinds and home.startswith("entrywise."):
            importlib.import_module(home)  # a result that lives beside its method
        kind = Result._kinds.get(plain.pop("kind"), Result)
        if not issubclass(kind, cls):
            raise DataError(
                f"{path} holds a {kind.__name__}, not a {cls.__name__}; load it with {kind.__name__}.load"
            )
        known = {f.name: f for f in fields(kind)}
        plain["certificates"] = tuple(
            Certificate(
                c["statement"], c["value"], tuple(c["assumes"]), tuple(c["checked"]), c["vacuous"]
            )
            for c in plain["certificates"]
        )
        for name, value in plain.items():
            if isinstance(value, list):
                plain[name] = tuple(value)
        return kind(**{k: v for k, v in (plain | found).items() if k in known})
