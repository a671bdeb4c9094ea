"""What every answer carries: ``Result``, ``Certificate``, ``Interval``."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from entrywise import fragments, npz
from entrywise.exceptions import DataError, ParameterError
from entrywise.types import Array


class Interval(NamedTuple):
    """Lower and upper ends, one each an entry asked."""

    low: Array
    high: Array


def refuse_level(level: float, name: str = "level") -> None:
    """Refuse a share of intervals that is none."""
    if not 0 < level < 1:
        raise ParameterError(f"{name} must be above 0 and below 1, got {level}")


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
        return words + (" [vacuous: it says nothing on this problem]" if self.vacuous else "")


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
        words = [self.status, f"cost {self.cost:g}", *map(str, self.certificates[:1])]
        rank, shape = getattr(self, "rank", None), getattr(self, "shape", None)
        if rank is not None:
            words.insert(0, f"rank {rank}")
        if shape is not None:
            words.insert(0, " x ".join(map(str, shape)))
        return f"{type(self).__name__}({', '.join(words)})"

    def _repr_html_(self) -> str:
        """What notebooks show: what it is, what it cost, what is certified."""
        facts: dict[str, object] = {"status": self.status, "cost": float(self.cost)}
        for name in ("shape", "rank", "pair"):
            found = getattr(self, name, None)
            if found is not None:
                facts[name] = " x ".join(map(str, found)) if name == "shape" else str(found)
        for certificate in self.certificates:
            facts[certificate.statement] = str(certificate).removeprefix(
                f"{certificate.statement}: "
            )
        return fragments.card(type(self).__name__, facts)

    @property
    def certificate(self) -> Certificate | None:
        """The first certificate, if there is one."""
        return self.certificates[0] if self.certificates else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an npz file, whole or not at all; nothing is pickled."""
        named = npz.flatten(self)
        arrays = {name: value for name, value in named.items() if isinstance(value, np.ndarray)}
        plain = {name: value for name, value in named.items() if name not in arrays}
        plain["certificates"] = [vars(c) for c in self.certificates]
        plain |= {"kind": type(self).__name__, "home": type(self).__module__}
        npz.save(path, arrays, plain)

    @classmethod
    def load(cls, path: str | os.PathLike[str] | bytes) -> Self:
        """Return the result that :meth:`save` wrote, from its file or from the bytes of it.

        Of a large file (256 MB of arrays) nothing is read before it is looked at: it may be larger than memory.
        """
        plain, arrays = npz.unpack(path, "a result")
        path = "the bytes" if isinstance(path, bytes) else path
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
        certificates = tuple(_certificate(c) for c in plain.pop("certificates"))
        tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
        named = tuples | arrays | {"certificates": certificates}
        found: Self = npz.rebuild(kind, named, str(path))
        return found


def _certificate(saved: Mapping[str, Any]) -> Certificate:
    return Certificate(
        statement=saved["statement"],
        value=saved["value"],
        assumes=tuple(saved["assumes"]),
        checked=tuple(saved["checked"]),
        vacuous=saved["vacuous"],
    )
