"""What partial PCA is compared with: trackers, online PCA, and PCA of zero-filled, completed or whole data.

All take samples as :func:`entrywise.passive.partial_pca` does, work through the origin unless they say otherwise, and
return a :class:`~entrywise.results.Subspace`.
"""

from entrywise.passive.trackers.capped_msg import capped_msg
from entrywise.passive.trackers.full_pca import full_pca
from entrywise.passive.trackers.grouse import grouse
from entrywise.passive.trackers.impute_pca import impute_pca
from entrywise.passive.trackers.online_pca import online_pca
from entrywise.passive.trackers.petrels import petrels
from entrywise.passive.trackers.streaming_pca import streaming_pca
from entrywise.passive.trackers.zero_fill_pca import zero_fill_pca

__all__ = [
    "capped_msg",
    "full_pca",
    "grouse",
    "impute_pca",
    "online_pca",
    "petrels",
    "streaming_pca",
    "zero_fill_pca",
]
