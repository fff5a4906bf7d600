"""The prompting strategies: the prompt of each, and the contents of MM-CoT's second stage."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.crosscheck_bench import crosscheck_prompts as prompts
from benchmarks.crosscheck_bench.crosscheck_grounding import find_named_marks
from benchmarks.crosscheck_bench.crosscheck_instances import instances
from benchmarks.crosscheck_bench.crosscheck_protocol import StrategyProtocol
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import (
    Decoding,
    Generation,
    Instance,
    Mark,
    Media,
    Record,
    Request,
    Text,
    instance_from_json,
    instance_to_json,
)
from tests.support.data.crosscheck_bench import make_sample

LOGO, PRICE = Mark("brand logo", (10, 10, 70, 40)), Mark("price tag", (90, 80, 150, 110))
SIZE = (160, 120)


def by_condition(sample: CrossCheckSample) -> dict[str, Instance]:
    return {instance.condition: instance for instance in instances(sample)}


def texts(request: Request) -> list[str]:
    return ["".join(p.text for p in message.parts if isinstance(p, Text)) for message in request.messages]


def media(request: Request, turn: int = -1) -> list[Media]:
    return [part for part in request.messages[turn].parts if isinstance(part, Media)]


def test_the_prompt_is_the_papers_format() -> None:
    """Appendix C, unified QA format and its first example."""
    sample = replace(
        make_sample("BDC"),
        text='Title: "Men\'s Leather Oxford Dress Shoes"',
        question="Does the image match the product title?",
    )
    parts = by_condition(sample)["vanilla"].parts
    assert parts[0] == Text("Given the following input, answer the question.\n")
    assert parts[1] == sample.frames[0]
    assert parts[2:] == (Text('\nTitle: "Men\'s Leather Oxford Dress Shoes"\nDoes the image match the product title?'),)


def test_options_are_formatted_as_in_figure_8() -> None:
    last = by_condition(make_sample("PI"))["vanilla"].parts[-1]
    assert isinstance(last, Text)
    assert last.text.endswith("\nOption:\nA: Main item for sale\nB: Partial item for sale\nC: Item not for sale")


def test_frames_appear_where_the_question_says() -> None:
    sample = make_sample("BI*")
    inline = replace(sample, question="First <image> then <image> and <image>?")
    parts = by_condition(inline)["vanilla"].parts
    assert [part if isinstance(part, Text) else "frame" for part in parts] == [
        Text('Given the following input, answer the question.\nTitle: "Thing 0"\nFirst '),
        "frame",
        Text(" then "),
        "frame",
        Text(" and "),
        "frame",
        Text("?\nOption:\nA: Main item for sale\nB: Partial item for sale\nC: Item not for sale"),
    ]


def test_image_tag_in_text_is_no_placeholder() -> None:
    sample = replace(make_sample("BR"), text="Title: <image>")
    parts = by_condition(sample)["vanilla"].parts
    assert sum(isinstance(part, Media) for part in parts) == 1


def test_strategies_differ_only_in_instruction_and_marks() -> None:
    grounded = by_condition(make_sample("PI"))
    assert list(grounded) == ["vanilla", "cot", "som", "cot+som", "mm-cot"]
    for condition, instance in grounded.items():
        remark = "".join(part.text for part in instance.parts if isinstance(part, Text))
        assert remark.endswith(f"\n{prompts.STEP_BY_STEP}") is (condition in ("cot", "cot+som", "mm-cot"))
        (frame,) = (part for part in instance.parts if isinstance(part, Media))
        assert frame.marks == ((LOGO, PRICE) if condition in ("som", "cot+som", "mm-cot") else ())
    assert len({instance.group for instance in grounded.values()}) == 1
    assert [instance_from_json(instance_to_json(item)) for item in grounded.values()] == list(grounded.values())


def test_sample_without_boxes_has_no_marked_conditions() -> None:
    assert list(by_condition(make_sample("LD", boxes=False))) == ["vanilla", "cot"]


def test_only_mm_cot_has_two_stages() -> None:
    protocol = get_benchmark("crosscheck-bench").protocol(Decoding())
    for condition, instance in by_condition(make_sample("LD")).items():
        request = protocol.next(instance, ())
        assert request is not None
        answer = Generation(request.id, "Yes", "stop")
        assert (protocol.next(instance, (answer,)) is None) is (condition != "mm-cot")


def test_stage_two_gets_the_reasoning_and_its_named_boxes() -> None:
    protocol, instance = StrategyProtocol(Decoding(seed=3)), by_condition(make_sample("PI"))["mm-cot"]
    first = protocol.next(instance, ())
    assert first is not None
    assert [part.marks for part in media(first)] == [()]
    cot = protocol.next(by_condition(make_sample("PI"))["cot"], ())
    assert cot is not None
    assert first.digest == cot.digest, "stage 1 is chain-of-thought"
    reasoning = "The price tag says 7, so this is a part. B"
    second = protocol.next(instance, (Generation(first.id, reasoning, "stop"),))
    assert second is not None
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert second.messages[0] == first.messages[0]
    assert texts(second)[1] == reasoning
    assert [part.marks for part in media(second)] == [(PRICE,)]
    assert texts(second)[2].startswith(prompts.HIGHLIGHTED)
    assert texts(second)[2].endswith(texts(first)[0])
    assert (second.step, second.decoding) == (1, first.decoding)
    done = (Generation(first.id, reasoning, "stop"), Generation(second.id, "B", "stop"))
    assert protocol.next(instance, done) is None


def test_frame_marks_are_drawn_under_every_strategy_and_stage() -> None:
    """Figure 8's BI* speaks of logos "highlighted with red bounding boxes"."""
    plain = make_sample("BI*")
    own = Mark("logo", PRICE.box)
    sample = replace(plain, frames=(replace(plain.frames[0], marks=(own,)), *plain.frames[1:]))
    grounded = by_condition(sample)
    marks = {name: [p.marks for p in item.parts if isinstance(p, Media)] for name, item in grounded.items()}
    assert marks["vanilla"] == marks["cot"] == [(own,), (), ()]
    assert marks["som"] == [(own, LOGO), (LOGO, PRICE), (LOGO, PRICE)], "no box is drawn twice"
    protocol = StrategyProtocol(Decoding())
    first = protocol.next(grounded["mm-cot"], ())
    cot = protocol.next(grounded["cot"], ())
    assert first is not None
    assert cot is not None
    assert first.digest == cot.digest
    second = protocol.next(grounded["mm-cot"], (Generation("x", "The price tag.", "stop"),))
    assert second is not None
    assert [part.marks for part in media(second)] == [(own,), (PRICE,), (PRICE,)]
    assert CrossCheckSample.from_row(sample.to_row()) == sample


