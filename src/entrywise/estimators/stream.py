"""Online binary completion in river's convention: labelled rows and columns, true and false."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from entrywise import npz
from entrywise.exceptions import DataError, ParameterError
from entrywise.methods import get
from entrywise.online import Learner

if TYPE_CHECKING:
    Base = object
else:
    try:
        from river.base import Classifier as Base
    except ImportError:  # river is not needed: the methods are all here
        Base = object


class BinaryStream(Base):
    """Predict whether a row takes a column, before each answer is known: votes, clicks, test results.

    A river classifier over dictionaries that name a row and a column; works without river too.

    Parameters
    ----------
    learner : str
        Name of an online method: ``auto``, ``matrix-winnow``, ``symmetric-winnow``, ... (``entrywise methods online``).
    settings : dict, optional
        Its parameters, ``{"gamma": 0.5}`` say.
    row, col : str
        Keys of the features that name the row and the column. Values are compared as strings; a key that is absent
        is the row (column) of everything unnamed. Other features are ignored.

    Examples
    --------
    >>> model = BinaryStream()
    >>> model.predict_one({"row": "user-17", "col": "item-7"})
    True
    >>> model.learn_one({"row": "user-17", "col": "item-7"}, False)
    >>> model.predict_one({"row": "user-17", "col": "item-7"}), model.mistakes
    (False, 1)
    """

    def __init__(
        self,
        learner: str = "auto",
        settings: dict[str, Any] | None = None,
        row: str = "row",
        col: str = "col",
    ) -> None:
        self.learner, self.settings, self.row, self.col = learner, settings, row, col
        try:
            self._state: Learner = get(learner, "online").load()(**(settings or {}))
        except TypeError as error:
            raise ParameterError(f"settings of {learner}: {error}") from None
        self._rows: dict[str, int] = {}
        self._cols: dict[str, int] = {}
        self.journalled: int | None = 0  # labels learnt that a journal holds; None: not known

    # river's convention

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        """Learn that the entry named by `x` is `y`: true or false, 1 or 0, +1 or -1."""
        sign = truth(y)
        i, j = self._index(x, add=True)
        self._state = self._state.learn(i, j, sign)

    def predict_one(self, x: Mapping[str, Any], **_: Any) -> bool:
        """Return the predicted label of the entry named by `x`."""
        return self._state.predict(*self._index(x)) > 0

    def predict_proba_one(self, x: Mapping[str, Any], **_: Any) -> dict[bool, float]:
        """Return a share for True and for False; it grows with the learner's margin and is not calibrated."""
        i, j = self._index(x)
        margin = self._state.margin(i, j)
        share = 0.5 + 0.5 * margin / (1.0 + abs(margin))
        if (share >= 0.5) != self.predict_one(x):  # a tie that round-off put on the other side
            share = 0.5
        return {False: 1.0 - share, True: share}

    # many at once

    def follow(self, xs: Sequence[Mapping[str, Any]], ys: Sequence[Any]) -> NDArray[np.bool_]:
        """Predict and learn a stream; return the predictions, each made before its own label was learnt."""
        signs = [truth(y) for y in ys]
        where = [self._index(x, add=True) for x in xs]
        rows, cols = np.array(where, np.int64).reshape(len(where), 2).T
        predictions, self._state = self._state.follow(rows, cols, np.array(signs, np.int8))
        return np.asarray(predictions > 0)

    def predict(self, xs: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
        """Return the predicted labels of many entries, all from the state as it is."""
        rows, cols = np.array([self._index(x) for x in xs], np.int64).reshape(len(xs), 2).T
        return np.asarray(self._state.predict_many(rows, cols) > 0)

    # what it knows

    @property
    def state(self) -> Learner:
        """The frozen learner; its rows and columns are numbered in the order of :attr:`rows` and :attr:`cols`."""
        return self._state

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows learnt so far, in the order in which they appeared."""
        return tuple(self._rows)

    @property
    def cols(self) -> tuple[str, ...]:
        """Names of the columns learnt so far."""
        return tuple(self._cols)

    @property
    def mistakes(self) -> int:
        """Labels that were predicted wrongly before they were learnt."""
        return self._state.mistakes

    @property
    def trials(self) -> int:
        """Labels learnt."""
        return self._state.trials

    def _index(self, x: Mapping[str, Any], add: bool = False) -> tuple[int, int]:
        """Return 0-based indices; names that are not known share the next free index."""
        found = []
        for key, known in ((self.row, self._rows), (self.col, self._cols)):
            name = label_of(x.get(key, ""), key)
            found.append(known.setdefault(name, len(known)) if add else known.get(name, len(known)))
        return found[0], found[1]

    # files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write learner and names to an npz file, whole or not at all; nothing is pickled."""
        plain, arrays = self._state.state()
        mine: dict[str, Any] = {
            "learner": self.learner,
            "settings": self.settings,
            "row": self.row,
            "col": self.col,
            "state": plain,
            "journalled": self.journalled,
            "rows": list(self._rows),
            "cols": list(self._cols),
        }
        npz.save(path, arrays, mine)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the stream that :meth:`save` wrote."""
        mine, arrays = npz.unpack(path, "a stream")
        try:
            new = cls(mine["learner"], mine["settings"], mine["row"], mine["col"])
            new._state = Learner.from_state(mine["state"], arrays)
        except (KeyError, ValueError) as error:
            raise DataError(f"{path} must hold a stream saved by entrywise: {error}") from None
        new.journalled = mine.get("journalled")
        new._rows = {name: k for k, name in enumerate(mine["rows"])}
        new._cols = {name: k for k, name in enumerate(mine["cols"])}
        return new


def label_of(value: Any, what: str) -> str:
    """Return the name of a row or column: a string, or an integer not below 0 as one."""
    if isinstance(value, str):
        return value
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if whole and value >= 0:
        return str(int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(value):
        return repr(float(value))
    raise DataError(f"{what} must be a name or an integer not below 0, got {value!r}")


def truth(value: Any) -> int:
    """Return -1 or +1 for true and false, 1 and 0, +1 and -1; refuse anything else."""
    number = isinstance(value, (bool, np.bool_, int, np.integer, float, np.floating))
    if number and value in (0, 1, -1):
        return 1 if value == 1 else -1
    raise DataError(
        f"a label must be true or false (or 1 and 0, +1 and -1), got {value!r}; recode it"
    )
