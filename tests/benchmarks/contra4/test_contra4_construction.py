"""Contra4's construction: filters worked out by hand, every model asked once for every permutation, killed and resumed."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.contra4.construction.contra4_construction_prompts import (
    answer_prompt,
    choice_prompt,
    excluded_term,
    parse_question,
    question_prompt,
)
from benchmarks.contra4.construction.question_categories import category_prompt, group_topic, parse_topic
from benchmarks.contra4.construction.round_trip_filters import Votes, passed_filters, scene_orders
from benchmarks.contra4.construction.scene_sampling import NEAREST, NearestCaptions, WordCounts, draw_scenes
from benchmarks.contra4.contra4_constants import CATEGORIES, LETTERS, NO_CATEGORY
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene
from benchmarks.errors import ModelError, SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Modality
from tests.support.contra4_writer import longest, scenes_of, writes
from tests.support.data.contra4 import DATA, SHARED, Scripted, copy_rows, prompt, real_rows
from tests.support.text_models import CachedModel, Interrupted

CONTRA4 = get_benchmark("contra4")
# --- models that are rules -----------------------------------------------------------------------


def first(text: str) -> str:
    return "Scene A"


def build(place: Path, out: Path, source: str = "captioned", **options: Any) -> Build:
    defaults: dict[str, Any] = {
        "writer": Scripted("writer", writes),
        "checkers": (Scripted("agrees", writes),),
        "per_stratum": 4,
    }
    return CONTRA4.build([(source, str(place))], out, BuildOptions(**(defaults | options)))


def samples(result: Build) -> list[Contra4Sample]:
    return [Contra4Sample.from_row(row) for row in result.rows()]


# --- the filters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by_order", "filters"),
    [
        ([[0, 0, 0], [0, 0, 0]], "MF UF PMF PUF"),
        ([[0, 0, 0], [0, 0, 1]], "MF UF PMF"),
        ([[0, 0, 1], [0, 0, 0]], "MF PMF"),
        ([[0, 0, 1], [0, 1, 0]], "MF PMF"),
        ([[0, 0, 0], [0, 1, 1]], "MF UF"),
        ([[0, 0, 1], [1, 1, 0]], "MF"),
        ([[0, 1, 1], [0, 0, 0]], ""),
        ([[0, None, 0], [0, 0, 0]], "MF PMF"),
        ([[0, None, 1], [0, 0, 0]], ""),  # a tie is no majority
        ([[1, 1, 1], [1, 1, 1]], ""),
        ([[0, 1], [0, 0]], ""),  # nor is one of two
        ([[0], [1]], "MF UF"),
    ],
)
def test_the_filters_by_hand(by_order: list[Votes], filters: str) -> None:
    assert " ".join(passed_filters(by_order, 0)) == filters


def test_permutations_begin_with_the_identity() -> None:
    assert [len(set(scene_orders(size))) for size in (2, 3, 4)] == [2, 6, 24]
    assert scene_orders(3)[0] == (0, 1, 2)


# --- the prompts ---------------------------------------------------------------------------------


def test_prompts_match_the_paper() -> None:
    paper = SHARED / "papers" / "contra4.txt"
    if not paper.is_file():
        pytest.skip("the paper is not beside the project")
    squeezed = re.sub(r"</?s>|[\W\d_]+", "", paper.read_text("utf-8"))
    for text in (question_prompt([]), answer_prompt([], ""), choice_prompt([], ""), category_prompt("")):
        every = [re.sub(r"[\W\d_]+", "", word) for word in text.split()]
        runs = ["".join(every[i : i + 4]) for i in range(len(every) - 3)]
        broken = [run for run in runs if run not in squeezed]
        assert len(broken) <= 0.14 * len(runs), "more than the breaks of the paper's two columns"
    assert question_prompt(["x", "y"]).endswith('\n\nScene A. "x"\nScene B. "y"\nGenerated Question:')
    assert answer_prompt(["x", "y"], "Which?").endswith('\n\nScene A. "x"\nScene B. "y"\nQuestion: Which?\nAnswer:')
    assert choice_prompt(["x", "y"], "Which?").endswith(
        '\nQuestion: Which?\nChoices:\nScene A. "x"\nScene B. "y"\nAnswer:'
    )


def test_rule_filter_matches_terms_and_derivatives() -> None:
    refused = [
        "Which scene sounds calmer?",
        "Which textual scene is it?",
        "Which scene is described at night?",
        "Which is heard?",
    ]
    assert all(excluded_term(question) for question in refused)
    questions = ["Which scene has a warmer heart?", "Which scene is worth celebrating?"]
    assert [excluded_term(question) for question in questions] == [None, None]
    assert excluded_term("Which scene has more than one car?") == "more than one"


@real_rows
def test_rule_filter_rejects_seven_published_questions() -> None:
    questions = [row["question"] for name in ("test", "val") for row in json.loads((DATA / f"{name}.json").read_text())]
    # The published code's list has "more than one person", "object", "input" and "animal"; the paper's "more than one".
    assert Counter(map(excluded_term, questions)) == {None: 5328, "more than one": 7}


@pytest.mark.parametrize(
    ("reply", "topic"),
    [
        (" Activity Level\nReasoning: It moves.", "Activity Level"),
        ("Category: Sentiment Analysis Reasoning: The tone.", "Sentiment Analysis"),
        ('**Category:** "Human Presence"', "Human Presence"),
        ("", None),
        ("\n \n", None),
        ("Reasoning: none", None),
        ("x" * 81, None),
        ("a\x1b[2Jb", None),
    ],
)
def test_topic_is_read_from_the_first_line(reply: str, topic: str | None) -> None:
    assert parse_topic(reply) == topic


def test_topics_of_the_paper_are_grouped_into_published_categories() -> None:
    topics = ("Sentiment Analysis", "Activity Level", "Size Comparison", "Human Presence", "Dynamic Changes", "Zzz")
    assert [group_topic(topic) for topic in topics] == [
        *("Emotions & Sentory Experiences", "Motion & Physical Activity", "Objects, Tools & Technology"),
        *("Humans, Animals & Social Behavior", "Motion & Physical Activity", "Other"),
    ]
    # The names of the categories themselves come out as they are.
    assert [group_topic(name) for name in CATEGORIES] == list(CATEGORIES)


@real_rows
def test_keywords_agree_with_the_published_categories_above_half() -> None:
    rows = json.loads((DATA / "test.json").read_text())
    same = sum(group_topic(row["question"].replace("scene", "")) == row["category"] for row in rows)
    assert (same, len(rows)) == (1313, 2335)  # of the questions themselves, for lack of the models' topics


@real_rows
def test_accepted_questions_get_a_category_and_without_a_topic_none(tmp_path: Path) -> None:
    place = copy_rows(tmp_path / "rows", 40)
    result = build(place, tmp_path / "out")
    assert {sample.category for sample in samples(result)} == {"Time, Space & Location"}
    assert result.manifest["categories"] == {"Time, Space & Location": len(samples(result))}
    topics = {json.loads(line)["topic"] for line in (result.path / "candidates.jsonl").read_text("utf-8").splitlines()}
    assert topics == {"Time Perception", ""}  # rejected candidates are asked nothing more
    silent = Scripted("writer", lambda text: "" if text.endswith("Category:") else writes(text))
    assert {s.category for s in samples(build(place, tmp_path / "two", writer=silent))} == {NO_CATEGORY}


def test_a_question_is_one_line() -> None:
    assert parse_question("Generated Question: Which scene is calmer?\n\nScene A.") == "Which scene is calmer?"
    assert parse_question('"Which scene is calmer?"') == "Which scene is calmer?"
    assert [parse_question(text) for text in ("", "Calm.", "?", "Which " + "x" * 300 + "?", "Which\x1b[2Jscene?")] == [
        None
    ] * 5


# --- sampling ------------------------------------------------------------------------------------


def pool(count: int = 60) -> dict[Modality, list[Scene]]:
    kinds: tuple[Modality, ...] = ("audio", "image", "video")
    return {
        kind: [Scene(kind, str(i), kind, f"a {'dog' if i % 2 else 'car'} number {i}") for i in range(count)]
        for kind in kinds
    }


def test_similar_negatives_are_among_the_nearest_thirty() -> None:
    scenes = pool()
    near = NearestCaptions(scenes, WordCounts())
    dog = scenes["audio"][1]
    nearest = near.nearest(dog, "image")
    assert len(nearest) == NEAREST == 30
    assert {place % 2 for place in nearest} == {1}, "the other dogs"
    assert nearest[0] == 1, "the same caption"
    drawn = [group for group, _ in zip(draw_scenes(scenes, 3, near, 0), range(200), strict=False)]
    kinds = [{scene.caption.split()[1] for scene in group} for group in drawn]
    assert all(len(kind) == 1 for kind in kinds)
    mixed = [
        {scene.caption.split()[1] for scene in group}
        for group, _ in zip(draw_scenes(scenes, 3, None, 0), range(200), strict=False)
    ]
    assert any(len(kind) == 2 for kind in mixed)


def test_tuples_mix_modalities_without_repetition() -> None:
    scenes = pool(3)
    drawn = list(draw_scenes(scenes, 2, None, 7))
    assert len(drawn) == len({frozenset((s.source, s.name) for s in group) for group in drawn}) == 27
    assert all(len({scene.modality for scene in group}) == 2 for group in drawn)
    assert drawn == list(draw_scenes(scenes, 2, None, 7)) != list(draw_scenes(scenes, 2, None, 8))
    assert list(draw_scenes(scenes, 4, None, 0)) == []


def test_word_vectors_have_unit_length() -> None:
    vectors = WordCounts().embed(["a dog barks", "dogs barking", "a red car", ""])
    assert np.allclose(np.linalg.norm(vectors[:3], axis=1), 1)
    assert vectors[0] @ vectors[1] > 0.7 > 0.5 > vectors[0] @ vectors[2]


# --- the whole -----------------------------------------------------------------------------------


@real_rows
def test_every_model_answers_every_permutation_once(tmp_path: Path) -> None:
    writer, others = Scripted("writer", writes), [Scripted("agrees", writes), Scripted("also", writes)]
    result = build(copy_rows(tmp_path / "rows", 40), tmp_path / "out", writer=writer, checkers=tuple(others))
    assert result.manifest["models"]["round trip"] == ["writer", "agrees", "also"]
    candidates = [json.loads(line) for line in (result.path / "candidates.jsonl").read_text("utf-8").splitlines()]
    calls = sum({2: 2, 3: 6, 4: 24}[item["size"]] for item in candidates)
    for model in (writer, *others):
        chosen = [text for text in model.asked if text.startswith("Select")]
        assert len(chosen) == len(set(chosen)) == calls
    assert all(len(set(map(tuple, item["votes"]))) == 1 for item in candidates), "they all know the rule"
    assert {(len(item.scenes), item.negatives) for item in samples(result)} == {
        (size, negatives) for size in (2, 3, 4) for negatives in ("random", "similar")
    }
    (step,) = {r.decoding.temperature for r in writer.requests if prompt(r).endswith("Generated Question:")}
    assert step == 1.05
    assert {r.decoding.top_p for r in writer.requests} == {0.9}


@real_rows
def test_position_bias_passes_only_unpermuted_filters(tmp_path: Path) -> None:
    checkers = (Scripted("biased", first), Scripted("agrees", writes))
    place = copy_rows(tmp_path / "rows", 40)
    with pytest.raises(SourceError):
        build(place, tmp_path / "out", checkers=checkers)
    result = build(
        place, tmp_path / "two", per_stratum=2, checkers=(Scripted("agrees", writes), Scripted("also", writes))
    )
    table = {row["Filter"]: row for row in csv.DictReader((result.path / "table-5.csv").open())}
    assert len({row["Aggregated / All"] for row in table.values()}) == 1
    assert table["PUF"]["Human Acc."] == "n/a"


@real_rows
def test_correct_scene_is_balanced_over_positions(tmp_path: Path) -> None:
    drawn = samples(build(copy_rows(tmp_path / "rows", 60), tmp_path / "out", per_stratum=12))
    counted = Counter((len(sample.scenes), sample.negatives, sample.answer) for sample in drawn)
    assert {counted[size, "random", place] for size in (2, 3, 4) for place in range(size)} == {6, 4, 3}
    for sample in drawn:
        assert LETTERS[sample.answer] == longest([scene.caption for scene in sample.scenes]) == sample.gold
        assert sample.filters == ("MF", "UF", "PMF", "PUF")


def right_modalities(result: Build) -> dict[tuple[str, str], Counter[str]]:
    """Count the modality of the right scene by combination and negatives."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for sample in samples(result):
        right = sample.scenes[sample.answer].modality
        counts.setdefault((sample.modalities, sample.negatives), Counter())[right] += 1
    return counts


