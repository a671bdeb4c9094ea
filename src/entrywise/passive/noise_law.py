r"""How the noise of a table of products grows with its entries, told by the residuals of the fit.

.. math:: a_{ij} = A_{ij} + \sigma |A_{ij}|^{\gamma} \varepsilon_{ij} \quad\text{or}\quad
          a_{ij} = A_{ij} e^{\sigma \varepsilon_{ij}}

Noise of one size, of counts, proportional and multiplicative: least squares with the weights of the likeliest law is
the better fit, and its errors are those of the noise that is there. With one size taken for granted, intervals of 90 %
covered 77 to 85 % of entries under proportional noise.
"""

from __future__ import annotations

import copy

import numpy as np

from entrywise.passive.multiplicative import SHARPEST, MultiplicativeFit, which

POWERS = {"of one size": 0.0, "of counts": 0.5, "proportional": 1.0}
GAIN = 3.0  # of the log-likelihood that another law must bring: noise of one size is kept in 99 of 100 tables
EXACT = 1e-10  # residuals below this share of the entries are round-off, and tell no law
ROUNDS = 4  # in which weights follow the fit and the fit its weights
BLOCK = 1 << 16  # entries looked at at once
FEWEST = 5  # degrees of freedom below which residuals tell no law


def follow_residuals(fit: MultiplicativeFit) -> None:
    """Refit with the law of noise that makes the known entries likeliest, where that is clearly another one."""
    if fit.known_noise:
        return
    A = fit.fitted()
    used = which(np.isfinite(A))
    degrees, spread = fit.noise(used)
    if degrees < FEWEST or not spread > EXACT or not np.all(A[used]):
        return
    best, top = None, _likelihood(fit) + GAIN
    for law in ("of counts", "proportional"):
        trial, value = _weighted(fit, law, top)
        if value > top:
            best, top = trial, value
    trial, value = _logarithms(fit)
    if value > top:
        best = trial
    if best is not None:
        fit.__dict__.update(best.__dict__)


def _weighted(fit: MultiplicativeFit, law: str, top: float) -> tuple[MultiplicativeFit, float]:
    """Return least squares with weights that follow the fit, and its log-likelihood.

    Rounds gain less and less: a law that would stay below `top` with the gain of the last round again is given up.
    """
    trial = copy.copy(fit)
    trial.law, trial.growth = law, POWERS[law]
    _weigh(trial)
    value = _likelihood(trial)
    for k in range(ROUNDS):
        before = value
        trial.refine(max_steps=3 if k else 1)
        _weigh(trial)
        value = _likelihood(trial)
        if 2.0 * value - before < top:
            break
    return trial, value


def _logarithms(fit: MultiplicativeFit) -> tuple[MultiplicativeFit, float]:
    """Return least squares of the logarithms and its log-likelihood, none where an entry has no logarithm."""
    trial = copy.copy(fit)
    if not np.all(trial.a * trial.fitted() > 0):
        return trial, -np.inf
    trial.start(weighted=False)
    if not np.all(trial.a * trial.fitted() > 0):
        return trial, -np.inf
    trial.law, trial.growth, trial.multiplicative = "multiplicative", 1.0, True
    _weigh(trial)
    return trial, _likelihood(trial)


def _weigh(fit: MultiplicativeFit) -> None:
    size = fit.fitted()
    np.abs(size, out=size)
    least = SHARPEST * float(np.fmax.reduce(size, initial=0.0))
    np.fmax(size, least, out=size)  # where there is none, the least
    size **= 2.0 * fit.growth
    np.reciprocal(size, out=size)
    fit.precision = size


def _likelihood(fit: MultiplicativeFit) -> float:
    """Log-likelihood of the known entries at the fit, up to what all laws share."""
    used = fit.used()
    _, spread = fit.noise(used)
    size = (fit.a if fit.multiplicative or not fit.growth else fit.fitted())[used]
    growth = 0.0
    if fit.growth:
        for start in range(0, len(size), BLOCK):  # piece by piece: no second array of the entries
            part = np.maximum(np.abs(size[start : start + BLOCK]), 1e-300)
            growth += fit.growth * float(np.log(part, out=part).sum())
    return float(-len(size) * np.log(spread) - growth)
