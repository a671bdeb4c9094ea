"""Maps of completed kernels: kernel PCA, t-SNE, features, points that come later."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.decomposition import KernelPCA

from entrywise.active import adaptive_nystrom
from entrywise.apply.kernels import (
    KernelMap,
    embed,
    kernel_pca,
    kernel_tsne,
    neighbour_accuracy,
    save_map,
)
from entrywise.apply.landmarks import radial_coordinates
from entrywise.exceptions import ParameterError
from entrywise.oracles import KernelOracle, MatrixOracle
from entrywise.play import play
from entrywise.results import LowRank, PSDFactor


@pytest.fixture(scope="module")
def blobs():
    X, labels = make_blobs(90, 5, centers=3, cluster_std=1.0, random_state=0)
    oracle = KernelOracle(X, "rbf", gamma=0.02)
    return X, labels, oracle, play(adaptive_nystrom(90, rank=25), oracle)


def test_kernel_pca_agrees_with_scikit_learn(blobs):
    X, _, oracle, found = blobs
    expected = KernelPCA(3, kernel="precomputed").fit_transform(found.to_dense())
    for kernel in (found, found.to_dense(), LowRank(found.factor, found.factor)):
        Y = kernel_pca(kernel, 3)
        signs = np.sign((Y * expected).sum(axis=0))
        np.testing.assert_allclose(Y * signs, expected, atol=1e-6)
    full = KernelPCA(2, kernel="rbf", gamma=0.02).fit_transform(X)
    close = kernel_pca(found, 2)
    np.testing.assert_allclose(close * np.sign((close * full).sum(axis=0)), full, atol=0.05)
    assert oracle.spent < 90 * 26


def test_features_of_new_points_are_those_of_old_ones(blobs):
    X, _, oracle, found = blobs
    made = KernelMap(found)
    K = oracle.block(np.arange(90), made.columns)
    np.testing.assert_allclose(made.transform(K), made.features, atol=1e-6)
    np.testing.assert_allclose(made.project(K), made.coordinates, atol=1e-6)
    new = X[:4] + 1e-3
    from sklearn.metrics.pairwise import rbf_kernel

    near = made.project(rbf_kernel(new, X[made.columns], gamma=0.02))
    np.testing.assert_allclose(near, made.coordinates[:4], atol=0.01)
    with pytest.raises(ParameterError, match="landmarks"):
        made.transform(K[:, :3])


def test_out_of_sample_works_for_any_square_root(blobs):
    _, _, oracle, found = blobs
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((found.rank, found.rank)))[0]
    turned = KernelMap(PSDFactor(found.factor @ Q, found.pivots))
    K = oracle.block(np.arange(5), found.pivots)
    np.testing.assert_allclose(turned.transform(K), turned.features[:5], atol=1e-6)


def test_the_diagonal_is_left_alone(blobs):
    found = blobs[3]
    K = found.to_dense()
    before = K.copy()
    kernel_tsne(K[:30, :30])
    np.testing.assert_array_equal(K, before)


@pytest.mark.slow
def test_tsne_keeps_clusters_from_a_part_of_the_kernel(blobs):
    _, labels, oracle, found = blobs
    full = neighbour_accuracy(kernel_tsne(oracle.block(np.arange(90), np.arange(90))), labels)
    ours = neighbour_accuracy(embed(found, "tsne"), labels)
    assert ours >= full - 0.05
    assert neighbour_accuracy(embed(found, "pca"), labels) > 0.9
    np.testing.assert_array_equal(embed(found, "tsne", rng=1), embed(found, "tsne", rng=1))


def test_distances_of_a_radial_kernel_come_back_from_its_columns(blobs):
    X, _, oracle, found = blobs
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    Y = radial_coordinates(found)
    assert Y.shape == (90, 5)
    np.testing.assert_allclose(((Y[:, None] - Y[None]) ** 2).sum(axis=2), 0.02 * squares, atol=1e-6)
    few = play(
        adaptive_nystrom(90, rank=3), oracle
    )  # three landmarks span a plane: distances within it, never too long
    near = radial_coordinates(few)
    assert near.shape == (90, 2)
    assert np.all(((near[:, None] - near[None]) ** 2).sum(axis=2) <= 0.02 * squares + 1e-8)
    scaled = MatrixOracle(3.0 * oracle.block(np.arange(90), np.arange(90)))
    again = radial_coordinates(play(adaptive_nystrom(90, rank=25), scaled))
    np.testing.assert_allclose(
        ((again[:, None] - again[None]) ** 2).sum(axis=2), 0.02 * squares, atol=1e-6
    )


def test_radial_maps(blobs):
    _, labels, oracle, found = blobs
    assert neighbour_accuracy(kernel_tsne(found, radial=True), labels) > 0.95
    K = oracle.block(np.arange(90), np.arange(90))
    assert neighbour_accuracy(embed(K, "tsne", radial=True), labels) > 0.95
    linear = play(adaptive_nystrom(4), MatrixOracle(np.diag([1.0, 2.0, 3.0, 4.0])))
    with pytest.raises(ParameterError, match="above 0 with one value on its diagonal"):
        kernel_tsne(linear, radial=True)
    with pytest.raises(ParameterError, match="above 0 everywhere"):
        kernel_tsne(np.eye(5), radial=True)
    with pytest.raises(ParameterError, match="at least 2 landmarks"):
        radial_coordinates(play(adaptive_nystrom(5, rank=1), MatrixOracle(np.ones((5, 5)))))


def test_neighbours_vote():
    Y = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    assert neighbour_accuracy(Y, list("aaabbb"), 2) == 1.0
    assert neighbour_accuracy(Y, list("ababab"), 1) < 0.5


def test_few_columns_are_padded_and_zero_kernels_drawn(tmp_path):
    found = play(adaptive_nystrom(6), MatrixOracle(np.ones((6, 6))))
    assert kernel_pca(found, 3).shape == (6, 3)
    assert np.allclose(kernel_pca(found, 3), 0)
    assert kernel_tsne(np.eye(6)).shape == (6, 2)
    assert kernel_tsne(np.zeros((5, 5))).shape == (5, 2)
    save_map(
        tmp_path / "map.png", kernel_pca(found, 2), labels=list("abcabc"), columns=found.pivots
    )
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_bad_input_is_refused(blobs, tmp_path):
    found = blobs[3]
    with pytest.raises(ParameterError, match="square"):
        kernel_pca(np.zeros((3, 4)))
    with pytest.raises(ParameterError, match="at least 4"):
        kernel_tsne(np.eye(3))
    with pytest.raises(ParameterError, match="pca or tsne"):
        embed(found, "umap")
    with pytest.raises(ParameterError, match="at least 1"):
        KernelMap(found, 0)
    with pytest.raises(ParameterError, match="must end in"):
        save_map(tmp_path / "map.xyz", kernel_pca(found))


@pytest.mark.slow
def test_the_command_draws_a_map(tmp_path, blobs):
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    np.save(tmp_path / "points.npy", blobs[0])
    given = [
        "kernel",
        str(tmp_path / "points.npy"),
        "--rank",
        "8",
        "--plot",
        str(tmp_path / "map.svg"),
    ]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "points.npy.map.csv").read_text().splitlines()
    assert lines[0] == "point,x,y,asked"
    assert len(lines) == 91
    assert sum(int(line.split(",")[3]) for line in lines[1:]) == 8
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    said = {}
    for name in ("rbf", "linear"):
        done = CliRunner().invoke(app, [*given[:4], "--kernel", name, "--embed", "tsne"])
        assert done.exit_code == 0, done.output
        said[name] = "distances to the columns asked" in done.output
    assert said == {"rbf": True, "linear": False}
    for wrong in (["--embed", "umap"], ["--plot", "map.xyz"]):
        assert CliRunner().invoke(app, [*given[:4], *wrong]).exit_code != 0