def test_stage_two_without_named_boxes_claims_none() -> None:
    protocol, instance = StrategyProtocol(Decoding()), by_condition(make_sample("PI"))["mm-cot"]
    second = protocol.next(instance, (Generation("x", "It looks fine. [200, 200, 300, 300]", "stop"),))
    assert second is not None
    assert [part.marks for part in media(second)] == [()]
    assert prompts.HIGHLIGHTED not in texts(second)[2]
    record = Record(instance, (Generation("x", "It looks fine. [200, 200, 300, 300]", "stop"),))
    assert get_benchmark("crosscheck-bench").remarks(record) == (
        "nothing was drawn for stage 2",
        "named in stage 1 and no box of this sample: [200, 200, 300, 300]",
    )


def test_empty_first_answer_is_marked_as_empty() -> None:
    protocol, instance = StrategyProtocol(Decoding()), by_condition(make_sample("PI"))["mm-cot"]
    second = protocol.next(instance, (Generation("x", " ", "stop"),))
    assert second is not None
    assert texts(second)[1] == prompts.NO_REASONING


def test_a_first_stage_that_failed_ends_the_instance() -> None:
    protocol, instance = StrategyProtocol(Decoding()), by_condition(make_sample("PI"))["mm-cot"]
    assert protocol.next(instance, (Generation("x", "", "error", error="boom"),)) is None


@pytest.mark.parametrize(
    ("reasoning", "named"),
    [
        ("I look at the brand logo.", [LOGO]),
        ("Brand  Logos!", [LOGO]),
        ("the BRAND-LOGO and the **price tag**", [LOGO, PRICE]),
        ("the logo of a brand", []),
        ("brand logotype", []),
        ("at [10, 10, 70, 40]", [LOGO]),
        ("(12,9),(69,42) is it", [LOGO]),
        ('{"bbox_2d": [10.0, 10.0, 70.0, 40.0]}', [LOGO]),
        ("[0.0625, 0.083, 0.4375, 0.333]", [LOGO]),  # shares of the picture, as in Figure 8
        ("[562, 667, 938, 917]", [PRICE]),  # thousandths
        ("[10, 10, 40, 40]", [LOGO]),  # exactly half
        ("[10, 10, 39, 40]", []),
        ("[70, 40, 10, 10]", []),
        ("in 10, 10, 70, 40", []),
    ],
)
def test_boxes_are_named_by_label_or_by_coordinates(reasoning: str, named: list[Mark]) -> None:
    assert list(find_named_marks(reasoning, [(LOGO, PRICE)], [SIZE]).frames[0]) == named


def test_unknown_boxes_are_stored_verbatim_once() -> None:
    grounded = find_named_marks("[1, 2, 3, 4] [1, 2, 3, 4] (100,5),(120,9)", [(LOGO,)], [SIZE])
    assert grounded.unmatched == ("[1, 2, 3, 4]", "(100,5),(120,9)")
    assert grounded.count == 0


def test_a_label_marks_every_frame_and_coordinates_the_frame_they_fit() -> None:
    frames = [(LOGO,), (LOGO, PRICE), (PRICE,)]
    assert [len(marks) for marks in find_named_marks("the brand logo", frames, [SIZE] * 3).frames] == [1, 1, 0]
    assert find_named_marks("商标在左边", [(Mark("商标", (0, 0, 9, 9)),)], []).count == 1


def test_without_sizes_coordinates_are_pixels() -> None:
    assert find_named_marks("[10, 10, 70, 40]", [(LOGO,)], []).count == 1
    assert find_named_marks("[0.06, 0.08, 0.44, 0.33]", [(LOGO,)], []).unmatched == ("[0.06, 0.08, 0.44, 0.33]",)


@given(st.text(max_size=300), st.text(min_size=1, max_size=20))
def test_any_reasoning_is_read(reasoning: str, label: str) -> None:
    grounded = find_named_marks(reasoning, [(Mark(label, (0, 0, 1, 1)),)], [SIZE])
    assert grounded.count in (0, 1)


@pytest.mark.parametrize("unit", ["[1,", "(1,2),", "[1, 2, 3, ", "brand "])
def test_hostile_reasoning_is_parsed_quickly(unit: str) -> None:
    started = time.process_time()
    find_named_marks(unit * 20_000, [(LOGO, PRICE)] * 4, [SIZE] * 4)
    assert time.process_time() - started < 2
