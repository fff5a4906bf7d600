"""Clusters: sums against counts by hand, pages that connect, joining by name, and what borrowed pages do to intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.stats.clusters import ClusterNames, Clusters, number_groups
from benchmarks.stats.intervals import clustered_wilson, resample

Answer = tuple[int, tuple[int, int], tuple[int, int]]

ANSWERS: st.SearchStrategy[list[Answer]] = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.tuples(st.integers(-1, 9), st.integers(-1, 9)).filter(lambda shown: shown[0] != shown[1] or shown[0] < 0),
        st.tuples(st.integers(-50, 50), st.integers(-50, 50)),
    ),
    min_size=1,
    max_size=40,
)
"""The own page of each answer, two pages that it shows (-1: none), and two values."""


def _clusters(answers: Sequence[Answer]) -> tuple[Clusters, NDArray[np.int64]]:
    own, shown, values = (np.array(column) for column in zip(*answers, strict=True))
    return Clusters.of(own, shown), values


def _by_hand(answers: Sequence[Answer]) -> Mapping[int, NDArray[np.float64]]:
    """Return the sums by page, as the class documents them, but for the mean that is taken off."""
    own_pages = {own for own, _, _ in answers}
    shown_by = defaultdict(set)
    for own, shown, _ in answers:
        for page in set(shown) - {-1}:
            shown_by[page].add(own)
    counts = own_pages | {page for page, owners in shown_by.items() if len(owners) > 1}
    sums = {page: np.zeros(2) for page in counts}
    for own, shown, values in answers:
        sums[own] += values
        for page in shown:
            if page in counts and page != own:
                sums[page] += values
    return sums


@given(ANSWERS)
def test_sums_of_answers_that_show_nothing_are_those_of_their_own_pages(answers: list[Answer]) -> None:
    own, values = np.array([answer[0] for answer in answers]), np.array([answer[2] for answer in answers])
    expected: dict[int, list[int]] = {}
    for page, value in zip(own.tolist(), values.tolist(), strict=True):
        expected[page] = [a + b for a, b in zip(expected.get(page, [0, 0]), value, strict=True)]
    for clusters in (Clusters.of(own), Clusters.of(own, np.full((len(own), 2), -1)), Clusters.of(own, own[:, None])):
        assert clusters.shown.size == 0
        assert clusters.count == len(expected)
        assert clusters.sums(values).tolist() == list(expected.values()), "in order of the first answer"
        assert clusters.sums(values[:, 0]).tolist() == [first for first, _ in expected.values()]


@given(ANSWERS)
def test_sums_add_up_to_those_of_the_answers_exactly(answers: list[Answer]) -> None:
    """Also where pages are shared, so that a value in a table is never that of another count."""
    clusters, values = _clusters(answers)
    assert clusters.sums(values).sum(0).tolist() == values.sum(0).tolist()
    assert clusters.sums(values / 4).sum(0).tolist() == (values.sum(0) / 4).tolist()


@given(ANSWERS)
def test_a_shown_page_counts_less_the_mean_over_clusters(answers: list[Answer]) -> None:
    clusters, values = _clusters(answers)
    expected = _by_hand(answers)
    sums = np.array(sorted(clusters.sums(values).tolist()))
    by_hand = np.array(list(expected.values()))
    surplus = by_hand.sum(0) - values.sum(0)
    centred = np.array(sorted((by_hand - surplus / len(by_hand)).tolist()))
    assert clusters.count == len(expected)
    for column in range(2):
        assert np.sort(sums[:, column]) == pytest.approx(np.sort(centred[:, column]), abs=1e-4)


@given(ANSWERS, st.integers(1, 3), st.data())
def test_tally_is_the_sum_of_one_for_each_answer_in_a_cell(
    answers: list[Answer], size: int, data: st.DataObject
) -> None:
    clusters, _ = _clusters(answers)
    place = np.array(data.draw(st.lists(st.integers(-1, size - 1), min_size=len(answers), max_size=len(answers))))
    in_cell = (place[:, None] == np.arange(size)).astype(np.int64)
    tally = clusters.tally(place, size)
    assert tally.tolist() == clusters.sums(in_cell).tolist()
    assert tally.sum(0).tolist() == in_cell.sum(0).tolist()
    assert clusters.shown.size or tally.dtype == np.int64


@given(ANSWERS, st.data())
def test_chosen_answers_have_the_clusters_that_they_had_in_a_run_of_their_own(
    answers: list[Answer], data: st.DataObject
) -> None:
    clusters, values = _clusters(answers)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(answers), max_size=len(answers))))
    chosen = clusters.at(keep)
    assert len(chosen) == keep.sum()
    assert chosen.sums(values[keep]).tolist() == clusters.at(np.flatnonzero(keep)).sums(values[keep]).tolist()
    assert chosen.sums(values[keep]).sum(0).tolist() == values[keep].sum(0).tolist()
    own, shown, _ = (np.array(column) for column in zip(*answers, strict=True))
    fresh = Clusters.of(own[keep], shown[keep])
    if keep.all():
        assert chosen.own.tolist() == clusters.own.tolist()
        assert sorted(map(sorted, chosen.shown.tolist())) == sorted(map(sorted, clusters.shown.tolist()))
    assert fresh.own.tolist() == chosen.own.tolist()
    assert fresh.count == chosen.count
    assert np.sort(fresh.sums(values[keep]), axis=0).tolist() == np.sort(chosen.sums(values[keep]), axis=0).tolist()


def test_pages_that_connect_nothing_are_dropped() -> None:
    own = np.array([0, 0, 1, 2])
    clusters = Clusters.of(own, np.array([[7], [7], [8], [-1]]))
    assert (clusters.count, clusters.shown.size) == (3, 0), "each is shown by one cluster only"
    connected = Clusters.of(own, np.array([[7, 8], [7, -1], [7, -1], [0, 2]]))
    assert connected.count == 4, "page 7 connects two, page 8 nothing, pages 0 and 2 are clusters already"
    assert connected.own.tolist() == [0, 0, 1, 2]
    assert connected.shown[:, 0].tolist() == [3, 3, 3, 0]
    assert (connected.shown[:, 1:] == -1).all()
    assert Clusters.of(own, np.array([[0], [0], [1], [2]])).shown.size == 0, "a page of one's own"


def test_without_answers_there_are_no_clusters() -> None:
    none = np.zeros(0, np.int64)
    for clusters in (Clusters.of(none), Clusters.of(none, np.zeros((0, 2), np.int64)), Clusters.of([0, 1]).at([])):
        assert (len(clusters), clusters.count) == (0, 0)
        assert clusters.sums(np.zeros((0, 3))).shape == (0, 3)
        assert clusters.tally(none, 3).shape == (0, 3)


def test_groups_are_numbered_in_order_of_first_occurrence() -> None:
    count, numbers = number_groups(np.array([5, 2, 5, 9, 2]))
    assert (count, numbers.tolist()) == (3, [0, 1, 0, 2, 1])
    assert number_groups(np.zeros(0, np.int64))[0] == 0


@given(ANSWERS, st.data())
def test_means_and_differences_are_those_of_the_answers(answers: list[Answer], data: st.DataObject) -> None:
    clusters, values = _clusters(answers)
    one = st.lists(st.integers(1, 3), min_size=len(answers), max_size=len(answers))
    for weight in (None, np.array(data.draw(one))):
        mean = clusters.mean((values[:, 0] + 50) / 100, weight)
        assert mean.value == pytest.approx(np.average((values[:, 0] + 50) / 100, weights=weight))
        assert mean.n == (len(answers) if weight is None else weight.sum())
        difference = clusters.difference(values[:, 1] / 50, weight)
        assert difference is not None
        assert difference.value == pytest.approx(np.average(values[:, 1] / 50, weights=weight))
        assert difference.pairs == mean.n
        assert difference.clusters == clusters.own_count == len({own for own, _, _ in answers})
        assert (mean.low is None) == (difference.estimate.low is None) == (clusters.own_count < 2)


def test_a_page_that_is_only_shown_is_no_cluster_that_was_sampled() -> None:
    """Ten answers on two pages, which all show a third: its sums vary, but two pages is what there is."""
    clusters = Clusters.of(np.arange(10) % 2, np.full((10, 1), 7))
    assert (clusters.count, clusters.own_count) == (3, 2)
    two = Clusters.of(np.arange(10) % 2)
    right = (np.arange(10) < 5).astype(float)
    wide, narrow = clusters.mean(right), two.mean(right)
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low <= narrow.low + 1e-6


# --- names ---------------------------------------------------------------------------------------


def test_examples_with_a_page_in_common_are_one_cluster() -> None:
    names = ClusterNames()
    names.add("a", ["page 1"])
    names.add("b", ["page 2"])
    names.add("c", [])
    assert len({names.cluster(example) for example in "abc"}) == 3
    names.add("d", ["page 3", "page 2"])
    assert names.cluster("b") == names.cluster("d") == names.page("page 3")
    names.add("a", ["page 3"])  # another instance of the first example connects them all
    assert names.cluster("a") == names.cluster("b") == names.cluster("d") == names.page("page 1")
    assert names.cluster("c") not in (names.cluster("a"), names.page("page 4"))


def test_names_of_examples_and_of_pages_do_not_mix() -> None:
    names = ClusterNames()
    names.add("x", ["y"])
    names.add("y", ["x"])
    assert names.cluster("x") == names.page("y")
    assert names.cluster("y") == names.page("x")
    assert names.cluster("x") != names.cluster("y")


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3)), max_size=25), st.randoms())
def test_clusters_by_name_are_the_connected_parts_in_any_order(
    added: list[tuple[int, list[int]]], random: Random
) -> None:
    names, reordered = ClusterNames(), ClusterNames()
    for example, pages in added:
        names.add(str(example), [str(page) for page in pages])
    random.shuffle(added)
    for example, pages in added:
        reordered.add(str(example), [str(page) for page in pages])
    parts: list[set[tuple[str, int]]] = []
    for example, pages in added:
        merged = {("example", example), *(("page", page) for page in pages)}
        rest = [part for part in parts if not part & merged]
        parts = [*rest, merged.union(*(part for part in parts if part & merged))]
    for of in (names, reordered):
        numbers = [{of.cluster(str(n)) if kind == "example" else of.page(str(n)) for kind, n in part} for part in parts]
        assert all(len(part) == 1 for part in numbers)
        assert len(set.union(set(), *numbers)) == len(parts)


# --- intervals -----------------------------------------------------------------------------------


def _borrowing(
    random: np.random.Generator, pages: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return own pages, borrowed pages, and answers of which the borrowed page decides most; right on half of them."""
    own = np.repeat(np.arange(pages), 4)
    shown = random.integers(pages, size=pages)[random.permutation(np.repeat(np.arange(pages), 4))]
    difficulty = random.normal(size=pages)
    return own, shown, (difficulty[shown] + random.normal(size=len(own)) / 2 > 0).astype(float)


