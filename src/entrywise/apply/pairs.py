r"""Which two items to show together: the best pair, by low rank where it helps and by plain halving where not.

Users come in unknown groups; group k takes item i with chance :math:`u_k(i)`. The chance that a user takes
neither i nor j is

.. math:: L_{ij} = \sum_k p_k (1 - u_k(i)) (1 - u_k(j)), \qquad R = 1 1^\top - L,

a PSD matrix with one rank a group. The best pair is its smallest entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np

from entrywise.active.nystrom.adaptive import adaptive_nystrom
from entrywise.active.nystrom.stochastic import State, explore, refuse
from entrywise.active.pairs.halving import arms_for, halve, ranked, rounds_for
from entrywise.active.pairs.tally import (
    BestPair,
    Tally,
    count_pairs,
    draw_pairs,
    evenly,
    finish,
    pull,
    pulls_for,
    smallest_pairs,
)
from entrywise.apply.population import Population, PopulationOracle, population, regret
from entrywise.bounds.active_psd import coin_difference, coin_upper
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.queries import Asking, Batch, Checkpoint, History, Prices, plan
from entrywise.results import Certificate, PSDFactor
from entrywise.run import Memory
from entrywise.types import Array, Indices, Seed, generator

__all__ = ["Population", "PopulationOracle", "best_pair", "population", "regret"]

EXPLORE = 0.4  # of the budget for the low-rank picture
STRANGERS = (
    0.25  # of the finalists drawn at random: what halving would have found without the picture
)
FIRST = 4  # phases of the exploration; item rounds and halving rounds are the phases after them
ITEMS = 0.45  # of the budget, where pairs say nothing, for learning finalists through their items
ITEM_ROUNDS = 6  # in each of which half of the items are dropped
FEWEST = 4  # items that are never dropped
HEARD = 5.0  # failures of a pair that tell more than its items do
GOOD = 0.05  # the quantile of items' mean losses that counts as good
PRIOR = 4.0  # answers with the mean loss that every item is given beforehand
TRUST = 1.0  # times the answers that finalists got: as many, at most, the picture of one is worth


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def best_pair(
    n_items: int,
    prices: Prices | None = None,
    *,
    budget: float | None = None,
    rank: int = 4,
    noise: float | None = None,
    answers: Literal["failure", "success"] = "failure",
    ask_diagonal: bool | None = None,
    allow_same: bool = False,
    delta: float = 0.05,
    rng: Seed = None,
    resume: Checkpoint | None = None,
    history: History | None = None,
) -> Asking[BestPair]:
    r"""Find the two items of which a user takes at least one most often.

    .. math:: (i, j) = \arg\min_{i < j} L_{ij}, \qquad L = \sum_k p_k (1 - u_k)(1 - u_k)^\top

    Parameters
    ----------
    n_items : int
    prices : Prices, optional
        Price of an answer, one number.
    budget : float
        Money to spend, exactly; not needed with ``noise=0``.
    rank : int
        Groups of users that the low-rank picture may tell apart.
    noise : float, optional
        None: an answer is a coin (or lies in 0..1). A number: standard deviation of an answer. 0: answers are exact
        values :math:`L_{ij}`; adaptive Nyström then finds the best pair in at most (r + 1) n questions.
    answers : {"failure", "success"}
        ``failure``: 1 means that neither item was taken. ``success``: 1 means a click.
    ask_diagonal : bool, optional
        Whether (i, i) may be asked: it needs two independent draws from the same user, since one draw has mean
        :math:`\sum_k p_k (1 - u_k(i))` and not its square. Default: only with ``noise=0``; without it the diagonal follows
        from the fit.
    allow_same : bool
        Whether (i, i), one item shown twice, may win. Where it is not asked its loss follows from the fit, which needs
        a rank that is not too large: one item apart from all others could have any.
    delta : float
        Chance of error of the certificates.
    rng : int or Generator

    Yields
    ------
    Batch
        Pairs to show, as often as they are listed, each to a new user. Failed answers are left out.
        Checkpoints stand between the phases and the rounds of halving.

    Returns
    -------
    BestPair
        ``pair``, the mean ``value`` of its answers as losses, ``factor`` of the low-rank picture. Certificates, from answers
        of a round alone, which no selection has touched: an upper end for the pair's loss (no loss is below 0, so no pair
        is better by more), and by how much the last pair that it was compared with may still be better;
        ``report["runner_up"]`` names that one and ``report["difference"]`` has the interval of its loss less the pair's.

    Notes
    -----
    Two fifths of the budget draw a low-rank picture (:func:`~entrywise.active.stochastic_nystrom`). There are two ways to learn
    more about the pairs that look best in it: to ask for them, or to ask for their items beside items that are often
    refused, and to fit again. Where all good pairs have tiny losses the first way hears nothing but zeros; so, if a good
    pair would fail less than five times in all of its answers, 45 % of the budget goes into rounds on items, after
    each of which the worse half is dropped. The best pairs of the items left, and a quarter of random strangers,
    then go through sequential halving, where the picture counts as many answers as its variance is worth, and is fitted
    again after each round where pairs say little by themselves. The
    strangers are the automatic choice between low rank and plain halving: if the picture misleads, a stranger wins.

    References
    ----------
    .. [BGN17] Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017, Section 5. Its
       estimate of the smallest entry of a noisy completion is a winner's curse; the finalists are asked instead.
    .. [KKS13] Karnin, Koren, Somekh, *Almost optimal exploration in multi-armed bandits*, ICML 2013.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.apply.pairs import Population, PopulationOracle
    >>> users = Population([0.5, 0.5], [[0.9, 0.1, 0.2, 0.3], [0.1, 0.8, 0.2, 0.3]])
    >>> found = ew.play(best_pair(4, budget=2000, rng=0), PopulationOracle(users, rng=1))
    >>> found.pair, found.cost, found.certificate.value < 0.25
    ((0, 1), 2000.0, True)
    """
    refuse(n_items, rank, noise, "best_pair")
    if not 0 < delta < 1:
        raise ParameterError(f"delta of best_pair must be between 0 and 1, got {delta}")
    if n_items < 2 and not allow_same:
        raise ParameterError(f"n_items of best_pair must be at least 2, got {n_items}")
    if answers not in ("failure", "success"):
        raise ParameterError(f"answers must be failure or success, got {answers!r}")
    diagonal = (noise == 0) if ask_diagonal is None else ask_diagonal
    if noise == 0:
        if not diagonal:
            raise ParameterError(
                "exact answers need the diagonal; leave ask_diagonal alone, or state a noise above 0"
            )
        return (yield from _exact(n_items, answers == "success", allow_same, history))
    draws = generator(rng) if resume is None else resume.generator()
    total = pulls_for(n_items, prices, budget, allow_same, "best_pair")
    state = State(n_items, rank, noise, diagonal, draws, history, answers == "success")
    search = _Search(state, allow_same and diagonal)
    if resume is not None:
        search.restore(resume)
    status = "finished"
    try:
        asking = search.run(total)
        yield from (_as_losses(asking) if answers == "success" else asking)
    except Exhausted:
        status = "exhausted"
    return search.result(status, delta, allow_same)


class _Search:
    """The parts of the plan: a low-rank picture, rounds on items where pairs say nothing, then halving on pairs."""

    def __init__(self, state: State, same: bool) -> None:
        self.state, self.same = state, same
        self.rows, self.cols = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.guess = np.zeros(0)
        self.rounds = 0
        self.F = np.zeros((state.n, 0))
        self.items = np.arange(state.n)
        self.before = Tally(state.n)
        self.final = np.zeros(
            (4, 0)
        )  # rows, columns, counts and sums of the last who were compared

    def restore(self, kept: Checkpoint) -> None:
        """Take what the checkpoint of a run kept."""
        self.state.restore(kept.arrays)
        if "items" in kept.arrays:
            self.items, self.F = kept.arrays["items"], kept.arrays["F"]
        if "rounds" in kept.arrays:
            self.rows, self.cols, self.guess = (kept.arrays[k] for k in ("rows", "cols", "guess"))
            self.rounds = int(kept.arrays["rounds"])
            self.final = kept.arrays.get("final", self.final)

    def run(self, total: int) -> Asking[None]:
        """Explore, learn about good items, choose finalists, halve until one is left."""
        state = self.state
        yield from explore(state, round(EXPLORE * total))
        if state.phase == FIRST:
            self.F = state.fit()
            state.phase += 1
        while FIRST < state.phase <= FIRST + ITEM_ROUNDS:
            yield state.checkpoint(items=self.items, F=self.F)
            end = EXPLORE + ITEMS * (state.phase - FIRST) / ITEM_ROUNDS
            part = round(end * total) - state.tally.asked
            if part <= 0 or not (
                state.phase > FIRST + 1 or self._silent(total - state.tally.asked)
            ):
                state.phase = FIRST + ITEM_ROUNDS
            else:
                yield from self._ask_items(part)
            state.phase += 1
        if state.phase == FIRST + ITEM_ROUNDS + 1:
            self._choose(total - state.tally.asked)
            state.phase += 1
        while self.rounds:
            kept = {"rows": self.rows, "cols": self.cols, "guess": self.guess}
            here = {"items": self.items, "F": self.F, "rounds": np.array(self.rounds)}
            yield state.checkpoint(**kept, **here, final=self.final)
            left = total - state.tally.asked
            if self.rounds == 1:  # what comes now is untouched by any choice
                self.before.restore(state.tally.arrays())
            finalists, so_far = (self.rows, self.cols), state.tally.look(self.rows, self.cols)
            rows, cols = yield from halve(
                state.tally,
                self.rows,
                self.cols,
                left // self.rounds,
                state.rng,
                self.guess,
                self._worth(),
            )
            if len(finalists[0]) > 1 == len(rows):
                now = state.tally.look(*finalists)
                self.final = np.array([*finalists, now[0] - so_far[0], now[1] - so_far[1]])
            self.rows, self.cols = rows, cols
            if len(self.items) < state.n:  # pairs say little each, and more through their items
                self.F = state.fit()
            self.guess = self._guess(rows, cols)
            self.rounds -= 1

    def _silent(self, left: int) -> bool:
        """Whether a good pair would be heard to fail less than a few times, however long it stays in the race.

        Its loss is guessed as for one group of users: the product of two good items' mean losses over the mean of all.
        Asked once, after the exploration: later answers of good items are beside partners that are often refused, and
        would make them look worse than they are.
        """
        t, n = self.state.tally, self.state.n
        if self.state.noise is not None or len(t.keys) == 0 or n <= FEWEST:
            return False
        total = np.bincount(t.rows, t.sums, n) + np.bincount(t.cols, t.sums, n)
        count = np.bincount(t.rows, t.counts, n) + np.bincount(t.cols, t.counts, n)
        mean = float((total.sum() + 1.0) / (count.sum() + 1.0))  # above 0 though nothing failed yet
        each = (total + PRIOR * mean) / (count + PRIOR)
        good = float(np.quantile(each, GOOD))
        answers = 2.0 * left / rounds_for(arms_for(left, count_pairs(n, False)))  # of a winner
        return answers * good**2 < HEARD * mean

    def _ask_items(self, part: int) -> Asking[None]:
        """Ask for the items still in the race beside partners that are often refused; fit again, drop half."""
        state = self.state
        times = evenly(part, len(self.items), state.rng)
        i = np.repeat(self.items, times)
        j = state.rng.choice(state.n, size=len(i), p=self._partners())
        j = np.where(i == j, (j + 1) % state.n, j)
        yield from pull(state.tally, i, j, np.ones(len(i), np.int64))
        self.F = state.fit()
        refused = self.F[self.items] @ (self._partners() @ self.F)
        keep = max(FEWEST, len(self.items) // 2)
        self.items = self.items[np.argsort(refused, kind="stable")[:keep]]

    def _partners(self) -> Array:
        """Return with which chance each item is shown beside one in the race: in proportion to its own loss."""
        squares = np.einsum("ir,ir->i", self.F, self.F) + 1e-300
        return np.asarray(squares / squares.sum())

    def _worth(self) -> Array:
        """Return as how many answers the picture of each finalist counts.

        Under the fit its variance says so. The fit may be wrong where the rank is too small, so that direct answers always
        count a share.
        """
        if len(self.items) == self.state.n:  # its losses can be heard: one answer, as a tie-breaker
            return np.ones(len(self.rows))
        count, _ = self.state.tally.look(self.rows, self.cols)
        cov = self._covariances()
        of_row = np.einsum("er,ers,es->e", self.F[self.cols], cov[self.rows], self.F[self.cols])
        of_col = np.einsum("er,ers,es->e", self.F[self.rows], cov[self.cols], self.F[self.rows])
        loss = self._likely(self.rows, self.cols)
        worth = self._spread(loss) / np.maximum(of_row + of_col, 1e-300)
        return np.asarray(np.clip(worth, 1.0, max(1.0, TRUST * float(count.mean()))))

    def _covariances(self) -> Array:
        """Return the covariance of each row of F, given the others and every answer, shape (n, r, r)."""
        t, F = self.state.tally, self.F
        n, r = F.shape
        weight = t.counts / self._spread(self._likely(t.rows, t.cols))
        found = np.zeros((n, r, r))
        for a in range(r):
            for b in range(a, r):
                each = np.bincount(t.rows, weight * F[t.cols, a] * F[t.cols, b], n)
                each += np.bincount(t.cols, weight * F[t.rows, a] * F[t.rows, b], n)
                found[:, a, b] = found[:, b, a] = each
        size = np.trace(found, axis1=1, axis2=2).max() / max(r, 1)
        return np.asarray(np.linalg.inv(found + 1e-6 * max(size, 1e-300) * np.eye(r)))

    def _likely(self, rows: Indices, cols: Indices) -> Array:
        """Return the picture's losses of pairs; for coins no smaller than one in all answers so far."""
        found = self._guess(rows, cols)
        if self.state.noise is None:
            found = np.maximum(found, 1.0 / max(self.state.tally.asked, 1))
        return found

    def _spread(self, loss: Array) -> Array:
        """Return the variance of an answer with this mean."""
        if self.state.noise is None:
            return np.asarray(np.clip(loss * (1.0 - loss), 1e-300, 0.25))
        return np.full(np.shape(loss), self.state.noise**2)

    def _choose(self, left: int) -> None:
        """Finalists: the smallest entries of the picture, and strangers."""
        state = self.state
        every = count_pairs(state.n, self.same)
        size = arms_for(left, every)
        among = count_pairs(len(self.items), self.same)
        best = min(among, max(1, round((1.0 - STRANGERS) * size)))
        if len(self.items) < state.n:  # no more strangers than their share beside few items
            size = min(size, round(best / (1.0 - STRANGERS)))
        rows, cols, _ = smallest_pairs(self.F[self.items], best, self.same)
        rows, cols = np.sort([self.items[rows], self.items[cols]], axis=0)
        if size > best:
            more = draw_pairs(min(every, 2 * size), state.n, self.same, state.rng)
            new = ~np.isin(more[0] * state.n + more[1], rows * state.n + cols)
            more = more[0][new][: size - best], more[1][new][: size - best]
            rows, cols = np.r_[rows, more[0]], np.r_[cols, more[1]]
        self.rows, self.cols, self.guess = rows, cols, self._guess(rows, cols)
        self.rounds = rounds_for(len(rows))

    def _guess(self, rows: Indices, cols: Indices) -> Array:
        found: Array = np.einsum("er,er->e", self.F[rows], self.F[cols])
        return np.asarray(np.clip(found, 0.0, 1.0)) if self.state.noise is None else found

    def result(self, status: str, delta: float, allow_same: bool) -> BestPair:
        """Return the pair that stands first now."""
        state, tally = self.state, self.state.tally
        F = self.F if self.F.shape[1] else state.fit()
        rows, cols, guess = self.rows, self.cols, self.guess
        if not len(rows):
            rows, cols, guess = (
                smallest_pairs(F, 1, allow_same) if len(tally.keys) else _first(allow_same)
            )
        rows, cols = ranked(tally, rows, cols, guess, state.rng) if len(rows) > 1 else (rows, cols)
        pair = int(rows[0]), int(cols[0])
        if allow_same and not self.same and len(tally.keys):
            F = state.fit()  # with the answers of the halving, which know the best items well
            pair = self._same_item(pair, F)
        certificates: tuple[Certificate, ...] = ()
        report = {"rounds_left": self.rounds, "columns": state.pivots.tolist()}
        if status == "finished" and self.before.asked and pair[0] != pair[1]:
            certificates = self._certify(pair, delta)
            report |= self._runner_up(pair, delta)
            if "difference" in report:
                certificates += (self._against(report, delta),)
        return finish(tally, pair, status, report, certificates=certificates, factor=F)

    def _same_item(self, pair: tuple[int, int], F: Array) -> tuple[int, int]:
        """One item shown twice wins where its inferred loss is below the pair's."""
        squares = np.einsum("ir,ir->i", F, F)
        i = int(np.argmin(squares))
        count, total = self.state.tally.look(np.array([pair[0]]), np.array([pair[1]]))
        value = float(total[0] / count[0]) if count[0] else float(F[pair[0]] @ F[pair[1]])
        return (i, i) if squares[i] < value else pair

    def _certify(self, pair: tuple[int, int], delta: float) -> tuple[Certificate, ...]:
        """Bound the loss by the last round alone; two finalists were in it, hence delta / 2."""
        at = np.array([pair[0]]), np.array([pair[1]])
        new, old = self.state.tally.look(*at), self.before.look(*at)
        count, total = float(new[0][0] - old[0][0]), float(new[1][0] - old[1][0])
        if count <= 0:
            return ()
        if self.state.noise is None:
            high = float(coin_upper(np.ceil(total - 1e-9), count, delta / 2))
        else:
            from scipy.special import ndtri

            high = total / count + float(ndtri(1 - delta / 2)) * self.state.noise / np.sqrt(count)
        words = f"loss of the pair, with probability {1 - delta:g}, at most"
        vacuous = self.state.noise is None and high >= 1.0
        return (Certificate(words, high, self._assumed, vacuous=vacuous),)

    @property
    def _assumed(self) -> tuple[str, ...]:
        if self.state.noise is None:
            return ("answers are independent coins",)
        return ("answers are independent, their noise Gaussian as stated",)

    def _runner_up(self, pair: tuple[int, int], delta: float) -> dict[str, Any]:
        """Return the other finalist, and an interval for its loss less the pair's: above 0 the pair is better."""
        rows, cols, counts, sums = self.final
        own = (rows == pair[0]) & (cols == pair[1])
        if not own.any() or own.all() or not np.all(counts > 0):
            return {}
        level = 1.0 - delta / np.count_nonzero(~own)
        coins = np.column_stack([sums, counts])
        rows, cols = rows[~own], cols[~own]
        ends = [self._difference(other, coins[own][0], level) for other in coins[~own]]
        near = int(np.argmin([low for low, _ in ends]))
        return {"runner_up": (int(rows[near]), int(cols[near])), "difference": ends[near]}

    def _difference(self, one: Array, two: Array, level: float) -> tuple[float, float]:
        """Return an interval for the mean of one less that of another, each given as (sum, count)."""
        if self.state.noise is None:
            first, second = ((float(x[0]), float(x[1])) for x in (one, two))
            return coin_difference(first, second, level)
        from scipy.special import ndtri

        middle = one[0] / one[1] - two[0] / two[1]
        spread = self.state.noise * np.sqrt(1.0 / one[1] + 1.0 / two[1])
        half = float(ndtri(0.5 + level / 2) * spread)
        return middle - half, middle + half

    def _against(self, report: Mapping[str, Any], delta: float) -> Certificate:
        low, _ = report["difference"]
        return Certificate(
            f"by how much the runner-up {report['runner_up']} may be better, with probability {1 - delta:g}",
            max(0.0, -low),
            self._assumed,
            vacuous=self.state.noise is None and low <= -1.0,
        )


