"""CLASH's string matching: the rules of Appendix A, every published flag, and hostile input."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.clash.clash_constants import CONFLICT_OPTION, LABELS
from benchmarks.text.stemming import stem
from benchmarks.vocabulary import Generation, Instance, Record, Verdict
from judges.clash_string_match_judge import Relaxed, Strict, normalise
from judges.judge_registry import get_judge
from tests.support.sampled import some_fast

OFFICIAL = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "clash" / "official"
CHOICES = OFFICIAL / "multiple_choice__gemini-2.5-flash-lite_predictions.json"
OPEN = OFFICIAL / "open_ended__llm_as_judge__internvl_chatv1.5_predictions.json"

LABEL_OF_FLAG = {
    "matches_contradiction": "CONFLICT",
    "matches_image_only": "IMAGE",
    "matches_text_only": "TEXT",
    "matches_irrelevant": "DISTRACTOR",
}
ROLES = {
    "image": "image_only",
    "text": "text_only",
    "distractor": "irrelevant_but_plausible",
    "conflict": "contradiction",
}
LETTER_OF = {"conflict": "A", "distractor": "B", "image": "C", "text": "D"}


def _record(answer: str, condition: str, references: Mapping[str, tuple[str, ...]]) -> Record:
    return Record(Instance("i", "g", condition, "?", (), references), (Generation("i#0", answer, "stop"),))


def _choice(judge: Strict | Relaxed, answer: str, image: str = "Blue", text: str = "Red") -> Verdict:
    references = {"image": (image,), "text": (text,), "distractor": ("Green",), "conflict": (CONFLICT_OPTION,)}
    references |= {f"{role} letter": (letter,) for role, letter in LETTER_OF.items()}
    return judge.judge(_record(answer, "mc-conflicting", references))


def _open(answer: str, image: str = "polar bear", text: str = "brown bear") -> Verdict:
    references = {"image": (image,), "text": (text,), "distractor": ("fox",), "conflict": (CONFLICT_OPTION,)}
    verdicts = [judge.judge(_record(answer, "open-conflicting", references)) for judge in (Strict(), Relaxed())]
    assert [(v.label, v.flags, v.reason) for v in verdicts[:1]] == [(v.label, v.flags, v.reason) for v in verdicts[1:]]
    return verdicts[0]


# --- the published predictions ----------------------------------------------------------------------------


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        pytest.skip("needs the published predictions")
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return rows


def _differing(judge: Strict | Relaxed, rows: list[dict[str, Any]], condition: str) -> list[tuple[str, Any, Any]]:
    differing = []
    for row in rows:
        answers = row["modality_answers"]
        if condition.startswith("mc"):
            references = {role: (answers[name]["answer"],) for role, name in ROLES.items()}
            references |= {f"{role} letter": (answers[name]["choice"],) for role, name in ROLES.items()}
        else:
            references = {role: (answers[ROLES[role]],) for role in ("image", "text")}
        flags = judge.judge(_record(row["prediction"], condition, references)).flags
        published = tuple(label for flag, label in LABEL_OF_FLAG.items() if row["evaluation"].get(flag))
        if flags != published or row["evaluation"].get("matches_none", not flags) == bool(flags):
            differing.append((row["prediction"], flags, published))
    return differing


def test_every_published_flag_of_multiple_choice_is_reproduced() -> None:
    rows = _rows(CHOICES)
    assert len(rows) == 1281
    assert _differing(Strict(), rows, "mc-conflicting") == []
    assert _differing(Relaxed(), rows, "mc-conflicting") == []  # every one of these answers has its letter in brackets


def test_every_published_flag_of_open_answers_is_reproduced() -> None:
    rows = _rows(OPEN)
    assert len(rows) == 1281
    assert _differing(Strict(), rows, "open-conflicting") == []
    assert sum(sum(flag for flag in row["evaluation"].values()) > 1 for row in rows) == 37  # flags do overlap


# --- multiple choice, Appendix A.1 -------------------------------------------------------------------------

BRACKETED = [
    ("(A)", "CONFLICT"),
    ("(C)", "IMAGE"),
    ("(D) Red", "TEXT"),
    ("The answer is (B).", "DISTRACTOR"),
    ("(D), and again (D)", "TEXT"),
    ("(A) or (C)", "INCORRECT"),
    ("It is not (B), so (C)", "INCORRECT"),
    ("<think>(B)? no</think>(C)", "IMAGE"),
]


@pytest.mark.parametrize(("answer", "label"), BRACKETED)
def test_bracketed_letter_chooses_and_several_are_incorrect(answer: str, label: str) -> None:
    for judge in (Strict(), Relaxed()):
        verdict = _choice(judge, answer)
        assert (verdict.status, verdict.label) == ("labelled", label)
        assert verdict.flags == (() if label == "INCORRECT" else (label,))


RELAXED = [
    ("C", "IMAGE"),
    ("d", "TEXT"),
    (" A \n", "CONFLICT"),
    ("A.", "INCORRECT"),
    ("Option C", "INCORRECT"),
    ("E", "INCORRECT"),
    ("The chair is blue.", "IMAGE"),
    ("RED", "TEXT"),
    ("Blueish", "INCORRECT"),
    ("green", "DISTRACTOR"),
    ("Conflicting information – cannot answer.", "INCORRECT"),
    ("(c)", "INCORRECT"),
    ("[C]", "INCORRECT"),
    ("（C）", "INCORRECT"),
    ("Ｃ", "INCORRECT"),
    ("It is blue, (E)", "IMAGE"),
]


@pytest.mark.parametrize(("answer", "label"), RELAXED)
def test_only_relaxed_reads_unbracketed_letters_and_words(answer: str, label: str) -> None:
    assert _choice(Relaxed(), answer).label == label
    assert _choice(Strict(), answer).label == "INCORRECT"


def test_words_of_several_options_set_several_flags() -> None:
    verdict = _choice(Relaxed(), "The text says red, but I see blue and green.")
    assert (verdict.label, verdict.flags) == ("IMAGE", ("IMAGE", "TEXT", "DISTRACTOR"))
    assert verdict.reason == "relaxed choice matching: 'Blue' (image), 'Red' (text), 'Green' (distractor)"


def test_letters_take_precedence_over_words() -> None:
    assert _choice(Relaxed(), "(D) blue").label == "TEXT"
    assert _choice(Relaxed(), "(A) (D) blue").label == "INCORRECT"
    assert _choice(Relaxed(), "D", image="d").label == "TEXT"
    assert _choice(Relaxed(), "S", image="s").label == "IMAGE"  # no option's letter, so its words are looked for


# --- open answers, Appendix A.2 ------------------------------------------------------------------------------

OPEN_ANSWERS = [
    ("Brown bear", ("TEXT",)),
    ("These are polar bears.", ("IMAGE",)),
    ("Conflicting information – cannot answer.", ("CONFLICT",)),
    ("The image contradicts the text.", ("CONFLICT",)),
    ("There is a contradiction.", ("CONFLICT",)),
    ("It is contradictory", ()),
    ("a polar brown bear", ("TEXT",)),
    ("polar", ()),
    ("bear, polar", ()),
    ("The polar, bear!", ("IMAGE",)),
    ("A polar bear; the text says a brown bear: conflicting", ("CONFLICT", "IMAGE", "TEXT")),
    ("fox", ()),
    ("unconflicted", ()),
]


@pytest.mark.parametrize(("answer", "flags"), OPEN_ANSWERS)
def test_open_answers_match_by_whole_words(answer: str, flags: tuple[str, ...]) -> None:
    verdict = _open(answer)
    assert verdict.flags == flags
    assert verdict.label == (flags[0] if flags else "INCORRECT")


NORMALISED = [
    ("The 2 dogs", "two dog"),
    ("10 or 11 or 0", "ten or 11 or zero"),
    ("a wooden, golden, sandy AND brightly-lit table", "wood gold sand and bright lit tabl"),
    ("Skateboarding skateboarders", "skateboard skateboard"),
    ("one on an ONE", "one on one"),
    ("٣ ｔｗｏ", "٣ ｔｗｏ"),
    ("the an a", ""),
]


@pytest.mark.parametrize(("text", "normal"), NORMALISED)
def test_normal_form(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_answer_of_a_lone_article_matches_nothing() -> None:
    assert _open("the dog", image="The", text="A").flags == ()


def test_word_one_does_not_match_on() -> None:
    """Under Porter's first algorithm both have the stem ``on``."""
    assert _open("There are two lamps on the table.", image="One", text="Two").flags == ("TEXT",)
    assert _open("Only 1 of them", image="One", text="Two").flags == ("IMAGE",)