@real_rows
def test_each_modality_is_right_equally_often_but_not_in_the_paper_s_construction(tmp_path: Path) -> None:
    place = copy_rows(tmp_path / "rows", 60)
    ours = build(place, tmp_path / "ours", per_stratum=25)
    for (combination, _), counts in right_modalities(ours).items():
        assert len(counts) == combination.count("+") + 1
        assert len(set(counts.values())) == 1
    assert Counter((len(s.scenes), s.negatives) for s in samples(ours)) == {
        (size, negatives): -(-25 // size) * size for size in (2, 3, 4) for negatives in ("random", "similar")
    }
    paper = build(place, tmp_path / "paper", "captioned-paper", per_stratum=25)
    assert any(len(set(counts.values())) > 1 for counts in right_modalities(paper).values())
    with pytest.raises(SpecError):
        CONTRA4.build([("captioned", str(place)), ("captioned-paper", str(place))], tmp_path / "two", BuildOptions())


@real_rows
def test_combination_with_a_modality_that_is_never_right_is_left_out_with_its_reason(tmp_path: Path) -> None:
    place = copy_rows(tmp_path / "rows", 60)
    rows = json.loads((place / "test.json").read_text())
    clouds = {
        " ".join(example["caption"].split())
        for row in rows
        for example, modality in zip(row["examples"], row["modalities"], strict=True)
        if modality == "pc"
    }

    def never_3d(text: str) -> str:
        if text.endswith(("Category:", "Question:")):
            return writes(text)
        return f"Scene {longest(['' if caption in clouds else caption for caption in scenes_of(text)])}"

    models: dict[str, Any] = {"writer": Scripted("writer", never_3d), "checkers": (Scripted("agrees", never_3d),)}
    result = build(place, tmp_path / "out", per_stratum=2, **models)
    assert {"audio+image", "audio+video", "image+video"} >= {
        sample.modalities for sample in samples(result) if len(sample.scenes) == 2
    }
    assert not any("3d" in sample.modalities for sample in samples(result))
    reasons = Counter(json.loads(line)["reason"] for line in (result.path / "skipped.jsonl").read_text().splitlines())
    assert reasons["balance: with audio+3d+image+video, the right scene is never 3D"]
    assert build(place, tmp_path / "paper", "captioned-paper", per_stratum=2, **models).manifest["kinds"]["4-random"]


class Rules(CachedModel):
    """A rule behind a cache of replies, and a plug to pull."""

    def __init__(self, name: str, replies: dict[str, Generation], most: int | None = None) -> None:
        super().__init__(
            lambda request: Generation(request.id, writes(prompt(request)), "stop"), replies=replies, most=most
        )
        self.name = name


@real_rows
def test_killed_build_resumes_without_repeated_requests(tmp_path: Path) -> None:
    place = copy_rows(tmp_path / "rows", 30)
    replies: list[dict[str, Generation]] = [{}, {}]
    count = 0
    for most in (25, 40, 60, None):
        models = [Rules("writer", replies[0], most), Rules("checker", replies[1], most)]
        if most is None:
            result = build(place, tmp_path / "out", writer=models[0], checkers=(models[1],))
        else:
            with pytest.raises(Interrupted):
                build(place, tmp_path / "out", writer=models[0], checkers=(models[1],))
            assert not (tmp_path / "out").exists()
        count += sum(len(model.asked) for model in models)
    assert count == len(replies[0]) + len(replies[1])
    undisturbed = build(
        place, tmp_path / "again", writer=Scripted("writer", writes), checkers=(Scripted("checker", writes),)
    )
    assert undisturbed.digest == result.digest


@real_rows
def test_failed_replies_are_reported(tmp_path: Path) -> None:
    place = copy_rows(tmp_path / "rows", 30)

    def sometimes(text: str) -> str | None:
        return None if text.startswith("Select") and len(scenes_of(text)[0]) % 5 == 0 else writes(text)

    result = build(place, tmp_path / "out", checkers=(Scripted("breaks", sometimes),))
    reasons = Counter(json.loads(line)["reason"] for line in (result.path / "skipped.jsonl").read_text().splitlines())
    assert reasons["error: breaks gave no choice (it broke)"]
    with pytest.raises(ModelError, match=r"mute answered none of \d+ requests \(it broke\)"):
        build(place, tmp_path / "mute", checkers=(Scripted("mute", lambda _: None),))
    with pytest.raises(SpecError, match="add --writer MODEL and --checker MODEL"):
        build(place, tmp_path / "none", writer=None)
    with pytest.raises(SpecError, match="writer is named twice"):
        build(place, tmp_path / "twice", checkers=(Scripted("writer", writes),))


@real_rows
def test_tables_use_the_labels_of_the_filled_in_sheet(tmp_path: Path) -> None:
    place = copy_rows(tmp_path / "rows", 40)
    out = build(place, tmp_path / "out", "captioned-paper").path
    rows = list(csv.DictReader((out / "checks.csv").open(newline="")))
    answers: Mapping[str, str] = {
        candidate["id"]: candidate["answer"]
        for candidate in map(json.loads, (out / "candidates.jsonl").read_text().splitlines())
    }
    assert "answer" not in rows[0]
    labels = ["right", "right", "none", "AB"]
    for number, row in enumerate(rows):
        what = labels[number % 4]
        row["choice"] = answers[row["id"]].lower() if what == "right" else what
    filled = tmp_path / "filled.csv"
    with filled.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)

    def again(sheet: Path, name: str) -> Path:
        options = BuildOptions(writer=Scripted("writer", writes), checkers=(Scripted("agrees", writes),), per_stratum=4)
        sources = [("captioned-paper", str(place)), ("checks", str(sheet))]
        return CONTRA4.build(sources, tmp_path / name, options).path

    result = again(filled, "checked")
    n = len(rows)
    right = sum(number % 4 < 2 for number in range(n))
    (none,) = [row for row in csv.DictReader((result / "table-1.csv").open()) if row["Filter"] == "None"]
    assert none["Human Acc."] == f"{right / n:.4f}"
    assert float(none["Human Acc. low"]) < right / n < float(none["Human Acc. high"])
    assert none["N/A"] == f"{sum(number % 4 == 2 for number in range(n)) / n:.4f}"
    (puf,) = [row for row in csv.DictReader((result / "table-5.csv").open()) if row["Filter"] == "PUF"]
    assert puf["Recall"] == "1.0000"
    assert puf["O/A"] == f"{sum(number % 4 == 3 for number in range(n)) / (n - right):.4f}"
    assert (result / "table-7.csv").is_file()
    filled.write_text(filled.read_text().replace("none", "perhaps"))
    with pytest.raises(SourceError, match=r"line 4: the choice 'perhaps' is neither letters of its scenes nor 'none'"):
        again(filled, "bad")


def test_folder_without_captioned_media_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "captions.jsonl").write_text(
        json.dumps({"source": "clotho", "id": "a.wav", "modality": "audio", "caption": "Rain"}) + "\n{}\n"
    )
    with pytest.raises(SourceError, match="captioned media of 1 modalities; a question needs two"):
        build(tmp_path / "rows", tmp_path / "out")