def _first(allow_same: bool) -> tuple[Indices, Indices, Array]:
    return np.array([0]), np.array([0 if allow_same else 1]), np.zeros(1)


def _exact(n: int, success: bool, allow_same: bool, history: History | None) -> Asking[BestPair]:
    """Complete L exactly, then search it block by block."""
    memory, asked = Memory(symmetric=True), 0
    if history is not None:
        known = 1.0 - history.values if success else history.values
        memory.add("entry", history.rows, history.cols, known)
    tally = Tally(n)
    inner = adaptive_nystrom(n).start()
    status, request = "finished", next(inner)
    try:
        while True:
            batch = cast(Batch, request)
            values = np.full(len(batch), np.nan)
            open_ = ~memory.look_up("entry", batch.rows, batch.cols, values)
            if open_.any():
                rows, cols = batch.rows[open_], batch.cols[open_]
                try:
                    told = np.array((yield Batch(rows, cols)))
                except Exhausted as stop:
                    inner.throw(stop)
                    raise
                told = 1.0 - told if success else told
                if np.isnan(told).any():
                    k = int(np.argmax(np.isnan(told)))
                    raise ParameterError(
                        f"entry ({rows[k]}, {cols[k]}) failed, and exact answers cannot do without it; state a noise above 0"
                    )
                memory.add("entry", rows, cols, told)
                tally.add(rows, cols, told)
                asked += len(told)
                values[open_] = told
            request = inner.send(values)
    except StopIteration as stop:
        found = cast(PSDFactor, stop.value)
        status = found.status
    if not asked and not len(memory):
        return finish(tally, (0, 0 if allow_same else 1), status, {})
    i, j, value = smallest_pairs(found.factor, 1, allow_same)
    error = found.certificate.value if found.certificate else np.inf
    words = Certificate(
        "distance from the best pair, at most", 2.0 * error, ("the matrix is PSD", "the answers are exact"),
        vacuous=not np.isfinite(error),
    )  # fmt: skip
    report = {"measurements": tally.asked, "rank": found.rank}
    return BestPair(
        (int(i[0]), int(j[0])), float(value[0]), 0, np.ascontiguousarray(found.factor),
        certificates=(words,), status=status, report=report,
    )  # fmt: skip


def _as_losses(asking: Asking[None]) -> Asking[None]:
    """Pass a plan's questions on and turn clicks into losses."""
    send: Array | None = None
    while True:
        try:
            request = asking.send(send)  # type: ignore[arg-type]
        except StopIteration:
            return
        answers = yield request
        send = None if answers is None else 1.0 - answers
