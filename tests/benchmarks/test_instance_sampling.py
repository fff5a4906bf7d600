"""Subsets: reproducible on every run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.errors import SpecError
from benchmarks.instance_sampling import select
from benchmarks.vocabulary import Instance


def _instances(sizes: dict[str, int]) -> list[Instance]:
    return [
        Instance(f"{kind}-{i}/{condition}", f"{kind}-{i}", condition, "?", (), strata={"type": kind, "source": kind[0]})
        for kind, size in sizes.items()
        for i in range(size)
        for condition in ("aligned", "both-wrong")
    ]


def _select(instances: Iterable[Instance], **options: Any) -> list[Instance]:
    return list(select(instances, **{"stratify_by": "type", "seed": 0, **options}))


sizes = st.dictionaries(
    st.sampled_from(["factual", "temporal", "entity", "granularity"]), st.integers(0, 30), min_size=1
)


@settings(deadline=None)
@given(sizes, st.integers(1, 60), st.integers(0, 5))
def test_a_limit_counts_whole_examples_in_proportion(counts: dict[str, int], limit: int, seed: int) -> None:
    every = _instances(counts)
    chosen = _select(every, limit=limit, seed=seed)
    assert chosen == [i for i in every if i in chosen]
    groups = {i.group for i in chosen}
    assert len(groups) == min(limit, sum(counts.values()))
    assert {i.id for i in chosen} == {i.id for i in every if i.group in groups}
    taken = Counter(group.split("-")[0] for group in groups)
    for kind, size in counts.items():
        share = size * min(1, limit / max(1, sum(counts.values())))
        assert abs(taken[kind] - share) < 1


@pytest.mark.slow
@settings(deadline=None)
@given(sizes, st.integers(1, 20), st.randoms(use_true_random=False))
def test_the_order_of_a_file_does_not_matter(counts: dict[str, int], limit: int, order: random.Random) -> None:
    every = _instances(counts)
    shuffled = order.sample(every, len(every))
    first, second = (_select(order, limit=limit, seed=3) for order in (every, shuffled))
    assert {i.id for i in first} == {i.id for i in second}


def test_subset_is_the_same_on_every_machine() -> None:
    expected = ["entity-2", "factual-3", "factual-5"]
    chosen = _select(_instances({"factual": 6, "entity": 3}), limit=3)
    assert sorted({i.group for i in chosen}) == expected
    assert sorted({i.group for i in _select(chosen, limit=3, seed=9)}) == expected


def test_seed_changes_the_subset() -> None:
    every = _instances({"factual": 40})
    assert _select(every, limit=10) != _select(every, limit=10, seed=1)


def test_conditions_and_strata_restrict() -> None:
    every = _instances({"factual": 5, "entity": 5})
    chosen = _select(every, conditions=["aligned"], strata={"type": ["entity"]})
    assert [i.id for i in chosen] == [f"entity-{i}/aligned" for i in range(5)]
    assert _select(every, conditions=[], strata={}) == every


def test_limit_applies_to_examples_left_by_instance_filters() -> None:
    every = [
        replace(i, strata={**i.strata, "correct": "both" if i.condition == "aligned" else "none"})
        for i in [*_instances({"factual": 3}), Instance("alone", "factual-0", "text-only", "?", ())]
    ]
    chosen = _select(every, strata={"correct": ["none"]}, limit=3)
    assert [i.id for i in chosen] == [f"factual-{i}/both-wrong" for i in range(3)] + ["alone"]


Choose = Callable[[list[Instance]], list[Instance]]


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        (lambda every: _select(every, conditions=["alined"]), "no condition 'alined'; did you mean 'aligned'"),
        (lambda every: _select(every, strata={"typ": ["entity"]}), "no stratum 'typ'; did you mean 'type'"),
        (lambda every: _select(every, strata={"type": ["factal"]}), "no type 'factal'; did you mean 'factual'"),
        (lambda every: _select(every, strata={"type": ["entity"], "source": ["f"]}), "no instance matches all"),
        (lambda every: _select(every, limit=0), "must be at least 1"),
        (lambda every: _select(every, limit=-3), "must be at least 1"),
    ],
)
def test_unknown_condition_or_stratum_is_a_spec_error(choose: Choose, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        choose(_instances({"factual": 2, "entity": 2}))
