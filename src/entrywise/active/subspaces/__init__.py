"""Which attributes of the next sample to look at, to learn the subspace near which samples lie."""

from entrywise.active.subspaces.bandit import bandit_subspace
from entrywise.active.subspaces.literal_bandit import literal_bandit_subspace
from entrywise.active.subspaces.subspace import subspace

__all__ = ["bandit_subspace", "literal_bandit_subspace", "subspace"]