def test_borrowed_pages_raise_the_variance_of_the_bootstrap() -> None:
    own, shown, right = _borrowing(np.random.default_rng(3), 40)
    variances = []
    for clusters in (Clusters.of(own), Clusters.of(own, shown[:, None])):
        totals = resample(clusters.sums(np.stack([right, np.ones(len(right))], axis=1)), 4000, 0)
        assert clusters.sums(right).sum() == right.sum()
        variances.append((totals[:, 0] / totals[:, 1]).var())
    of_own, of_all = variances
    assert of_all > 1.5 * of_own


def test_intervals_with_borrowed_pages_cover_where_own_pages_do_not() -> None:
    """500 runs over 40 pages."""
    random, covered = np.random.default_rng(2), {"own": 0, "all": 0}
    for _ in range(500):
        own, shown, right = _borrowing(random, 40)
        for name, clusters in (("own", Clusters.of(own)), ("all", Clusters.of(own, shown[:, None]))):
            sums, sizes = clusters.sums(np.stack([right, np.ones(len(right))], axis=1)).T
            interval = clustered_wilson(sums, sizes)
            assert interval.value == pytest.approx(right.mean())
            assert interval.low is not None
            assert interval.high is not None
            covered[name] += interval.low <= 0.5 <= interval.high
    assert covered["own"] / 500 < 0.85
    assert covered["all"] / 500 >= 0.92


def test_two_pages_of_one_other_cluster_count_once() -> None:
    """Pages of one cluster have its number, so that an answer which shows two of them names it twice."""
    own, joined = np.array([0, 1, 2]), np.array([[-1, -1], [0, 0], [1, -1]])
    twice = Clusters.of(own, joined)
    once = Clusters.of(own, joined[:, :1])
    np.testing.assert_array_equal(twice.sums(np.ones(3)), once.sums(np.ones(3)))