# --- stems ---------------------------------------------------------------------------------------------------

STEMS = {
    **dict.fromkeys(("caress", "caresses"), "caress"),
    **dict.fromkeys(("pony", "ponies"), "poni"),
    **dict.fromkeys(("motoring", "motor"), "motor"),
    **dict.fromkeys(("hopping", "hop"), "hop"),
    **dict.fromkeys(("generalizations", "generalize", "general"), "gener"),
    **dict.fromkeys(("fly", "flies"), "fli"),
    **dict.fromkeys(("tie", "ties", "tied", "tying"), "tie"),
    **dict.fromkeys(("skies", "sky"), "sky"),
    **dict.fromkeys(("conflict", "conflicts", "conflicting", "conflicted"), "conflict"),
    **dict.fromkeys(("contradict", "contradicts", "contradiction", "contradictions"), "contradict"),
    "contradictory": "contradictori",
    "agreed": "agre",
    "feed": "feed",
    "plastered": "plaster",
    "sing": "sing",
    "falling": "fall",
    "hissing": "hiss",
    "filing": "file",
    "relational": "relat",
    "rational": "ration",
    "digitizer": "digit",
    "hopefulness": "hope",
    "electrical": "electr",
    "replacement": "replac",
    "adoption": "adopt",
    "controlling": "control",
    "rate": "rate",
    "cease": "ceas",
    "roll": "roll",
    "enjoy": "enjoy",
    "carefully": "care",
    "technology": "technolog",
    "one": "one",
    "is": "is",
    "syzygy": "syzygi",
    "naïve": "naïv",
}


