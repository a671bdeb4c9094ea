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
from entrywise.online.refitted_low_rank import RefittedLowRank
from entrywise.online.symmetric import SymmetricWinnow
from entrywise.online.winnow import MatrixWinnow
from entrywise.types import Array, Indices

LOOK = 1024  # trials between two looks for experts without hope
HEAVY = 4096  # burden from which an expert may be put to sleep: some 20 microseconds a prediction
HOPELESS = 4.0  # standard deviations of its mistakes less the best's, were they independent


@dataclass(frozen=True, eq=False)
class Majority(Learner):
    r"""Let learners vote, each with weight :math:`\beta^{\text{its mistakes}}`.

    Each expert learns from every label in its own way, whatever the majority said, until it falls asleep: every 1024
    trials one whose predictions are dear (``burden`` above 4096) and that made
    :math:`4 \sqrt{L_k + L_{\min}}` more mistakes than the best awake neither predicts nor learns any more.

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

    Sleep keeps the bound, with M* over the mistakes :math:`L_k` that an expert made awake and the majority made since it
    sleeps [FSSW97]. Deem a sleeper to say what the majority says. Where the majority errs, half of the weight that is awake
    and all that sleeps is multiplied by :math:`\beta`, so that the sum W of all weights falls to
    :math:`(1 + \beta) W / 2` at most, while :math:`W \ge \beta^{L_k}` for every k; take logarithms. For an expert that never
    slept, :math:`L_k` is its own mistakes. The best of those awake never falls asleep. ``losses`` are these
    :math:`L_k`.

    References
    ----------
    .. [LW94] Littlestone, Warmuth, *The Weighted Majority Algorithm*, Information and Computation 108, 1994.
    .. [FSSW97] Freund, Schapire, Singer, Warmuth, *Using and combining predictors that specialize*, STOC 1997.

    Examples
    --------
    >>> learner = Majority([MatrixWinnow(1.0), MatrixWinnow(0.5)]).learn(0, 0, -1)
    >>> learner.predict(0, 0), learner.mistakes, learner.losses.tolist()
    (-1, 1, [1, 1])
    """

    experts: Sequence[Learner]
    beta: float = 0.5
    losses: Indices = field(default_factory=lambda: np.zeros(0, np.int64), init=False)
    awake: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_), init=False)

    def __post_init__(self) -> None:
        experts = tuple(self.experts)
        if not experts or not all(isinstance(e, Learner) for e in experts):
            raise ParameterError(f"experts must be learners, at least one, got {experts!r}")
        positive(self.beta, "beta", 0.0, 1.0)
        object.__setattr__(self, "experts", experts)
        object.__setattr__(self, "losses", np.zeros(len(experts), np.int64))
        object.__setattr__(self, "awake", np.ones(len(experts), np.bool_))

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
        at = np.flatnonzero(self.awake)
        signs = np.stack([self.experts[k].predict_many(i, j) for k in at.tolist()], axis=-1)
        return self._votes(signs, np.broadcast_to(self.losses[at], signs.shape))

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
        new, predictions = self, np.zeros(len(y), np.int8)
        first = 0
        while first < len(y):
            part = slice(first, min(len(y), first + LOOK - new.trials % LOOK))
            predictions[part], new = new._stretch(i[part], j[part], y[part])
            if new.trials % LOOK == 0:
                new = new._with(awake=new.awake & ~new._hopeless())
            first = part.stop
        return predictions, new

    def _stretch(self, i: Indices, j: Indices, y: Signs) -> tuple[Signs, Self]:
        """Predict and learn trials during which nobody falls asleep."""
        at = np.flatnonzero(self.awake)
        experts = list(self.experts)
        signs = np.empty((len(y), len(at)), np.int8)
        for g, k in enumerate(at):
            signs[:, g], experts[k] = experts[k]._follow(i, j, y)
        wrong = (signs != y[:, None]).astype(np.int64)
        before = self.losses[at] + np.cumsum(wrong, axis=0) - wrong
        predictions = np.where(self._votes(signs, before) >= 0.0, 1, -1).astype(np.int8)
        mistakes = int((predictions != y).sum())
        losses = self.losses + mistakes  # a sleeper is deemed to say what the majority says
        losses[at] = self.losses[at] + wrong.sum(axis=0)
        new = self._with(
            experts=tuple(experts),
            losses=losses,
            trials=self.trials + len(y),
            mistakes=self.mistakes + mistakes,
        )
        return predictions, new

    def _hopeless(self) -> NDArray[np.bool_]:
        """Tell which experts are dear and far behind the best that is awake."""
        best = self.losses[self.awake].min()
        far = self.losses - best > HOPELESS * np.sqrt(self.losses + best)
        dear = np.array([e.burden > HEAVY for e in self.experts])
        return np.asarray(far & dear)

    @property
    def best(self) -> Learner:
        """The expert with the fewest mistakes so far, of those awake."""
        return self.experts[int(np.argmin(np.where(self.awake, self.losses, self.trials + 1)))]

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
        asleep = [_name(e) for e, up in zip(self.experts, self.awake, strict=True) if not up]
        bound = self.bound()
        told = {"bound": bound, "bound_is_vacuous": bound >= self.trials}
        best = {
            "best_learner": _name(self.best),
            "regret": self.mistakes - int(self.losses[self.awake].min()),
        }
        if asleep:
            best["asleep"] = asleep
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
        arrays: dict[str, NDArray[Any]] = {"losses": self.losses, "awake": self.awake}
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
        awake = arrays.get("awake", new.awake)  # older files have no sleepers
        return new._with(
            losses=arrays["losses"].astype(np.int64),
            awake=awake.astype(np.bool_),
            trials=plain["trials"],
            mistakes=plain["mistakes"],
        )


def _name(expert: Learner) -> str:
    said = [f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in expert.params.items()]
    return f"{type(expert).__name__}({', '.join(said)})"


def auto() -> Majority:
    """Return the learner to use when nothing is known: a majority over five that are each best somewhere.

    Matrix Winnow with slack, which has a bound, is best on the simplest matrices; the symmetric form on small noisy ones;
    a factorisation that revisits earlier labels on richer matrices without noise; low-rank fits made again as labels grow
    where they are many and noisy.

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
            RefittedLowRank(),
        )
    )
