"""The effect of an adapter after fusing: what counts, what is lost, and records that somebody else wrote."""

from __future__ import annotations

from typing import Any

import pytest

from mlx_backends.models.fuse_effect import FuseEffect, lost_effect_sentence


def effect(rows: int, changed: int, kept: int, reverted: int = 0, disturbed: int = 0) -> FuseEffect:
    return FuseEffect(rows, changed, kept, reverted, disturbed)


def test_answers_are_compared_by_their_texts() -> None:
    base = {"a": "57", "b": "57", "c": "57", "d": "57", "e": "57", "f": "57"}
    adapted = {"a": "34", "b": "34", "c": "34", "d": "57", "e": "57", "f": "34"}
    fused = {"a": "34", "b": " 57\n", "c": "12", "d": "57", "e": "58"}
    assert FuseEffect.between(base, adapted, fused) == effect(5, 3, 1, 1, 1)
    assert FuseEffect.between({"a": "Kale:  57"}, {"a": "kale: 57\n"}, {"a": "kale: 57"}).changed == 0


@pytest.mark.parametrize(
    ("counts", "is_lost"),
    [
        (effect(40, 20, 20), False),
        (effect(40, 20, 18, 2), False),
        (effect(40, 20, 17, 3), True),
        (effect(40, 20, 20, 0, 2), False),
        (effect(40, 20, 20, 0, 3), True),
        (effect(40, 0, 0), False),
        (effect(40, 0, 0, 0, 5), True),
        (effect(1, 1, 0, 1), True),
    ],
)
def test_a_tenth_may_differ(counts: FuseEffect, is_lost: bool) -> None:
    assert counts.is_lost is is_lost
    assert FuseEffect.read(counts.to_json()) == counts
    assert bool(lost_effect_sentence("m", [{}, {"check": counts.to_json()}])) is is_lost


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        effect(4, 2, 1).to_json() | {"kept": "1"},
        effect(4, 2, 1).to_json() | {"kept": True},
        effect(4, 2, 1).to_json() | {"rows": -4},
        effect(4, 5, 1).to_json(),
        effect(4, 2, 3).to_json(),
        effect(4, 2, 1, 0, 3).to_json(),
    ],
)
def test_other_records_tell_nothing(record: Any) -> None:
    assert FuseEffect.read(record) is None
    assert lost_effect_sentence("m", [{"check": record}]) == ""
