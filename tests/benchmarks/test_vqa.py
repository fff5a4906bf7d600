"""OK-VQA and GQA: published layouts in, the published scoring, and CLASH's Table 15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media, Text
from benchmarks.vqa.vqa_score import gqa_equal, normalise_answer, strip_punctuation, vqa_accuracy, vqa_label
from benchmarks.vqa.vqa_sources import GQA_QUESTIONS, OKVQA_ANNOTATIONS, OKVQA_QUESTIONS
from tests.support.command import Rashomon
from tests.support.data.small import bomb, picture, write_picture


def small_okvqa(folder: Path, images: int = 3) -> Path:
    """Two questions an image: 8 of ten people say "surfboard", 2 say "board"; or all say "2"."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, annotations = [], []
    for number in range(1, images + 1):
        name = f"COCO_val2014_{number:012d}.jpg" if number % 2 else f"{number:012d}.jpg"
        write_picture(folder / "val2014" / name, number, "JPEG")
        for i, answers in enumerate((["surfboard"] * 8 + ["board"] * 2, ["2"] * 10)):
            key = 10 * number + i
            questions.append({"image_id": number, "question": f"What is it, {number}?", "question_id": key})
            annotations.append(
                {
                    "image_id": number,
                    "question_id": key,
                    "question_type": "one" if i else "other",
                    "answers": [{"answer": a, "answer_id": n} for n, a in enumerate(answers, 1)],
                }
            )
    (folder / OKVQA_QUESTIONS).write_text(json.dumps({"questions": questions}))
    types = {"one": "Vehicles and Transportation", "other": "Other"}
    (folder / OKVQA_ANNOTATIONS).write_text(json.dumps({"annotations": annotations, "question_types": types}))
    return folder


def small_gqa(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for number in range(1, 4):
        write_picture(folder / "images" / f"n{number}.jpg", number, "JPEG")
        rows[f"20{number}"] = {
            "imageId": f"n{number}",
            "question": f"Is object {number} red?",
            "answer": "yes",
            "types": {"structural": "verify"},
        }
        rows[f"30{number}"] = {"imageId": f"n{number}", "question": "What is it?", "answer": f"thing {number}"}
    (folder / GQA_QUESTIONS[0]).write_text(json.dumps(rows))
    return folder


def build(name: str, folder: Path, out: Path) -> Build:
    return get_benchmark(name).build([(name, str(folder))], out, BuildOptions())


def skipped(result: Build) -> list[str]:
    return [json.loads(line)["reason"] for line in (result.path / "skipped.jsonl").read_text("utf-8").splitlines()]


# --- scoring -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "score", "label"),
    [
        (0, 0.0, "WRONG"),
        (1, 0.3, "BARELY"),
        (2, 0.6, "PARTLY"),
        (3, 0.9, "NEARLY"),
        (4, 1.0, "CORRECT"),
        (10, 1.0, "CORRECT"),
    ],
)
def test_vqa_accuracy_leaves_one_person_out(n: int, score: float, label: str) -> None:
    answers = ["dog"] * n + [f"other {i}" for i in range(10 - n)]
    assert vqa_accuracy("Dog.", answers) == pytest.approx(score)
    assert vqa_label("the dog", answers)[0] == label


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("A dog.", "dog"),
        ("two dogs", "2 dogs"),
        ("None", "0"),
        ("dont know", "don't know"),
        ("1,000", "1000"),
        ("3.5", "3.5"),
        ("black/white", "black white"),
        ("red, white", "red white"),
        ("  T-shirt\n", "t shirt"),
        ("the", ""),
        ("were", "were"),
    ],
)
def test_answers_are_processed_as_in_the_published_evaluation(text: str, normal: str) -> None:
    assert normalise_answer(text) == normal


@pytest.mark.parametrize(
    ("answer", "people", "score"),
    [
        ("two", ["two"] * 4 + ["2"] * 2 + ["three"] * 4, 1.0),
        ("2", ["two"] * 2 + ["three"] * 8, 0.6),
        ("ocean", ["the ocean"] * 2 + ["ocean"] + ["sea"] * 7, 0.9),
        ("The ocean.", ["ocean"] * 10, 1.0),
        ("dont know", ["don't know"] * 10, 1.0),
        ("t-shirt", ["t shirt"] + ["shirt"] * 9, 0.3),
        ("black, white", ["black and white"] * 10, 0.0),
        ("Yes.", ["Yes."] * 10, 1.0),
        ("it is a dog", ["dog"] * 10, 0.0),
    ],
)
def test_peoples_answers_are_processed_as_the_answer_is(answer: str, people: list[str], score: float) -> None:
    """By hand, as in newer versions of VQA's evaluation and in lmms-eval; older ones left "two" and "the ocean" as they are."""
    assert vqa_accuracy(answer, people) == pytest.approx(score)


