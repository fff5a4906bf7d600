"""The mode that is expected to be the fastest, its check included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlx_backends.core.expected_time import ExpectedTime

ON_CPU = ExpectedTime(total=24, prefill_s=0.27, decode_s=0.14, tokens=32, shared=0.6, device="cpu")


@pytest.mark.parametrize(("total", "best"), [(1, "sequential"), (2, "sequential"), (8, "shared"), (24, "shared")])
def test_few_requests_share_prefixes_where_that_saves_more_than_reading_a_prompt_again(total: int, best: str) -> None:
    assert replace(ON_CPU, total=total).best == best


def test_many_requests_are_answered_in_batches() -> None:
    assert replace(ON_CPU, total=500).best == "batched"


def test_requests_that_share_nothing_are_answered_one_at_a_time_until_batches_save_more() -> None:
    assert [replace(ON_CPU, shared=0.0, total=total).best for total in (24, 500)] == ["sequential", "batched"]


def test_a_gpu_gains_by_batches_sooner_the_longer_the_answers() -> None:
    assert replace(ON_CPU, device="metal").best == "batched"
    assert replace(ON_CPU, device="metal", decode_s=0.01).best == "shared"


def test_a_stored_check_is_confirmed_for_fewer_requests() -> None:
    asked = replace(ON_CPU, total=40, shared=0.3, decode_s=0.1)
    assert (asked.best, replace(asked, is_stored=True).best) == ("shared", "batched")


def test_answers_are_given_sequentially_as_references_unless_they_are_long() -> None:
    assert ON_CPU.gives_references
    assert not replace(ON_CPU, device="metal", decode_s=20.0, tokens=512).gives_references
