"""The collection of true knowledge: entities, texts of at least 30 words, summaries, questions, facts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import ModelError, SourceError, SpecError
from benchmarks.mmkc_bench.construction.knowledge_collection import (
    MIN_WORDS,
    UnusableReply,
    _Entity,
    _question,
    _summary,
)
from benchmarks.mmkc_bench.construction.mmkc_construction_prompts import WRITER_PROMPTS
from benchmarks.registry import get_benchmark
from benchmarks.rows.files import RawRow
from tests.benchmarks.mmkc_bench.test_mmkc_construction import Writer
from tests.support.data.mmkc_bench import PAPER
from tests.support.data.small import write_lines, write_picture

MMKC = get_benchmark("mmkc-bench")
FILLER = (
    "It stands in a large park near the river and many people from all over the world visit it on every day of the year"
)
FACTS = {
    "Ada Byron": {"temporal": "1815", "location": "British", "Career": "mathematician"},
    "Bo Dahl": {"temporal": "1902", "location": "Danish", "Career": "writer"},
    "Zip Cola": {"time": "1886", "creator": "John Smith", "content": "soft drink"},
    "Tock": {"time": "1951", "creator": "Mary Jones", "content": "wristwatch"},
}
TEXTS = {name: f"{name}: {', '.join(facts.values())}. {FILLER}." for name, facts in FACTS.items()}


def text_about(name: str) -> str:
    return f"{name} is a famous building that was opened in 1902. {FILLER}."


def write_source(
    folder: Path, entities: list[Any], extracts: list[Any], images: dict[str, int], **files: list[Any]
) -> Path:
    folder.mkdir(parents=True)
    if entities:
        write_lines(folder / "entities.jsonl", entities)
    write_lines(folder / "extracts.jsonl", extracts)
    for name, rows in files.items():
        write_lines(folder / f"{name}.jsonl", rows)
    for name, count in images.items():
        for n in range(1, count + 1):
            write_picture(folder / "images" / name / f"{n}.png", n)
    return folder


TASKS = {
    "temporal": "temporal knowledge",
    "time": "temporal knowledge",
    "location": "nationality",
    "Career": "occupation",
    "creator": "brand creator",
    "content": "brand product",
}


def says(prompt: str, seed: int = 0) -> str:
    """The replies of a diligent writer to all prompts of the collection and of the editing."""
    if prompt.startswith("List the"):
        return "1. Big Tower\n2. Old Gate\n- Nowhere\n"
    if "knowledge summarizer" in prompt:
        name = re.findall(r"knowledge about (.*?) carefully", prompt)[0]
        return f"{name} is a famous building that was opened in 1902. {name} stands in a park."
    if "question generator" in prompt:
        return "What is the building in the image?"
    known = next((facts for name, facts in FACTS.items() if name in prompt), {})
    if "find these facts" in prompt:
        return json.dumps(known)
    text = re.findall(r"^Input: (.*)$", prompt, re.MULTILINE)[-1]
    edits = {
        "temporal knowledge": ("1700", "1701"),
        "nationality": ("Swiss", "French"),
        "occupation": ("singer", "chef"),
        "brand creator": ("Jack", "Tom"),
        "brand product": ("hat", "hammer"),
    }
    own = next((fact for name, fact in known.items() if TASKS[name] in prompt.partition("You must")[0]), "")
    for task, others in edits.items():
        if task in prompt:
            return "".join(f"{n}. {text.replace(own, other)}\n" for n, other in enumerate(others, 1))
    name = re.findall(r"This is an image of (.*?)\.", text)[0]
    return "".join(f"{n}. {text.replace(name, f'Other {n}')}\n" for n in (1, 2))


def collect(
    folder: Path, out: Path, writer: Callable[[str, int], str | None] = says, **options: Any
) -> tuple[Build, Writer]:
    model = Writer(writer)
    return MMKC.build([("entities", str(folder))], out, BuildOptions(writer=model, **options)), model


def reasons(built: Build) -> dict[str, str]:
    lines = (built.path / "skipped.jsonl").read_text("utf-8").splitlines()
    return {row["row"]: row["reason"] for row in map(json.loads, lines)}


def buildings(*names: str) -> list[dict[str, Any]]:
    return [{"instance": name, "type": "building"} for name in names]


def extracts(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"title": name, "extract": text_about(name), **more} for name in names]


def test_entities_become_examples_with_summaries_and_questions(tmp_path: Path) -> None:
    names = ("Big Tower", "Old Gate")
    place = write_source(tmp_path / "in", buildings(*names), extracts(*names), dict.fromkeys(names, 3))
    built, model = collect(place, tmp_path / "out")
    rows = {row["instance"]: row for row in built.rows()}
    assert set(rows) == set(names)
    assert rows["Big Tower"]["right"] == (
        "This is an image of Big Tower. Big Tower is a famous building that was opened in 1902. Big Tower stands in a park."
    )
    assert rows["Big Tower"]["open_query"] == "What is the building in the image?"
    assert "Other 1 is a famous building" in rows["Big Tower"]["wrong"][0]
    assert built.manifest["media"] == 3
    collected = [json.loads(line) for line in (built.path / "knowledge.jsonl").read_text("utf-8").splitlines()]
    (place / "knowledge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in collected))
    reviewed = MMKC.build([("knowledge", str(place))], tmp_path / "reviewed", BuildOptions(writer=Writer(says)))
    assert [row["id"] for row in reviewed.rows()] == [row["id"] for row in built.rows()]
    assert collect(place, tmp_path / "again")[0].digest == built.digest
    assert len(model.asked) == 6  # a summary, a question and an edit for each


def test_people_and_logos_get_the_standardised_texts_and_figure_21s_questions(tmp_path: Path) -> None:
    rows = [
        {"instance": "Ada Byron", "type": "person", "theme": "people"},
        {
            "instance": "Bo Dahl",
            "type": "person",
            "theme": "people",
            "text": TEXTS["Bo Dahl"],
            "facts": FACTS["Bo Dahl"],
        },
        {"instance": "Zip Cola", "type": "brand", "theme": "logo"},
        {"instance": "Tock", "type": "brand", "theme": "logo"},
    ]
    texts = [{"title": name.upper(), "extract": TEXTS[name]} for name in ("Ada Byron", "Zip Cola", "Tock")]
    place = write_source(tmp_path / "in", rows, texts, dict.fromkeys(FACTS, 3))
    result, model = collect(place, tmp_path / "out")
    assert Counter(row["kind"] for row in result.rows()) == dict.fromkeys(("PT", "PL", "PC", "LT", "LC", "LO"), 2)
    with (result.path / "knowledge.jsonl").open(encoding="utf-8") as lines:
        knowledge = {row["instance"]: row["knowledge"] for row in map(json.loads, lines)}
    assert knowledge["Ada Byron"] == "Ada Byron was born in 1815. Ada Byron is a British. Ada Byron is a mathematician."
    assert knowledge["Zip Cola"] == (
        "Zip Cola was created in 1886, and created by John Smith. Zip Cola is the brand of soft drink."
    )
    assert {row["open_query"] for row in result.rows()} >= {
        "When was the brand associated with the logo established?",
        "Who founded the brand associated with this logo?",
        "What are the main products of the brand associated with this logo?",
    }
    asked = [str(request) for request in model.asked if "find these facts" in str(request)]
    assert len(asked) == 3, "given facts are not asked for"


def test_facts_that_the_text_does_not_have_are_refused(tmp_path: Path) -> None:
    names = ("Ada Byron", "Bo Dahl")
    rows = [{"instance": name, "type": "person", "theme": "people", "text": TEXTS[name]} for name in names]
    place = write_source(tmp_path / "in", [*rows, *buildings("A B", "C D")], extracts("A B", "C D"), dict.fromkeys((*names, "A B", "C D"), 3))  # fmt: skip  # noqa: E501

    def lies(prompt: str, seed: int) -> str:
        return says(prompt, seed).replace("1815", "1999") if "find these facts" in prompt else says(prompt, seed)

    built, _ = collect(place, tmp_path / "out", lies)
    assert "facts: the text does not have the temporal" in reasons(built).values()


def test_what_is_left_out_has_its_step(tmp_path: Path) -> None:
    names = ("Big Tower", "Old Gate")
    other = buildings("Short", "No Text", "No Pictures", "Two Pictures", "Big Tower", "..", "../Big Tower")
    rows = [
        *buildings(*names),
        *other,
        {"instance": "x"},
        {"type": "building"},
        {**buildings("Y")[0], "theme": "stars"},
    ]
    short = {"title": "Short", "extract": " ".join(["word"] * (MIN_WORDS - 1))}
    texts = [*extracts(*names, "No Pictures", "Two Pictures", "..", "../Big Tower"), short, {"title": "no extract"}]
    place = write_source(tmp_path / "in", rows, texts, {**dict.fromkeys((*names, "Short"), 3), "Two Pictures": 2})
    built, _ = collect(place, tmp_path / "out")
    assert {row["instance"] for row in built.rows()} == set(names)
    counts = Counter(reason.partition(":")[0] for reason in reasons(built).values())
    assert counts == {
        "short": 1,
        "no text": 1,
        "images": 4,
        "repeated": 1,
        "the row has no type": 1,
        "the row has no instance, a name on one line": 1,
        "the theme is not one of people, logo": 1,
        "the row has no title or no extract": 1,
    }


def test_model_lists_entities_and_the_most_viewed_are_taken(tmp_path: Path) -> None:
    names = ("Big Tower", "Old Gate", "Red House")
    texts = [{**extract, "views": views} for extract, views in zip(extracts(*names), (5, 900, 70), strict=True)]
    types = [{"type": "building", "count": 3}, {"type": "building", "count": 0}, {"count": 2}]
    place = write_source(tmp_path / "in", buildings("Red House"), texts, dict.fromkeys(names, 3), types=types)
    built, _ = collect(place, tmp_path / "out", per_stratum=2)
    assert {row["instance"] for row in built.rows()} == {"Old Gate", "Red House"}
    left_out = " ".join(f"{row}: {reason}" for row, reason in reasons(built).items())
    assert "Big Tower): enough" in left_out
    assert "Nowhere): no text" in left_out
    assert left_out.count("no count of 1 to") == 2


@pytest.mark.parametrize(
    ("step", "reply", "reason"),
    [
        ("summarizer", "Big Tower was opened in 1999, they say.", "summary: it has a number"),
        ("summarizer", "It is a famous building in a park.", "summary: it does not name the entity"),
        ("summarizer", "Big Tower.", "summary: it does not have"),
        ("question generator", "What is Big Tower?", "question: it gives the answer away"),
        ("question generator", "Name the building.", "question: the reply is no question"),
        ("question generator", "", "question: the reply is no question"),
    ],
)
def test_unusable_replies_are_requested_again_and_then_recorded(
    tmp_path: Path, step: str, reply: str, reason: str
) -> None:
    names = ("Big Tower", "Old Gate", "Red House")
    place = write_source(tmp_path / "in", buildings(*names), extracts(*names), dict.fromkeys(names, 3))

    def lies(prompt: str, seed: int) -> str:
        return reply if step in prompt and "Big Tower" in prompt else says(prompt, seed)

    built, model = collect(place, tmp_path / "out", lies)
    assert {row["instance"] for row in built.rows()} == {"Old Gate", "Red House"}
    assert any(text.startswith(reason) for text in reasons(built).values())
    repeated = [r.decoding.temperature for r in model.asked if step in str(r) and "Big Tower" in str(r)]
    assert repeated == [0.0, 0.7, 0.7]


def test_user_errors_are_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no folder"):
        collect(tmp_path / "nowhere", tmp_path / "out")
    empty = write_source(tmp_path / "empty", [], [], {})
    with pytest.raises(SourceError, match=r"entities\.jsonl"):
        collect(empty, tmp_path / "out")
    names = [f"House {n}" for n in range(9)]
    place = write_source(tmp_path / "in", buildings(*names), extracts(*names), dict.fromkeys(names, 3))
    with pytest.raises(SpecError, match="--writer MODEL"):
        MMKC.build([("entities", str(place))], tmp_path / "out", BuildOptions())
    with pytest.raises(ModelError, match="answered none of 9 requests"):
        collect(place, tmp_path / "out", lambda prompt, seed: None)
    assert not (tmp_path / "out").exists()


@given(st.text(max_size=200))
def test_any_reply_is_parsed_or_unusable(reply: str) -> None:
    entity = _Entity(RawRow("1", {}), "Big Tower", "building", "", text_about("Big Tower"), ())
    for parse in (_summary, _question):
        try:
            text = parse(reply, entity)
        except UnusableReply:
            continue
        assert len(text.splitlines()) == 1


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's text is not beside the project")
@pytest.mark.parametrize("kind", ["LT", "LC", "LO"])
def test_logo_prompts_have_figure_21s_texts(kind: str) -> None:
    printed = " ".join(PAPER.read_text("utf-8").split())
    example = WRITER_PROMPTS[kind].partition("Input: ")[2]
    texts = [line.removeprefix("1. ").removeprefix("2. ") for line in example.splitlines() if "Coca-Cola" in line]
    assert len(texts) == 3
    assert all(text in printed for text in texts)