def test_gqa_takes_the_whole_answer() -> None:
    assert gqa_equal("Yes.", "yes")
    assert gqa_equal(" Left ", "left")
    assert not gqa_equal("Yes, it is red.", "yes")
    assert not gqa_equal("", "yes")


@given(st.text(max_size=60), st.lists(st.text(max_size=10), max_size=10))
def test_scores_are_between_0_and_1_for_any_text(answer: str, answers: list[str]) -> None:
    assert 0 <= vqa_accuracy(answer, answers) <= 1
    assert strip_punctuation(strip_punctuation(answer)) is not None
    gqa_equal(answer, "".join(answers))


# --- builds --------------------------------------------------------------------------------------


def test_published_layouts_become_instances(tmp_path: Path) -> None:
    okvqa = build("okvqa", small_okvqa(tmp_path / "okvqa"), tmp_path / "a")
    instances = list(get_benchmark("okvqa").instances(okvqa, "short"))
    assert (len(instances), len({i.group for i in instances}), okvqa.manifest["media"]) == (6, 3, 3)
    media, text = instances[0].parts
    assert isinstance(media, Media)
    assert okvqa.media_path(media).is_file()
    assert text == Text("What is it, 1?\nAnswer the question using a single word or phrase.")
    assert next(get_benchmark("okvqa").instances(okvqa, "plain")).parts[1] == Text("What is it, 1?")
    assert instances[0].strata == {"type": "Other"}
    assert instances[1].strata == {"type": "Vehicles and Transportation"}
    gqa = build("gqa", small_gqa(tmp_path / "gqa"), tmp_path / "b")
    assert gqa.manifest["types"] == {"other": 3, "verify": 3}
    assert {i.references["answer"] for i in get_benchmark("gqa").instances(gqa, "short")} >= {("yes",), ("thing 2",)}
    assert build("gqa", tmp_path / "gqa", tmp_path / "c").digest == gqa.digest


