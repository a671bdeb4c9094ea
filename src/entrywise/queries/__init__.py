"""What may be asked and what it costs: batches, prices, plans, and what a step looks at.

The :func:`plan` decorator turns a generator function, or a step function, into a maker of frozen
:class:`Plan` values that can be started any number of times, always alike.
"""

from entrywise.queries.batch import REPEATS, Batch
from entrywise.queries.checkpoint import Checkpoint
from entrywise.queries.history import History
from entrywise.queries.planning import Asking, Plan, plan
from entrywise.queries.prices import Price, Prices
from entrywise.queries.situation import Situation

__all__ = [
    "REPEATS",
    "Asking",
    "Batch",
    "Checkpoint",
    "History",
    "Plan",
    "Price",
    "Prices",
    "Situation",
    "plan",
]
