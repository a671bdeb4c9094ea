"""Pictures: every one returns its axes, draws what it was given, and refuses what it cannot draw."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

import entrywise as ew
from entrywise import gallery, plot
from entrywise.exceptions import ParameterError
from entrywise.passive import low_rank

mpl.use("agg")


@pytest.fixture(scope="module")
def found():
    return low_rank(gallery.known_entries(0))


@pytest.mark.slow
def test_a_map_shows_every_cell_and_marks_what_was_bought(found):
    seen = gallery.known_entries(0)
    ax = plot.map(found, seen)
    assert ax.images[0].get_array().shape == found.shape
    assert f"{len(seen)} known" in ax.get_title(loc="left")
    assert len(ax.collections[0].get_offsets()) == len(seen)
    assert all(t == int(t) for t in ax.get_xticks())
    known = plot.map(seen).images[0].get_array()
    assert np.ma.count(np.ma.masked_invalid(known)) == len(seen)
    doubt = plot.map(found, show="doubt").images[0].get_array()
    assert np.all(doubt > 0)


def test_maps_refuse_what_has_no_intervals_and_what_is_too_large(found):
    psd = ew.PSDFactor(np.ones((3, 1)))
    with pytest.raises(ParameterError, match="has no intervals"):
        plot.map(psd, show="doubt")
    with pytest.raises(ParameterError, match="at most"):
        plot.map(ew.LowRank(np.ones((10**5, 1)), np.ones((10**5, 1))))
    with pytest.raises(ParameterError, match="show must be"):
        plot.map(found, show="colour")


def test_savings_have_a_line_and_a_band_for_each_way_to_buy():
    repeats = np.random.default_rng(0).random((20, 4))
    ax = plot.savings([1, 2, 3, 4], {"ours": repeats, "random": repeats[0]}, unit="$")
    assert [line.get_label() for line in ax.lines] == ["ours", "random"]
    assert len(ax.collections) == 1
    np.testing.assert_allclose(ax.lines[0].get_ydata(), repeats.mean(axis=0))


def test_scores_are_sorted_and_cut_where_names_cannot_be_read():
    mean = np.arange(60.0)
    ax = plot.scores(mean, mean - 1, mean + 1, tier=np.arange(60) // 10, truth=mean)
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names[0] == "59"
    assert len(names) == 40
    assert "best 40 of 60" in ax.get_title(loc="left")
    assert plot.skills([0.9, 0.5], [0.8, 0.4], [1.0, 0.6], chance=0.5).lines


def test_coverage_compares_results_by_name(found):
    ax = plot.coverage({"one": found, "other": found}, gallery.known_entries(1))
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["promised", "one", "other"]


def test_calibration_counts_what_happened_in_bins_of_equal_size():
    said = np.repeat([0.2, 0.8], 50)
    right = np.r_[np.arange(50) < 10, np.arange(50) < 40]
    ax = plot.calibration(said, right, bins=2)
    line = ax.get_lines()[1]
    np.testing.assert_allclose(line.get_xdata(), [0.2, 0.8])
    np.testing.assert_allclose(line.get_ydata(), [0.2, 0.8])


def test_coverage_counts_what_was_kept(found):
    rng = np.random.default_rng(1)
    A = gallery.random_low_rank(30, 20, 2, np.random.default_rng(0))
    held = ew.Observations.from_dense(A + 0.1 * rng.standard_normal(A.shape))
    ax = plot.coverage(found, held)
    kept = ax.lines[1].get_ydata()
    low, high = found.interval(held.rows, held.cols, 0.9)
    assert kept[list(plot.trust.LEVELS).index(0.9)] == np.mean(
        (low <= held.values) & (held.values <= high)
    )
    assert np.all(np.diff(kept) >= 0)
    ax = plot.intervals([0, 0, 0], [1, 1, 1], [0.5, 2.0, 0.7])
    assert ax.get_title(loc="left").startswith("67% of 3")


def test_bounds_far_above_are_named_and_not_drawn():
    count = np.arange(100.0)
    assert len(plot.against_bound(count, bound=150).lines) == 2
    far = plot.against_bound(count, bound=1e6)
    assert far.get_ylim()[1] < 1000
    assert "far above" in far.get_legend().get_texts()[1].get_text()


def test_a_split_adds_up_and_pictures_are_written_whole(tmp_path):
    ax = plot.split({"columns": 30.0, "entries": 60.0}, budget=100.0)
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(100.0)
    plot.save(tmp_path / "split.svg", ax)
    assert (tmp_path / "split.svg").read_text().startswith("<?xml")
