"""The construction: the paper's prompts, the rules for an edit, and rejections with their reasons."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import ModelError, SourceError, SpecError
from benchmarks.mmkc_bench.construction.mmkc_construction import RejectedEdit, counter_answer, read_edits
from benchmarks.mmkc_bench.construction.mmkc_construction_prompts import WRITER_PROMPTS
from benchmarks.mmkc_bench.mmkc_options import read_options
from benchmarks.registry import get_benchmark
from benchmarks.text_model import TextModel
from benchmarks.vocabulary import Generation, Request, Text
from tests.support.data.mmkc_bench import PAPER
from tests.support.data.small import write_lines, write_picture

MMKC = get_benchmark("mmkc-bench")
MUSK = "The person in the image is Musk. Musk was born in 1971. Musk is an American. and Musk is a businessman."


class Writer(TextModel):
    """Model whose reply is ``says(prompt, seed, text to edit)``; None is an error."""

    name = "scripted"

    def __init__(self, says: Callable[[str, int], str | None]) -> None:
        self.asked: list[Request] = []
        self._says = says

    def generate(self, requests: Iterable[Request]) -> Iterator[Generation]:
        for request in reversed(list(requests)):
            self.asked.append(request)
            part = request.messages[0].parts[0]
            assert isinstance(part, Text)
            text = self._says(part.text, request.decoding.seed)
            if text is None:
                yield Generation(request.id, "", "error", error="down")
            else:
                yield Generation(request.id, text, "stop")


def edited(prompt: str, seed: int = 0) -> str:
    """Right edits of the text in a prompt."""
    text = re.findall(r"^Input: (.*)$", prompt, re.MULTILINE)[-1]
    if "temporal" in prompt:
        return "".join(f"{n}. {text.replace('1971', str(1971 + n))}\n" for n in (1, 2))
    if "nationality" in prompt:
        return "".join(f"{n}. {text.replace('an American', f'a {w}')}\n" for n, w in ((1, "Canadian"), (2, "Briton")))
    if "occupation" in prompt:
        return "".join(f"{n}. {text.replace('businessman', w)}\n" for n, w in ((1, "singer"), (2, "chef")))
    name = re.findall(r"^Input: This is the (.*?)\.", prompt, re.MULTILINE)[-1]
    return "".join(f"{n}. {text.replace(name, f'Other {n}')}\n" for n in (1, 2))


def source(place: Path, rows: list[dict[str, Any]]) -> Path:
    for n in (1, 2, 3):
        write_picture(place / "image" / f"{n}.png", n)
    write_lines(place / "knowledge.jsonl", rows)
    return place


def person(name: str = "Musk", **answers: str) -> dict[str, Any]:
    facts = {"temporal": "1971", "location": "American", "Career": "businessman"}
    paths = [f"image/{n}.png" for n in (1, 2, 3)]
    return {"instance": name, "image_path": paths, "knowledge": MUSK.replace("Musk", name), "answers": answers or facts}


def tower(name: str) -> dict[str, Any]:
    paths = [f"image/{n}.png" for n in (1, 2, 3)]
    text = f"This is the {name}. {name} is a landmark."
    fields = {"kind": "ER", "open_query": "What is the building in the image?"}
    return {"instance": name, "image_path": paths, "description": text, "answer": name, **fields}


def construct(place: Path, out: Path, writer: TextModel | None, checker: TextModel | None = None) -> Build:
    return MMKC.build([("knowledge", str(place))], out, BuildOptions(writer=writer, checker=checker))


def rejected(built: Build) -> list[str]:
    return [json.loads(line)["reason"] for line in (built.path / "skipped.jsonl").open(encoding="utf-8")]


def test_edits_become_examples_with_four_options(tmp_path: Path) -> None:
    place = source(tmp_path / "src", [tower("Big Tower"), tower("Old Gate"), tower("Red House")])
    built = construct(place, tmp_path / "out", writer := Writer(edited))
    rows = list(built.rows())
    assert [row["instance"] for row in rows] == ["Big Tower", "Old Gate", "Red House"]
    assert rows[0]["wrong"] == [
        "This is the Other 1. Other 1 is a landmark.",
        "This is the Other 2. Other 2 is a landmark.",
    ]
    assert rows[0]["right"] == "This is the Big Tower. Big Tower is a landmark."
    for row in rows:
        options = read_options(row["mcq_query"])
        assert options[row["own_letter"]] == row["instance"]
        assert [options[letter] for letter in row["counter_letters"]] == ["Other 1", "Other 2"]
        assert row["distractor"] in {"Big Tower", "Old Gate", "Red House"} - {row["instance"]}
    assert len(writer.asked) == 3
    assert built.manifest["models"] == {"writer": "scripted"}
    assert construct(place, tmp_path / "again", Writer(edited)).digest == built.digest


def test_each_fact_of_a_person_is_edited_alone(tmp_path: Path) -> None:
    others = [
        {
            **person("Ann"),
            "knowledge": "The person in the image is Ann. Ann was born in 1950. Ann is a Finn. and Ann is a poet.",
        }
    ]
    others[0]["answers"] = {"temporal": "1950", "location": "Finn", "Career": "poet"}

    def says(prompt: str, seed: int) -> str:
        if "Ann" not in prompt:
            return edited(prompt)
        text = re.findall(r"^Input: (.*)$", prompt, re.MULTILINE)[-1]
        word = "1950" if "temporal" in prompt else "Finn" if "nationality" in prompt else "poet"
        new = ("1951", "1952") if word == "1950" else ("Dane", "Swede") if word == "Finn" else ("judge", "baker")
        return f"1. {text.replace(word, new[0])}\n2. {text.replace(word, new[1])}"

    built = construct(source(tmp_path / "src", [person(), *others]), tmp_path / "out", Writer(says))
    rows = {(row["instance"], row["kind"]): row for row in built.rows()}
    assert {kind for _, kind in rows} == {"PT", "PL", "PC"}
    assert rows["Musk", "PT"]["counter_answers"] == ["1972", "1973"]
    assert rows["Musk", "PL"]["counter_answers"] == ["Canadian", "Briton"]
    assert rows["Musk", "PL"]["sentences"] == ["Musk is a Canadian", "Musk is an American"]
    assert rows["Musk", "PL"]["distractor"] == "Finn"
    assert rows["Musk", "PC"]["open_query"] == "What is the occupation of the person in the picture?"
    for row in rows.values():
        for text, answer in zip(row["wrong"], row["counter_answers"], strict=True):
            assert answer in text


@pytest.mark.parametrize(
    ("reply", "check"),
    [
        ("Here you are.", "unparsed"),
        ("1. only one", "unparsed"),
        (f"1. {MUSK}\n2. {MUSK}\n3. {MUSK}", "unparsed"),
        (f"1. {MUSK}\n2. {MUSK.replace('1971', '1972')}", "one-sentence"),
        (
            "1. " + MUSK.replace("1971", "1972").replace("American", "Finn") + "\n2. " + MUSK.replace("1971", "1973"),
            "one-sentence",
        ),
        ("1. Musk was born in 1972.\n2. Musk was born in 1973.", "one-sentence"),
        ("1. " + MUSK.replace("businessman", "chef") + "\n2. " + MUSK.replace("1971", "1973"), "answer-not-there"),
        (
            "1. " + MUSK.replace("born in 1971", "made in 1972") + "\n2. " + MUSK.replace("1971", "1973"),
            "something-else",
        ),
        ("1. " + MUSK.replace("1971", "1971.0") + "\n2. " + MUSK.replace("1971", "1973"), "same-as-true"),
        ("1. " + MUSK.replace("1971", "Ohio") + "\n2. " + MUSK.replace("1971", "1973"), "no-year"),
        ("1. " + MUSK.replace("1971", "1972") + "\n2. " + MUSK.replace("1971", "1972"), "same-answers"),
        ("1. " + MUSK.replace("1971", "May 1972") + "\n2. " + MUSK.replace("1971", "1972"), "same-answers"),
        ("1. " + MUSK.replace("1971", "June 1971") + "\n2. " + MUSK.replace("1971", "1972"), "same-as-true"),
    ],
)
def test_wrong_edits_are_rejected_by_name(reply: str, check: str) -> None:
    with pytest.raises(RejectedEdit) as message:
        read_edits(reply, "PT", MUSK, "1971")
    assert message.value.check == check


def test_only_the_name_is_altered_everywhere_it_occurs() -> None:
    text = "The building is the White House. The White House is big."
    right = text.replace("White House", "Forbidden City")
    assert counter_answer(right, "ER", text, "White House") == "Forbidden City"
    # The paper's own second example rewords the last sentence.
    for edit in (text.replace("White House", "Gate", 1), right.replace("is big", "is bigger"), text):
        with pytest.raises(RejectedEdit):
            counter_answer(edit, "ER", text, "White House")


@given(
    st.text(max_size=200)
    | st.builds(
        "1. {}\n2. {}".format,
        *[
            st.sampled_from(
                [MUSK, *(MUSK.replace("1971", year) for year in ("1972", "1973", "x 1980", "1971 1972", ""))]
            )
        ]
        * 2,
    )
)
def test_any_reply_is_parsed_or_rejected(reply: str) -> None:
    try:
        outcome = read_edits(reply, "PT", MUSK, "1971")
    except RejectedEdit:
        return
    assert all(answer in text for answer, text in zip(outcome.answers, outcome.texts, strict=True))


def test_rejected_reply_is_retried_and_then_recorded(tmp_path: Path) -> None:
    place = source(tmp_path / "src", [tower("Big Tower"), tower("Old Gate"), tower("Red House")])

    def says(prompt: str, seed: int) -> str | None:
        if "Old Gate" in prompt:
            return "I cannot do that."
        return edited(prompt) if seed or "Red House" not in prompt else "hm"

    built = construct(place, tmp_path / "out", writer := Writer(says))
    assert [row["instance"] for row in built.rows()] == ["Big Tower", "Red House"]
    assert rejected(built) == ['unparsed: the reply is not two numbered texts; reply: "I cannot do that."']
    assert Counter(request.decoding.seed for request in writer.asked) == {0: 3, 1: 2, 2: 1}
    assert {request.decoding.temperature for request in writer.asked if request.decoding.seed} == {0.7}
    assert built.manifest["skipped"] == {"unparsed": 1}


def test_a_checker_rejects_answers_of_another_kind(tmp_path: Path) -> None:
    place = source(tmp_path / "src", [tower("Big Tower"), tower("Old Gate"), tower("Red House")])
    checker = Writer(lambda prompt, seed: "No." if "Old Gate" in prompt and "Other 2" in prompt else "yes")
    built = construct(place, tmp_path / "out", Writer(edited), checker)
    assert [row["instance"] for row in built.rows()] == ["Big Tower", "Red House"]
    assert rejected(built)[0].startswith("checked: the checker finds")
    assert len(checker.asked) == 6
    assert built.manifest["models"] == {"writer": "scripted", "checker": "scripted"}


def test_user_errors_are_reported(tmp_path: Path) -> None:
    place = source(tmp_path / "src", [tower("Big Tower")])
    with pytest.raises(SpecError, match="--writer MODEL"):
        construct(place, tmp_path / "out", None)
    with pytest.raises(SourceError, match=r"knowledge\.jsonl"):
        construct(tmp_path / "nothing", tmp_path / "out", Writer(edited))
    with pytest.raises(SourceError, match="no other row has an answer"):
        construct(place, tmp_path / "out", Writer(edited))
    many = source(tmp_path / "many", [tower(f"Tower {n}") for n in range(9)])
    with pytest.raises(ModelError, match="answered none of 9 requests"):
        construct(many, tmp_path / "out", Writer(lambda prompt, seed: None))
    bad = [
        {"instance": "x"},
        {**tower("A Gate"), "answer": "Nothing"},
        {**person(), "answers": {"height": "1"}},
        tower("B"),
    ]
    built = construct(source(tmp_path / "bad", [*bad, tower("Red House")]), tmp_path / "out", Writer(edited))
    assert sorted(built.manifest["skipped"]) == [
        "the answers are not of temporal, location, career, time, creator, content",
        'the row has neither "answers" to facts nor a "kind", ER or VS',
        "the text does not have the answer",
    ]


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not beside the project")
@pytest.mark.parametrize("kind", ["ER", "PT", "PL", "PC"])
def test_prompts_match_the_paper_word_for_word(kind: str) -> None:
    def words(text: str) -> str:
        return " ".join(re.sub(r"\*\*|---", " ", text).split())

    printed = words(PAPER.read_text("utf-8")).replace("Rule1:", "Rule1: ").replace("  ", " ")
    assert words(WRITER_PROMPTS[kind]) in printed
