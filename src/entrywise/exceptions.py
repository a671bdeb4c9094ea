"""Every error of entrywise, sorted by whose fault it is.

::

    EntrywiseError
    ├── CallerError                 you: nothing was changed, mend the call
    │   ├── ParameterError          a parameter outside its domain
    │   ├── DataError               observations or files that cannot be used
    │   │   └── NotIdentifiable     the known entries do not determine what was asked
    │   └── TellError               an answer to a question that is not open
    ├── AnswerError                 the oracle: an answer that cannot be true
    │   └── NotPSD                  answers that no positive semidefinite matrix gives
    ├── OracleError                 nobody answered: a worker or a command that failed again and again
    ├── Exhausted                   the money: the next batch cannot be paid whole
    └── StoreError                  the store: a study missing, in the way, or unlike its log
        └── ReplayDiverged          the plan asks for something else than the log says

Messages have one form: what must hold, what came, what to do.
"""

from __future__ import annotations

from typing import Any


class EntrywiseError(Exception):
    """Root of every error that entrywise raises on purpose.

    ``run`` is set by :func:`entrywise.play` when an oracle fails midway: playing that run goes on.
    """

    run: Any = None


class CallerError(EntrywiseError):
    """The caller's mistake; nothing was changed."""


class ParameterError(CallerError, ValueError):
    """A parameter outside its domain."""


class DataError(CallerError, ValueError):
    """Observations or files that cannot be used."""


class NotIdentifiable(DataError):
    """The known entries do not determine what was asked."""


class TellError(CallerError, ValueError):
    """An answer to a question that is not open."""


class AnswerError(EntrywiseError, ValueError):
    """The oracle's answer cannot be true."""


class NotPSD(AnswerError):
    """Answers that no positive semidefinite matrix gives."""


class OracleError(EntrywiseError):
    """Nobody answered: a worker or a command that failed, or took too long, again and again."""


class Exhausted(EntrywiseError):
    """The next batch cannot be paid whole; thrown into a plan at its pending ``yield``."""


class StoreError(EntrywiseError):
    """A study that is missing, in the way, or unlike its log."""


class ReplayDiverged(StoreError):
    """The plan asks for something else than the log says."""
