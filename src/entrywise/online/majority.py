"""A weighted majority over learners: as good as the best of them, up to a factor and a logarithm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import ParameterError
from entrywise.online._learner import FORMAT, Learner, Signs, index, indices, positive
from entrywise.online.factorization import OnlineFactorization
from entrywise.online.symmetric import SymmetricWinnow
from entrywise.online.winnow import MatrixWinnow
from entrywise.types import Array, Indices


@dataclass(frozen=True, eq=False)
class Majority(Learner):
    r"""Let learners vote, each with weight :math:`\beta^{\text{its mistakes}}`.

    Each expert learns from every label in its own way, whatever the majority said.

    Parameters
    ----------
    experts : sequence of learners
        States to start from, one each.
    beta : float
        What a mistake costs an expert, in (0, 1).

    Notes
    -----
    Deterministic: :math:`M \le (\ln(1/\beta) M^* + \ln G) / \ln(2/(1+\beta))` with G experts, the best of which makes
    :math:`M^*` mistakes [LW94]: 2.41 M* + 3.48 ln G at one half. In practice it stays within a few per cent of M*.

    References
    ----------
    .. [LW94] Littlestone, Warmuth, *The Weighted Majority Algorithm*, Information and Computation 108, 1994.

    Examples
    --------
    >>> learner = Majority([MatrixWinnow(1.0), MatrixWinnow(0.5)]).learn(0, 0, -1)
    >>> learner.predict(0, 0), learner.mistakes, learner.losses.tolist()
    (-1, 1, [1, 1])
    """

    experts: Sequence[Learner]
    beta: float = 0.5
    losses: Indices = field(default_factory=lambda: np.zeros(0, np.int64), init=False)

    def __post_init__(self) -> None:
        experts = tuple(self.experts)
        if not experts or not all(isinstance(e, Learner) for e in experts):
            raise ParameterError(f"experts must be learners, at least one, got {experts!r}")
        positive(self.beta, "beta", 0.0, 1.0)
        object.__setattr__(self, "experts", experts)
        object.__setattr__(self, "losses", np.zeros(len(experts), np.int64))

    def _empty(self) -> None:
        return None  # its experts remember

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with, experts apart."""
        return {"beta": self.beta}

    def _votes(self, signs: NDArray[np.int8], losses: Indices) -> Array:
        """Return the share by which + outweighs -, in [-1, 1], for predictions (b, G) at losses (b, G)."""
        weights = self.beta ** (losses - losses.min(axis=1, keepdims=True)).astype(np.float64)
        score, total = np.zeros(len(signs)), np.zeros(len(signs))
        for k in range(signs.shape[1]):  # in a fixed order, so that many is the same as one by one
            score += weights[:, k] * signs[:, k]
            total += weights[:, k]
        return np.asarray(score / total)

    def _share(self, i: Indices, j: Indices) -> Array:
        signs = np.stack([e.predict_many(i, j) for e in self.experts], axis=-1)
        return self._votes(signs, np.broadcast_to(self.losses, signs.shape))

    def predict(self, i: int, j: int) -> int:
        """Return the predicted label of entry (i, j), -1 or +1."""
        return 1 if self.margin(i, j) >= 0.0 else -1

    def margin(self, i: int, j: int) -> float:
        """Return the share of the weight by which the prediction wins, signed, in [-1, 1]."""
        return float(self._share(np.array([index(i, "row")]), np.array([index(j, "column")]))[0])

    def predict_many(self, rows: ArrayLike, cols: ArrayLike) -> Signs:
        """Return the predicted labels at (rows, cols), shapes broadcast, all from this one state."""
        i, j = indices(rows, cols)
        share = self._share(i.ravel(), j.ravel())
        return np.where(share >= 0.0, 1, -1).astype(np.int8).reshape(i.shape)

    def _follow(self, i: Indices, j: Indices, y: Signs) -> tuple[Signs, Self]:
        found = [e._follow(i, j, y) for e in self.experts]
        signs = np.stack([predictions for predictions, _ in found], axis=-1)  # (T, G)
        wrong = (signs != y[:, None]).astype(np.int64)
        before = self.losses + np.cumsum(wrong, axis=0) - wrong
        predictions = np.where(self._votes(signs, before) >= 0.0, 1, -1).astype(np.int8)
        new = self._with(
            experts=tuple(e for _, e in found),
            losses=self.losses + wrong.sum(axis=0),
            trials=self.trials + len(y),
            mistakes=self.mistakes + int((predictions != y).sum()),
        )
        return predictions, new

    @property
    def best(self) -> Learner:
        """The expert with the fewest mistakes so far."""
        return self.experts[int(np.argmin(self.losses))]

    def bound(self) -> float:
        """Return the most mistakes that the experts' own mistakes so far allow."""
        fewest = float(self.losses.min())
        cost = math.log(1.0 / self.beta) * fewest + math.log(len(self.experts))
        return cost / math.log(2.0 / (1.0 + self.beta))

    @property
    def report(self) -> dict[str, Any]:
        """Mistakes so far, of every expert too, how many more than the best of them, and the bound."""
        experts = zip(self.experts, self.losses, strict=True)
        each = {"mistakes_of": {_name(e): int(k) for e, k in experts}}
        bound = self.bound()
        told = {"bound": bound, "bound_is_vacuous": bound >= self.trials}
        best = {
            "best_learner": _name(self.best),
            "regret": self.mistakes - int(self.losses.min()),
        }
        return super().report | each | best | told

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return (plain values, arrays) from which this state is made again."""
        plain: dict[str, Any] = {
            "kind": "Majority",
            "format": FORMAT,
            "params": self.params,
            "experts": [],
        }
        plain |= {"trials": self.trials, "mistakes": self.mistakes}
        arrays: dict[str, NDArray[Any]] = {"losses": self.losses}
        for k, expert in enumerate(self.experts):
            its_plain, its_arrays = expert.state()
            plain["experts"].append(its_plain)
            arrays |= {f"{k}/{name}": x for name, x in its_arrays.items()}
        return plain, arrays

    @classmethod
    def _restore(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        experts = []
        for k, its_plain in enumerate(plain["experts"]):
            head = f"{k}/"
            its = {name[len(head) :]: x for name, x in arrays.items() if name.startswith(head)}
            experts.append(Learner.from_state(its_plain, its))
        new = cls(experts, **plain["params"])
        return new._with(
            losses=arrays["losses"].astype(np.int64),
            trials=plain["trials"],
            mistakes=plain["mistakes"],
        )


def _name(expert: Learner) -> str:
    said = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in expert.params.items()]
    return f"{type(expert).__name__}({', '.join(said)})"


def auto() -> Majority:
    """Return the learner to use when nothing is known: a majority over four that are each best somewhere.

    Matrix Winnow with slack, which has a bound, is best on the simplest matrices; the symmetric form where labels are noisy;
    a factorisation that revisits earlier labels on richer matrices without noise.

    Examples
    --------
    >>> learner = auto().learn_many([0, 0, 1], [0, 1, 0], [1, -1, 1])
    >>> learner.predict(1, 1), learner.trials
    (-1, 3)
    """
    return Majority(
        (
            MatrixWinnow(1.0, slack=0.15),
            SymmetricWinnow(1.0, slack=0.4),
            SymmetricWinnow(0.5, slack=0.2),
            OnlineFactorization(10, rate=0.4, penalty=0.03, replay=100),
        )
    )