@pytest.mark.parametrize("word", STEMS)
def test_stems_match_the_published_scoring(word: str) -> None:
    assert stem(word) == STEMS[word]


# --- no answer, and hostile ones -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", " \n", "<think>It is (C)", "<think>blue</think>"])
def test_missing_answer_is_unparsed_not_incorrect(answer: str) -> None:
    for verdict in (_choice(Strict(), answer), _choice(Relaxed(), answer), _open(answer)):
        assert (verdict.status, verdict.label, verdict.flags) == ("unparsed", None, ())
    assert _open("").reason == "the answer is empty"
    assert _open("<think>").reason == "the answer is nothing but reasoning"


HOSTILE = {
    "brackets": "(" * 1_000_000,
    "letters": "(A" * 500_000,
    "one word": "y" * 1_000_000,
    "alternating": "ay" * 500_000,
    "suffixes": "ational" * 150_000,
    "words": "polar brown " * 90_000,
    "different words": " ".join(f"w{i}ing" for i in range(120_000)),
    "thoughts": "<think>" * 150_000,
    "not text": "\x00\ud800\u202e" * 300_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", some_fast(HOSTILE, 3))
def test_a_megabyte_of_anything_takes_seconds(name: str) -> None:
    started = time.process_time()
    verdicts = [_choice(Relaxed(), HOSTILE[name]), _open(HOSTILE[name])]
    assert time.process_time() - started < 15
    assert all(verdict.label in ("INCORRECT", None) for verdict in verdicts)


def test_option_words_are_not_a_regular_expression() -> None:
    assert _choice(Relaxed(), "it costs 11x98", image="11.98").label == "INCORRECT"
    assert _choice(Relaxed(), "it costs 11.98", image="11.98").label == "IMAGE"
    assert _choice(Relaxed(), "anything", image=".*", text="(").label == "INCORRECT"
    assert _choice(Relaxed(), "anything", image=" ", text="").label == "INCORRECT"
    assert len(_choice(Relaxed(), "x" * 5000, image="x" * 5000).reason) < 120


def test_unknown_options_are_incorrect() -> None:
    instance_without_letters = _record("(A)", "mc-conflicting", {"image": ("Blue",)})
    assert Strict().judge(instance_without_letters).label == "INCORRECT"
    assert Relaxed().judge(_record("blue", "mc-conflicting", {})).label == "INCORRECT"
    assert Strict().judge(_record("blue", "open-original", {})).label == "INCORRECT"


words = st.lists(
    st.sampled_from(["(A)", "(C)", "B", "blue", "red", "conflict", "<think>", "</think>", "\n"]), max_size=6
)


@given(st.one_of(st.text(), words.map(" ".join)))
def test_any_answer_gets_one_of_the_labels(answer: str) -> None:
    for verdict in (_choice(Strict(), answer), _choice(Relaxed(), answer), _open(answer, "blue", "red")):
        if verdict.status == "unparsed":
            assert (verdict.label, verdict.flags) == (None, ())
        else:
            order = [LABELS.index(flag) for flag in verdict.flags]
            assert order == sorted(set(order))
            assert verdict.label == (verdict.flags[0] if verdict.flags else "INCORRECT")


@given(st.one_of(st.text(), words.map(" ".join)))
def test_relaxed_equals_strict_if_strict_finds_an_option(answer: str) -> None:
    strict = _choice(Strict(), answer)
    assert len(strict.flags) <= 1
    if strict.flags or "several" in strict.reason:
        assert _choice(Relaxed(), answer).flags == strict.flags


@given(st.lists(st.sampled_from(["Polar", "bear", "BROWN", "bears", "conflicts", "2", "fox"]), max_size=6))
def test_open_answers_ignore_case_articles_and_punctuation(answer: list[str]) -> None:
    plain = _open(" ".join(answer) or "-")
    dressed = _open("The " + ", a ".join(answer).upper() + "!")
    assert plain.flags == dressed.flags


@given(st.text(alphabet="abcdeilnostyzé", max_size=12), st.text(alphabet="abcdeilnostyzé", max_size=12))
def test_open_answer_matches_the_images_answer_anywhere(before: str, after: str) -> None:
    assert "IMAGE" in _open(f"{before} Two polar bears {after}", image="two polar bear").flags


def test_the_judges_are_found_by_name() -> None:
    assert [get_judge(name).id for name in ("strict", "relaxed")] == ["strict@1", "relaxed@1"]
    assert Strict.benchmarks == Relaxed.benchmarks == ("clash",)
