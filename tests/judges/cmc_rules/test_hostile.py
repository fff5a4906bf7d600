"""Hostile input to the judge: any characters, any length."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.cmc_bench.cmc_constants import LABELS
from tests.support.records import label, verdict
from tests.support.sampled import some_fast

ANY_TEXT = st.text(st.characters(), max_size=300)
PIECES = (
    '12 15 5t the text chart says shows not answer is \\boxed{ $ = + \n ** or and if so % / 1/0 10^999 ( ) " ? half none '
    "dozen billion 1.2.3 1,2,3 no yes between to from ٣ ① ²² 𝟙 \u202e \ud800 \x00 \ue000 <think> </think> <answer> </answer> "
    '{"answer": } Wait, actually A+ Smith Dr. who The answer is fıve sİx dB/m trust choose image cannot conflict'
)
FRAGMENTS = st.lists(st.sampled_from(PIECES.split(" ")), max_size=40).map(" ".join)
REFERENCES = st.one_of(
    ANY_TEXT,
    st.sampled_from(
        [
            "12",
            "Yes",
            "dog and cat",
            "15 km",
            "E = mc^2",
            "2008",
            "",
            "1/0",
            "\ud800",
            "∞",
            "\ue000",
            "A+ Smith",
            "3 May",
        ]
    ),
)


@settings(max_examples=300)
@given(st.one_of(ANY_TEXT, FRAGMENTS), st.none() | REFERENCES, st.none() | REFERENCES, ANY_TEXT)
def test_any_text_gets_a_deterministic_verdict(answer: str, image: str | None, text: str | None, question: str) -> None:
    got = verdict(answer, image, text, question)
    assert (got.status == "labelled") == (got.label in LABELS)
    assert got.status in ("labelled", "undecided", "unparsed")
    assert got == verdict(answer, image, text, question)


@pytest.mark.parametrize(
    "answer",
    ["The answer is", "Answer:\n\n", "<answer></answer>", "\\boxed{}", '{"answer": ""}', "It is 5t.", "|"],
)
@pytest.mark.parametrize(("image", "text"), [("12", "15"), ("Dog", "Cat"), ("Yes", "No"), ("A+ Smith", "B+ Jones")])
def test_empty_and_odd_forms_are_judged(answer: str, image: str, text: str) -> None:
    assert verdict(answer, image, text, "Who is it?").label not in ("IMAGE", "TEXT", "BOTH")


NUMBERS = st.one_of(
    st.integers(0, 5000).map(str),
    st.decimals(0, 999, places=1).map(str),
    st.integers(0, 100).map(lambda n: f"{n}%"),
    st.sampled_from(
        ["Dog", "Cat", "Baroque", "Niger", "Nigeria", "Yes", "No", "T cells", "X-ray tube", "2008", "2015"]
    ),
)


@given(
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.sampled_from(["**{}**", "  {} \n", "*{}*", "`{}`", "### {}", "{}.", "“{}”", "\u200e{}\u200f"]),
)
def test_decorating_a_bare_value_does_not_change_its_label(image: str, text: str, answer: str, dress: str) -> None:
    assert label(dress.format(answer), image, text) == label(answer, image, text)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_swapping_the_references_swaps_the_labels(image: str, text: str, answer: str) -> None:
    swapped = {"IMAGE": "TEXT", "TEXT": "IMAGE"}
    got = label(answer, image, text) or ""
    assert (label(answer, text, image) or "") == swapped.get(got, got)


@given(NUMBERS, NUMBERS)
def test_bare_reference_value_gets_its_sources_label(image: str, text: str) -> None:
    assert label(image, image, text) in ("IMAGE", "BOTH", None)


def test_invisible_characters_do_not_hide_or_split_a_value() -> None:
    assert label("The answer is 1\u200b2.") == "IMAGE"
    assert label("\u202eThe answer\x00 is 12\u202c.") == "IMAGE"
    assert label("The answer is １２.") == "IMAGE"


MEGABYTE = 1_000_000
HOSTILE = [
    "a",
    "1",
    "1 ",
    "12,",
    "(",
    "\\frac{",
    "$ ",
    "the text says ",
    "not 12 ",
    '"',
    "*",
    "no ",
    " ",
    "\n",
    "<think>",
]
HOSTILE += [
    "\\",
    "- ",
    "one ",
    "twenty ",
    "cannot be ",
    "not any ",
    "final correct ",
    "1=",
    "12 and 15 or ",
    "</think>",
]
HOSTILE += [
    "x\ufdfa",
    "| 1 ",
    "wait, ",
    "no, ",
    "sorry, 12 ",
    "oh no no ",
    "~~12 ",
    "~~a~~",
    "<s>12",
    "12 -> ",
    ", i a",
]
HOSTILE += [
    "(should be ",
    "let me look at it ",
    "i said that it is that it was ",
    "½",
    "a 12 ",
    "\\boxed{",
    "<answer>",
    "{",
]


@pytest.mark.parametrize("unit", some_fast(HOSTILE, 8))
@pytest.mark.parametrize("reference", some_fast(["12", "a b c d e f", "T = 2π√(L/g)", "Yes"], 2))
def test_megabyte_is_judged_quickly(unit: str, reference: str) -> None:
    answer = (unit * (MEGABYTE // len(unit) + 1))[:MEGABYTE] + "x"
    started = time.process_time()
    verdict(answer, reference, "15", "How many not 12 the text says?")
    assert time.process_time() - started < 5  # seconds, on a slow machine


def test_a_name_without_an_end_is_judged_quickly() -> None:
    started = time.process_time()
    verdict("The winner is " + "W" * 300 + "!", "Lima", "Leeds", "Who is the winner?")
    verdict("W" * 400, "]]><![CDATA[<b>", None, "Pick ]]><![CDATA[<b> (31)?")
    assert time.process_time() - started < 5


def test_the_end_of_a_very_long_answer_is_read() -> None:
    assert label("The chart has many lines. " * 20_000 + "Therefore, the answer is 15.") == "TEXT"
