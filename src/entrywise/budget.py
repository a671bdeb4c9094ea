"""The ledger: holds, charges, refuses. Never a cent over."""

from __future__ import annotations

import math

from entrywise.exceptions import Exhausted, ParameterError


class Ledger:
    """Money given, spent, and held for what was asked and not answered yet.

    The price of a batch is held whole before it is asked and charged answer by answer; what cannot be
    held is refused with :class:`~entrywise.exceptions.Exhausted`, and nothing changes.

    >>> ledger = Ledger(10)
    >>> ledger.hold(8.0)
    >>> ledger.charge(8.0)
    >>> ledger.left
    2.0
    """

    def __init__(self, budget: float | None = None) -> None:
        if budget is not None and not (math.isfinite(budget) and budget >= 0):
            raise ParameterError(f"budget must be finite and not below 0, got {budget}")
        self.budget = None if budget is None else float(budget)
        self.held = 0.0
        self._charges: list[float] = []
        self._spent = 0.0

    @property
    def spent(self) -> float:
        """What was charged so far."""
        return self._spent

    @property
    def left(self) -> float:
        """What is neither spent nor held; infinite without a budget."""
        return math.inf if self.budget is None else self.budget - self.spent - self.held

    def hold(self, amount: float) -> None:
        """Set `amount` aside, or raise Exhausted."""
        slack = 1e-9 * (self.budget or 0.0)  # round-off in sums of prices, far below a cent
        if amount > self.left + slack:
            raise Exhausted(
                f"the next batch costs {amount:g} and {max(self.left, 0.0):g} of {self.budget:g} is left; raise the budget"
            )
        self.held += amount

    def charge(self, amount: float) -> None:
        """Turn `amount` of what was held into money spent."""
        if amount == 0.0:
            return
        self.held = max(0.0, self.held - amount)
        self._charges.append(amount)
        if len(self._charges) > 1000:
            self._charges = [math.fsum(self._charges)]
        self._spent = math.fsum(self._charges)

    def release(self) -> None:
        """Give back what is held."""
        self.held = 0.0