def okvqa_copy(folder: Path, images: int = 3) -> Path:
    """Two files as in lmms-lab/OK-VQA: two questions about each of some images, without their ids."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for part in range(2):
        rows = [
            {
                "question_id": f"{number}{part}",
                "image": {"bytes": picture(number, "JPEG"), "path": None},
                "question": f"What is it, {number}, {part}?",
                "answers": ["surfboard"] * 8 + ["board"] * 2,
                "question_type": "one",
                "answer_type": "other",
            }
            for number in range(1, images + 1)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"data/val2014-0000{part}-of-00002.parquet")
    return folder


def gqa_copy(folder: Path) -> Path:
    """Questions and images in files of their own, as in lmms-lab/GQA; the rows are those of :func:`small_gqa`."""
    rows = json.loads((small_gqa(folder / "own") / GQA_QUESTIONS[0]).read_text())
    questions = [{"types": {"structural": None}, **row, "id": key, "fullAnswer": "..."} for key, row in rows.items()]
    images = [{"id": f"n{n}", "image": {"bytes": picture(n, "JPEG"), "path": f"n{n}.jpg"}} for n in range(3, 0, -1)]
    for name, content in (("instructions", questions), ("images", images)):
        file = folder / f"testdev_balanced_{name}" / "testdev-00000-of-00001.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(content), file)
    return folder


def test_the_hubs_copies_become_the_same_questions(tmp_path: Path) -> None:
    okvqa = build("okvqa", okvqa_copy(tmp_path / "okvqa"), tmp_path / "a")
    instances = list(get_benchmark("okvqa").instances(okvqa, "short"))
    assert (len(instances), len({i.group for i in instances}), okvqa.manifest["media"]) == (6, 3, 3)
    assert instances[0].references["answer"] == ("surfboard",) * 8 + ("board",) * 2
    assert {i.strata["type"] for i in instances} == {"one"}
    gqa = build("gqa", gqa_copy(tmp_path / "gqa"), tmp_path / "b")
    own = build("gqa", tmp_path / "gqa/own", tmp_path / "c")
    assert {row["id"]: row for row in gqa.rows()} == {row["id"]: row for row in own.rows()}


def test_hostile_rows_of_the_hubs_copies_are_skipped_and_counted(tmp_path: Path) -> None:
    good = {"question_id": "1", "question": "?", "answers": ["a b"] * 10, "image": picture(1)}
    bad: list[dict[str, Any]] = [
        {**good, "question": "x\x1b[2J"},
        {**good, "answers": ["a b"] * 9},
        {**good, "answers": None},
        {**good, "image": bomb(60000, 60000)},
        {**good, "image": b"<html>"},
        {**good, "image": None},
        good,
    ]
    rows = [{**row, "image": {"bytes": row["image"], "path": None}} for row in (good, *bad)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "val2014-00000-of-00001.parquet")
    okvqa = build("okvqa", tmp_path, tmp_path / "a")
    assert (okvqa.manifest["instances"], len(skipped(okvqa))) == (1, len(bad))

    folder = gqa_copy(tmp_path / "gqa")
    images = folder / "testdev_balanced_images/testdev-00000-of-00001.parquet"
    pq.write_table(pq.read_table(images).slice(0, 2), images)
    gqa = build("gqa", folder, tmp_path / "b")
    assert (gqa.manifest["instances"], gqa.manifest["media"], len(skipped(gqa))) == (4, 2, 2)
    images.write_bytes(b"PAR1")
    with pytest.raises(SourceError):
        build("gqa", folder, tmp_path / "c")
    (tmp_path / "val2014-00000-of-00001.parquet").write_bytes(b"")
    with pytest.raises(SourceError):
        build("okvqa", tmp_path, tmp_path / "d")


def test_hostile_entries_are_skipped_and_counted(tmp_path: Path) -> None:
    folder = small_okvqa(tmp_path / "okvqa")
    (folder / "val2014" / "COCO_val2014_000000000003.jpg").write_bytes(bomb(60000, 60000))
    questions = json.loads((folder / OKVQA_QUESTIONS).read_text())
    bad: list[Any] = [
        7,
        {},
        {"image_id": "../1", "question": "?", "question_id": 10},
        {"image_id": 1, "question_id": 10},
    ]
    bad += [
        {"image_id": 1, "question": "x\x1b[2J", "question_id": 10},
        {"image_id": 1, "question": "?", "question_id": 99},
    ]
    bad += [{"image_id": 4, "question": "gone?", "question_id": 10}, questions["questions"][0], {"image_id": True, "question": "?", "question_id": 1}]  # fmt: skip  # noqa: E501
    questions["questions"] += bad
    annotations = json.loads((folder / OKVQA_ANNOTATIONS).read_text())
    annotations["annotations"][1]["answers"].pop()
    (folder / OKVQA_QUESTIONS).write_text(json.dumps(questions))
    (folder / OKVQA_ANNOTATIONS).write_text(json.dumps(annotations))
    result = build("okvqa", folder, tmp_path / "out")
    reasons = [reason.split(":")[0] for reason in skipped(result)]
    assert result.manifest["instances"] == 3  # of the six, one has nine answers and two a bomb
    assert len(reasons) == 3 + len(bad)
    assert sum(reason.startswith("the image") for reason in reasons) == 3
    assert {"repeated", "the question has no annotation", "the annotation does not have 10 answers"} <= set(reasons)


@pytest.mark.parametrize("content", [None, "[]", "{}", "{", '{"a": 7}'])
@pytest.mark.parametrize("name", ["okvqa", "gqa"])
def test_wrong_folder_says_what_was_expected(name: str, content: str | None, tmp_path: Path) -> None:
    if content is not None:
        for file in (OKVQA_QUESTIONS, OKVQA_ANNOTATIONS, GQA_QUESTIONS[0]):
            (tmp_path / file).write_text(content)
    with pytest.raises(SourceError):
        build(name, tmp_path, tmp_path / "out")
    with pytest.raises(SpecError):
        get_benchmark(name).build([("imges", str(tmp_path))], tmp_path / "out", BuildOptions())


# --- by the command line -------------------------------------------------------------------------


def test_table_15_from_imported_answers(tmp_path: Path) -> None:
    """Half of OK-VQA's answers get 1, the others .6; of GQA's a third are not the published one."""
    rashomon = Rashomon(tmp_path)
    for name, make in (("okvqa", small_okvqa), ("gqa", small_gqa)):
        folder = make(tmp_path / name)
        rashomon.run("build", name, "--source", f"{name}={folder}")
        built = Build.open(rashomon.workspace / "benchmarks" / name)
        rows = []
        for instance in get_benchmark(name).instances(built, "short"):
            first = instance.references["answer"][0]
            answer = {"surfboard": "A board.", "2": "two", "thing 1": "a thing", "thing 2": "no"}.get(first, first)
            rows.append(json.dumps({"id": instance.id, "answer": answer}) + "\n")
        (tmp_path / "answers.jsonl").write_text("".join(rows))
        options = ("--benchmark", name, "--model", "mine", "--name", name, "--display", "none")
        rashomon.run("import", tmp_path / "answers.jsonl", *options)
    value = {}
    for name in ("okvqa", "gqa"):
        (main,) = rashomon.json("show", name, "--table", "main")["tables"]
        value[name] = main["rows"][0]["cells"][name]["value"]
    assert value == {"okvqa": pytest.approx((1 + 0.6) / 2), "gqa": pytest.approx(4 / 6)}
    text = rashomon.run("show", "okvqa", "--table", "main").stdout
    assert "LLaVa-1.5-7b-ft (paper)" in text
    assert "43.93" in text
    assert "60.84" in rashomon.run("published", "okvqa").stdout
