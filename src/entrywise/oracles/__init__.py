"""Who answers: a matrix, a function, a kernel, a coin, two instruments, a stream, workers, a command.

An oracle is anything called with a :class:`~entrywise.queries.Batch` that returns one float64 a
position. Those here count what they were asked (``spent`` positions, ``calls`` batches).

An oracle that answers many questions at a time may offer ``submit(batch)``, an iterator of
(positions, values) as they come, and ``width``, how many questions it works on at once:
:func:`entrywise.play` tells each answer as it comes and keeps the oracle busy.
"""

from entrywise.oracles.oracle import CountingOracle, FunctionOracle, Names, Oracle
from entrywise.oracles.simulated import (
    KERNELS,
    BernoulliOracle,
    KernelOracle,
    MatrixOracle,
    StreamOracle,
    TwoCostOracle,
)
from entrywise.oracles.workers import CommandOracle, ExecutorOracle

__all__ = [
    "KERNELS",
    "BernoulliOracle",
    "CommandOracle",
    "CountingOracle",
    "ExecutorOracle",
    "FunctionOracle",
    "KernelOracle",
    "MatrixOracle",
    "Names",
    "Oracle",
    "StreamOracle",
    "TwoCostOracle",
]
