"""OK-VQA and GQA: published layouts in, the published scoring, and CLASH's Table 15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SourceError, SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Media, Text
from benchmarks.vqa.score import gqa_equal, normalise_answer, strip_punctuation, vqa_accuracy, vqa_label
from benchmarks.vqa.sources import GQA_QUESTIONS, OKVQA_ANNOTATIONS, OKVQA_QUESTIONS
from tests.support.command import Rashomon
from tests.support.data.small import bomb, write_picture


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
        (main,) = json.loads(rashomon.run("show", name, "--table", "main", "--json").stdout)
        value[name] = main["rows"][0]["cells"][name.upper()]["value"]
    assert value == {"okvqa": pytest.approx((1 + 0.6) / 2), "gqa": pytest.approx(4 / 6)}
    text = rashomon.run("show", "okvqa", "--table", "main").stdout
    assert "LLaVa-1.5-7b-ft (paper)" in text
    assert "43.93" in text
    assert "60.84" in rashomon.run("published", "okvqa").stdout
