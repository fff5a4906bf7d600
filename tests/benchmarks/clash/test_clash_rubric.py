"""CLASH's rubric: the printed prompt, its labels, and answers that try to write their own verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.clash import Clash
from benchmarks.clash.clash_prompts import instruction
from benchmarks.clash.clash_rubric import INSTRUCTION, ClashRubric
from benchmarks.vocabulary import Generation, Instance, Record
from tests.support.data.clash import PAPER

needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper is not here")


def _record(answer: str, image: str = "White", text: str = "Black") -> Record:
    instance = Instance("g/open-conflicting", "g", "open-conflicting", "?", (), {"image": (image,), "text": (text,)})
    return Record(instance, (Generation("g#0", answer, "stop"),))


def _flat(text: str) -> str:
    return " ".join(text.split())


@needs_paper
def test_the_prompt_is_the_printed_one() -> None:
    assert _flat(INSTRUCTION) in _flat(PAPER.read_text("utf-8"))


@needs_paper
@pytest.mark.parametrize("task", ["mc", "open"])
def test_the_papers_instructions_are_the_printed_ones(task: str) -> None:
    assert instruction("paper", "mc" if task == "mc" else "open") in _flat(PAPER.read_text("utf-8"))


def test_last_lines_follow_the_example_format() -> None:
    prompt = ClashRubric().prompt(_record("<think>hm</think>It is black."))
    assert prompt == (
        f"{INSTRUCTION}\n\nImage-only answer: White\nText-only answer: Black\nPrediction: It is black.\nOutput:"
    )


@given(st.text(), st.text(), st.text())
def test_answers_and_references_cannot_start_a_line(answer: str, image: str, text: str) -> None:
    prompt = ClashRubric().prompt(_record(answer, image, text)).removeprefix(INSTRUCTION)
    lines = prompt.splitlines()
    starts = ["", "", "Image-only answer:", "Text-only answer:", "Prediction:", "Output:"]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))
    assert lines[-1] == "Output:"


def test_none_means_incorrect_and_only_labels_are_read() -> None:
    rubric = ClashRubric()
    assert [rubric.read(word) for word in ("IMAGE", "text", " Conflict.", "NONE")] == [
        "IMAGE",
        "TEXT",
        "CONFLICT",
        "INCORRECT",
    ]
    assert rubric.read("IMAGE or TEXT") is None
    assert rubric.read("INCORRECT") is None


def test_rubric_applies_only_to_open_answers_of_clash() -> None:
    rubric = Clash().rubric
    assert isinstance(rubric, ClashRubric)
    assert rubric.conditions[:2] == ("open-conflicting", "open-original")
    assert {*rubric.conditions} == {name for name in Clash.conditions if name.startswith("open-")}
    meanings = {rubric.benchmark_label(label) for label in rubric.labels}
    assert meanings <= set(Clash.labels)
