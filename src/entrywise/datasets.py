"""Real matrices by name: read from the folder that ``ENTRYWISE_DATA`` names, checked against their hashes.

Nothing is shipped with the package. MovieLens, which may not be redistributed, is fetched from its publisher when no
local folder has it (``download=True``); cite the papers named in each docstring.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import DataError
from entrywise.observations import Observations
from entrywise.types import Array

HASHES: Mapping[str, str] = MappingProxyType({
    "alpaca-eval/preferences.npz": "4173035027ff73844dff1f7193e5d1f89ba78819c00a6504e674b7ba0c5074fd",
    "beijing_air/beijing_air.npz": "03f44574ffe312330b931e17bb3dd3d52364816d34f2e8d375b3870e8299d3b4",
    "house_votes_84/house_votes_84.npz": "66241128f81802ad05a77521a5f606cee6aaa04f4367b5797abce3f2724b420f",
    "jester_1/jester1.npz": "3acfdd3756f07537e0dab1f064c6e35d28889a3ca1b4eee0b8194da6149e047d",
    "kiba/kiba.npz": "4499df9f16077f34d154f5a9dc1fe36f178e0d5ab4b726ead792d94cd4a00c61",
    "mnist2500/mnist2500.npz": "4ed6d3deb771c7ba8cfe2c8762238e4250f618e84ce0e5201613cc8e2c7534df",
    "movielens_100k/ratings.csv.gz": "9a3c5ac66ba44fba4d4684278178eed60d38e34a240e2c8bef9b21b5a6c00dfe",
    "movielens_1m/ratings.npz": "d86c5fb96e45e2a0108081d697ce91f03c5c45107e3831b51f6a07434e56b2ba",
    "oboe/oboe.npz": "63cc1aa1294d3ff040c0413165c28aea859b5e305142fd7e2b720ecd3f63d39c",
    "senate_106/senate_106.npz": "f0540fa5a2514349241d6207a2dc362e50f7da4b1610e72b9b7c6d436414c3a5",
    "zoo/zoo.npz": "5de49547eb402fa2fb70fc510c8ba02111b72d157e684f3703ecaf5502acffbe",
})  # fmt: skip

PUBLISHED: Mapping[str, tuple[str, str]] = MappingProxyType({
    "movielens_100k": ("https://files.grouplens.org/datasets/movielens/ml-100k.zip", "md5:0e33842e24a9c977be4e0107933c0723"),
    "movielens_1m": ("https://files.grouplens.org/datasets/movielens/ml-1m.zip", "md5:c4d9eecfca2ab87c1945afe126590906"),
})  # fmt: skip


def local(name: str) -> Path | None:
    """Return the path of a file in the folder that ``ENTRYWISE_DATA`` names, or None; a changed file is refused."""
    folder = os.environ.get("ENTRYWISE_DATA")
    if not folder:
        return None
    path = Path(folder) / name
    if not path.is_file():
        return None
    if (
        name in HASHES
        and _sha256(str(path), path.stat().st_mtime_ns, path.stat().st_size) != HASHES[name]
    ):
        raise DataError(f"{path} is not the file we know (its sha256 differs); fetch it again")
    return path


@cache
def _sha256(path: str, changed: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _arrays(name: str) -> dict[str, NDArray[Any]]:
    path = local(name)
    if path is None:
        raise DataError(
            f"set ENTRYWISE_DATA to a folder that holds {name}; it is not shipped with entrywise"
        )
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def _fetched(name: str, member: str, download: bool) -> bytes:
    """Return one file of a publisher's archive, kept in the user's cache."""
    if not download:
        raise DataError(
            f"{name} is not in the folder of ENTRYWISE_DATA; set that, or pass download=True to fetch it from its publisher"
        )
    import pooch

    url, known_hash = PUBLISHED[name]
    try:
        archive = pooch.retrieve(
            url, known_hash=known_hash, path=pooch.os_cache("entrywise"), progressbar=False
        )
    except Exception as error:
        raise DataError(f"{url} cannot be had: {error}") from None
    with zipfile.ZipFile(archive) as file:
        return file.read(member)


def movielens_100k(download: bool = False) -> Observations:
    """Return 100,000 ratings 1..5 of 1,682 films by 943 users, labelled by their numbers.

    Harper, Konstan, *The MovieLens datasets*, ACM TiiS 2015. Research use; no redistribution.
    """
    path = local("movielens_100k/ratings.csv.gz")
    if path is not None:
        with gzip.open(path, "rb") as file:
            table = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)
    else:
        text = _fetched("movielens_100k", "ml-100k/u.data", download)
        table = np.loadtxt(io.BytesIO(text), delimiter="\t", dtype=np.int64)
    return _ratings(table[:, 0], table[:, 1], table[:, 2])


def movielens_1m(download: bool = False) -> Observations:
    """Return a million ratings 1..5 of 3,449 to 3,706 films by 6,040 users, labelled by their numbers.

    Harper, Konstan, *The MovieLens datasets*, ACM TiiS 2015. Research use; no redistribution.
    """
    if local("movielens_1m/ratings.npz") is not None:
        found = _arrays("movielens_1m/ratings.npz")
        return _ratings(found["user"], found["movie"], found["rating"])
    text = (
        _fetched("movielens_1m", "ml-1m/ratings.dat", download).decode("latin-1").replace("::", ",")
    )
    table = np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.int64)
    return _ratings(table[:, 0], table[:, 1], table[:, 2])


def _ratings(users: NDArray[Any], items: NDArray[Any], values: NDArray[Any]) -> Observations:
    names, rows = np.unique(users, return_inverse=True)
    titles, cols = np.unique(items, return_inverse=True)
    return Observations.from_triplets(
        rows, cols, values.astype(np.float64), (len(names), len(titles)),
        row_labels=[str(x) for x in names], col_labels=[str(x) for x in titles],
    )  # fmt: skip


def jester(complete_rows: bool = False) -> Observations:
    """Return 1.8 million ratings -10..10 of 100 jokes by 24,983 users; or the 7,200 users who rated every joke.

    Goldberg, Roeder, Gupta, Perkins, *Eigentaste*, Information Retrieval 2001.
    """
    q = _arrays("jester_1/jester1.npz")["ratings_x100"]
    R = np.where(q == -32768, np.nan, q / 100.0)
    return Observations.from_dense(R[~np.isnan(R).any(axis=1)] if complete_rows else R)


def oboe() -> tuple[Observations, Array]:
    """Return the errors of 219 classifiers on 418 data sets, all known, and the seconds each took, shape (418, 219).

    Yang, Akimoto, Kim, Udell, *OBOE*, KDD 2019.
    """
    found = _arrays("oboe/oboe.npz")
    names = [str(x) for x in found["openml_dataset_id"]]
    seen = Observations.from_dense(
        found["error"], row_labels=names, col_labels=[str(x) for x in found["model"]]
    )
    return seen, found["runtime_s"].astype(np.float64)


def kiba() -> tuple[Observations, Array]:
    """Return 118,254 measured affinities of 2,111 drugs to 229 kinases, and the kinases' similarity, shape (229, 229).

    Tang et al., J. Chem. Inf. Model. 2014; He et al., J. Cheminformatics 2017.
    """
    found = _arrays("kiba/kiba.npz")
    seen = Observations.from_triplets(
        found["drug"], found["target"], found["score"], (2111, 229),
        row_labels=[str(x) for x in found["chembl_id"]], col_labels=[str(x) for x in found["uniprot_id"]],
    )  # fmt: skip
    return seen, found["target_similarity"].astype(np.float64)


def alpaca_eval() -> Observations:
    """Return the judge's preference 1..2 for 58 language models on 805 instructions.

    The AlpacaEval 2 annotations (CC BY-NC 4.0).
    """
    found = _arrays("alpaca-eval/preferences.npz")
    return Observations.from_dense(
        found["preference"], row_labels=[str(x) for x in found["models"]]
    )


def beijing_air(variable: str = "PM2.5") -> Array:
    """Return hourly readings of one quantity at 12 stations, shape (35064, 12), NaN where there is none.

    Zhang et al., Proc. R. Soc. A 2017 (CC BY 4.0).
    """
    found = _arrays("beijing_air/beijing_air.npz")
    names = [str(x) for x in found["variables"]]
    if variable not in names:
        raise DataError(f"variable must be one of {', '.join(names)}, got {variable!r}")
    return np.asarray(found["values"][:, :, names.index(variable)], np.float64)


def mnist2500() -> tuple[Array, NDArray[np.int64]]:
    """Return 2,500 handwritten digits, grey levels 0..255 of shape (2500, 784), and their labels."""
    found = _arrays("mnist2500/mnist2500.npz")
    return found["pixels"].astype(np.float64), found["labels"].astype(np.int64)


def votes(name: str = "house") -> Observations:
    """Return yea (+1) and nay (-1) votes: ``house`` (435 members x 16, 1984) or ``senate`` (102 x 672, 1999-2000)."""
    if name not in ("house", "senate"):
        raise DataError(f"votes must be house or senate, got {name!r}")
    found = _arrays(
        "house_votes_84/house_votes_84.npz" if name == "house" else "senate_106/senate_106.npz"
    )
    return Observations.from_dense(np.where(found["votes"] == 0, np.nan, found["votes"]))


def zoo() -> Observations:
    """Return 15 yes (+1) or no (-1) traits of 101 animals, all known."""
    found = _arrays("zoo/zoo.npz")
    return Observations.from_dense(
        found["traits"],
        row_labels=[str(x) for x in found["animal"]],
        col_labels=[str(x) for x in found["trait"]],
    )


def crowd(name: str) -> tuple[Observations, NDArray[np.int64]]:
    """Return the labels that workers gave to items, shape (items, workers), and the gold classes, -1 where unknown.

    ``bluebird``, ``rte``, ``wsd``, ``dog``, ``web``, ``trec``, ``sp``, ``sp_amt``, ``sentiment``, ``product``.
    """
    paths = [local(f"crowdsourcing/{name}_{kind}.csv.gz") for kind in ("labels", "truth")]
    if None in paths:
        raise DataError(
            f"set ENTRYWISE_DATA to a folder that holds crowdsourcing/{name}_labels.csv.gz and its truth"
        )
    tables = []
    for path in paths:
        with gzip.open(str(path), "rb") as file:
            tables.append(np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64))
    labels, gold = tables
    truth = np.full(int(max(labels[:, 0].max(), gold[:, 0].max())) + 1, -1, np.int64)
    truth[gold[:, 0]] = gold[:, 1]
    shape = (len(truth), int(labels[:, 1].max()) + 1)
    return Observations.from_triplets(
        labels[:, 0], labels[:, 1], labels[:, 2].astype(np.float64), shape
    ), truth
