"""Answers as arrays: the same as a mapping, in a fraction of its memory."""

from __future__ import annotations

import gc
import pickle
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.compare.runs import packed_answers
from app.compare.runs.packed_answers import LabelledAnswer, PackedAnswers, PackedTexts
from app.compare.runs.view_reader import load_views
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from tests.support.runs import instances, make_run, says

NAMES = ["", "a", "ä/β", "lone \ud800", "a", "\0", "x" * 1000, "e7/image-correct"]


def test_texts_come_back_as_they_were() -> None:
    texts = PackedTexts(NAMES)
    for copy in (texts, pickle.loads(pickle.dumps(texts))):  # noqa: S301 - our own
        assert list(copy) == NAMES
        assert (len(copy), copy[-1], copy[2:4]) == (len(NAMES), NAMES[-1], NAMES[2:4])
        with pytest.raises(IndexError):
            copy[len(NAMES)]
    assert list(texts.at(np.array([2, 0]))) == ["ä/β", ""]


@pytest.mark.parametrize("hash_", [hash, lambda text: 7, lambda text: len(text) - 3])
def test_texts_are_found_whatever_their_hashes(hash_: Callable[[str], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_answers, "hash", hash_, raising=False)
    first = PackedTexts(dict.fromkeys(NAMES))
    shuffled = random.Random(1).sample([*dict.fromkeys(NAMES), "not there", "b"], 9)
    assert first.places(shuffled).tolist() == [list(first).index(t) if t in list(first) else -1 for t in shuffled]
    assert first.places(PackedTexts(first)).tolist() == list(range(len(first)))
    assert first.places([]).tolist() == []
    assert PackedTexts().places(NAMES).tolist() == [-1] * len(NAMES)


def answers(count: int) -> dict[str, LabelledAnswer]:
    return {
        f"factual-{n // 8:012x}/condition-{n % 8}": LabelledAnswer(
            f"factual-{n // 8:012x}",
            f"condition-{n % 8}",
            ("IMAGE", "TEXT", "pending")[n % 3],
            n * 10**12,
            "image" * (n % 2),
        )
        for n in range(count)
    }


def test_packed_answers_are_the_mapping_they_were_made_of() -> None:
    plain = answers(100)
    packed = PackedAnswers.of(plain)
    assert dict(packed) == plain
    assert list(packed.items()) == list(plain.items())
    assert list(packed.values()) == list(plain.values())
    assert ("nothing" in packed, packed.get("nothing"), len(packed)) == (False, None, 100)
    codes = packed.outcome_codes({"IMAGE": 0, "TEXT": 1})
    assert codes.tolist() == [(0, 1, -1)[n % 3] for n in range(100)]
    assert dict(PackedAnswers.of({})) == {}
    other = PackedAnswers.of(plain).sharing(packed)
    assert (other.ids, other.groups) == (packed.ids, packed.groups)
    assert dict(other) == plain


@pytest.mark.slow
def test_a_compared_run_holds_a_fraction_of_what_a_mapping_of_its_answers_does(tmp_path: Path) -> None:
    folder = make_run(Workspace(tmp_path), "a-run", instances(100), says("It is 12."))
    load_views([folder])  # imports
    tracemalloc.start()
    (run,) = load_views([folder]).runs
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    with RunStore.read(folder) as store:
        expected = {
            item.instance.id: (item.instance.condition, item.verdicts["match@4"].label) for item in store.records()
        }
    assert {name: (answer.condition, answer.outcome) for name, answer in run.answers.items()} == expected
    assert size < 150 * len(expected)
