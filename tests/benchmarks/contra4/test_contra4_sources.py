"""Contra4 from its published rows: every one of them, hostile ones, and media that are there, missing or broken."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.contra4.contra4_sample import Contra4Sample, parse_sample
from benchmarks.contra4.sources.contra4_released import read_samples
from benchmarks.errors import MediaError, SourceError, SpecError
from benchmarks.media.media_previews import media_pictures
from benchmarks.registry import get_benchmark
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.vocabulary import Instance, Media, Text
from tests.support.data.contra4 import COCO, DATA, PLAIN, Scripted, mixed_rows, prompt, real_rows, row, write_source
from tests.support.data.small import picture

CONTRA4 = get_benchmark("contra4")


def build(folder: Path, out: Path, *more: tuple[str, str], **options: Any) -> Build:
    return CONTRA4.build([("published", str(folder)), *more], out, BuildOptions(**options))


def instances_by_condition(result: Build, prompt_set: str = "official") -> dict[str, Instance]:
    return {row.condition: row for row in CONTRA4.instances(result, prompt_set)}


def skipped(result: Build) -> list[dict[str, str]]:
    return [json.loads(line) for line in (result.path / "skipped.jsonl").read_text("utf-8").splitlines()]


# --- the published rows --------------------------------------------------------------------------


@real_rows
def test_every_published_row_is_read_and_counted() -> None:
    rows = list(read_samples(str(DATA)))
    assert not [sample for sample in rows if isinstance(sample, SkippedRow)]
    samples = [sample.sample for sample in rows if not isinstance(sample, SkippedRow)]
    assert Counter(sample.split for sample in samples) == {"test": 2335, "val": 3000}
    assert len({sample.id for sample in samples}) == 5335
    test = [sample for sample in samples if sample.split == "test"]
    kinds = Counter((len(sample.scenes), sample.negatives) for sample in test)
    assert kinds == {
        (2, "random"): 415,
        (2, "similar"): 396,
        (3, "random"): 416,
        (3, "similar"): 385,
        (4, "random"): 357,
        (4, "similar"): 366,
    }
    combinations = Counter(sample.modalities for sample in test)
    assert combinations["audio+3d+image+video"] == 723
    assert (combinations["audio+image"], combinations["audio+3d"], combinations["3d+image"]) == (263, 238, 225)
    assert sum(combinations[name] for name in ("3d+image+image", "audio+image+image", "3d+3d+image")) == 21
    # "Answer distribution is balanced post-hoc" holds of the test rows with four scenes alone.
    assert Counter(sample.letters[sample.answer] for sample in test if len(sample.scenes) == 4) == {
        "A": 182,
        "B": 177,
        "C": 180,
        "D": 184,
    }
    assert Counter(sample.letters[sample.answer] for sample in test if len(sample.scenes) == 2) == {"A": 457, "B": 354}
    assert {sample.gold for sample in samples if sample.split == "val"} == {"Scene A", "Scene B", "Scene C", "Scene D"}
    assert {sample.gold for sample in test} == set("ABCD")
    assert Counter(sample.category for sample in test).most_common(2) == [
        ("Other", 531),
        ("Emotions & Sentory Experiences", 386),
    ]


@real_rows
@pytest.mark.slow
def test_published_rows_without_media_run_on_captions(tmp_path: Path) -> None:
    result = build(DATA, tmp_path / "out", ("coco_val", str(COCO / "val2017")))
    assert result.manifest["samples"] == 5335
    assert result.manifest["scenes"]["Image"] == {"there": 235, "missing": 3956}
    assert result.manifest["with_all_media"] == 0
    # Rows include the pictures that are here and run on their captions; missing media are reported by row.
    conditions = Counter(item.condition for item in CONTRA4.instances(result, "official"))
    assert conditions == {"gold-captions": 5335}
    scenes = [scene for item in result.rows() for scene in Contra4Sample.from_row(item).scenes]
    assert sum(scene.media is not None for scene in scenes) == 235
    missing = skipped(result)
    assert len(missing) == 15_917 - 235
    assert "Scene B, msrvtt_test/video6841" in missing[1]["reason"]


@real_rows
def test_real_mixed_rows_have_all_their_media(tmp_path: Path) -> None:
    result = build(mixed_rows(tmp_path / "rows"), tmp_path / "out")
    assert result.manifest["samples"] == result.manifest["with_all_media"] == 33
    assert set(result.manifest["combinations"].values()) == {3}
    instances = [instance for instance in CONTRA4.instances(result, "official") if instance.condition == "media"]
    assert len(instances) == 33
    media = [part for instance in instances for part in instance.parts if isinstance(part, Media)]
    assert {part.modality for part in media} == {"audio", "point_cloud", "image", "video"}
    assert all(result.media_path(part).is_file() for part in media)


# --- what is asked -------------------------------------------------------------------------------


def test_the_official_prompts(tmp_path: Path) -> None:
    folder = write_source(tmp_path / "rows", [row("one", PLAIN[:3], "Scene C")])
    captioners = {key: Scripted(key, lambda _: "a caption") for key in ("image", "audio", "point_cloud")}
    instances = instances_by_condition(build(folder, tmp_path / "out", captioners=captioners))
    assert list(instances) == ["media", "captions", "gold-captions"]
    parts = [part.text if isinstance(part, Text) else part.modality for part in instances["media"].parts]
    assert parts == [
        *("Scene A: ", "image", "Scene B: ", "audio", "Scene C: ", "point_cloud"),
        "Which scene is louder? Choose from: Scene A, Scene B, Scene C\nAnswer:",
    ]
    assert instances["gold-captions"].parts == (
        Text(
            "Answer the question Which scene is louder? by selecting one of the following options: "
            "Option A: A room with a chair, Option B: A dog barks twice, Option C: A white teapot. Answer: Option"
        ),
    )
    assert instances["media"].references == {
        "answer": ("C",),
        "gold": ("Scene C",),
        "options": ("A", "B", "C"),
        "modalities": ("image", "audio", "point_cloud"),
    }
    assert instances["media"].strata["modalities"] == "audio+3d+image"


def test_the_printed_prompt_for_media_and_captions(tmp_path: Path) -> None:
    instances = instances_by_condition(
        build(write_source(tmp_path / "rows", [row("one", PLAIN[:2])]), tmp_path / "out"), "paper"
    )
    parts = [part.text if isinstance(part, Text) else part.modality for part in instances["media"].parts]
    head = (
        "Select which of the scenes best answers the question. Respond with brevity, and only include your choice in the "
        "response.\nQuestion: Which scene is louder?\nChoices:\nScene A. "
    )
    assert parts == [head, "image", "\nScene B. ", "audio", "\nAnswer:"]
    (text,) = instances["gold-captions"].parts
    assert text == Text(f"{head}A room with a chair\nScene B. A dog barks twice\nAnswer:")


def test_rendered_option_turns_3d_and_video_into_pictures(tmp_path: Path) -> None:
    folder = write_source(tmp_path / "rows", [row("one", PLAIN)])

    def render(data: bytes, suffix: str, modality: str) -> list[bytes]:
        assert (suffix, modality) in ((".npz", "point_cloud"), (".mp4", "video"))
        return [picture(number) for number in range(3)]

    result = build(folder, tmp_path / "out", render=render)
    modalities = [part.modality for part in instances_by_condition(result)["rendered"].parts if isinstance(part, Media)]
    assert modalities == ["image", "audio", "image", "image", "image", "image", "image", "image"]
    assert result.manifest["rendered"] == 1

    def broken(data: bytes, suffix: str, modality: str) -> list[bytes]:
        raise MediaError("the medium", "is truncated; replace it")

    result = build(folder, tmp_path / "broken", render=broken)
    assert list(instances_by_condition(result)) == ["media", "gold-captions"]
    assert {"cannot be rendered: is truncated" in problem["reason"] for problem in skipped(result)} == {True}


def test_a_captioner_describes_each_medium_once(tmp_path: Path) -> None:
    rows = [row("one", PLAIN[:2]), row("two", PLAIN[:2], question="Which scene is calmer?"), row("three", PLAIN[1:3])]
    folder = write_source(tmp_path / "rows", rows)
    image = Scripted("eye", lambda _: "<think>hm</think> A small\nroom ")
    audio = Scripted("ear", lambda _: "A dog")
    result = build(folder, tmp_path / "out", captioners={"image": image, "audio": audio})
    assert image.asked == ["Describe the image"]
    assert audio.asked == ["Describe the audio"]
    instances = [item for item in CONTRA4.instances(result, "official") if item.condition == "captions"]
    assert [item.strata["modalities"] for item in instances] == ["audio+image", "audio+image"]
    assert "Option A: A small room, Option B: A dog." in prompt_of(instances[0])
    assert result.manifest["captioners"] == {"Audio": "ear", "Image": "eye"}
    mute = Scripted("mute", lambda _: None)
    result = build(folder, tmp_path / "mute", captioners={"image": image, "audio": mute})
    assert not [item for item in CONTRA4.instances(result, "official") if item.condition == "captions"]
    reasons = [item["reason"] for item in skipped(result)]
    assert reasons == ["the captioner gave no reply (it broke)"] * 3
    assert {item["condition"] for item in skipped(result)} == {"captions"}


def prompt_of(instance: Instance) -> str:
    return "".join(part.text for part in instance.parts if isinstance(part, Text))


def test_captioner_is_used_for_available_pictures(tmp_path: Path) -> None:
    folder = write_source(tmp_path / "rows", [row("one", PLAIN[2:])])
    video = Scripted("eye", lambda _: "A man")
    build(folder, tmp_path / "out", captioners={"video": video}, render=lambda *_: [picture(1), picture(2)])
    (request,) = video.requests
    assert [part.modality for part in request.messages[0].parts if isinstance(part, Media)] == ["image", "image"]
    assert prompt(request) == "Describe this set of frames. Consider the frames to be a part of the same video."


# --- what is left out ----------------------------------------------------------------------------


def test_missing_or_broken_media_are_reported_by_row(tmp_path: Path) -> None:
    rows = [
        row("whole", PLAIN[:2]),
        row("missing", [PLAIN[0], ("audio", "clotho", "gone.wav", "Wind")]),
        row("broken", [("image", "coco_val", 140, "A torn picture"), PLAIN[1]]),
        row("empty", [("audio", "clotho", "empty.wav", "Silence"), PLAIN[0]]),
        row("leaves", [("audio", "clotho", "../../etc/passwd.wav", "A secret"), PLAIN[0]]),
        row("wrong source", [("audio", "../clotho", "bark.wav", "Elsewhere"), PLAIN[0]]),
        row("wrong kind", [("audio", "coco_val", "000000000139.jpg", "A picture as a sound"), PLAIN[0]]),
    ]
    folder = write_source(tmp_path / "rows", rows)
    (folder / "coco_val" / "000000000140.jpg").write_bytes(
        (folder / "coco_val" / "000000000139.jpg").read_bytes()[:300]
    )
    (folder / "clotho" / "empty.wav").write_bytes(b"")
    result = build(folder, tmp_path / "out")
    under = Counter(item.condition for item in CONTRA4.instances(result, "official"))
    assert under == {"media": 1, "gold-captions": 7}
    reasons = {
        item["row"].partition("(")[2].partition(")")[0]: item["reason"].partition(":")[0] for item in skipped(result)
    }
    assert {item["condition"] for item in skipped(result)} == {"media"}
    assert reasons == {
        "missing": "audio is missing",
        "broken": "image is truncated or damaged",
        "empty": "audio is empty",
        "leaves": "audio has a name that leaves the folder",
        "wrong source": "audio is missing",
        "wrong kind": "audio is missing",
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": "C"}, "the answer is not the letter of one of the examples"),
        ({"answer": 3}, "the row has no answer"),
        ({"answer": "Scene"}, "the answer is not the letter of one of the examples"),
        ({"question": " "}, "the row has no question"),
        ({"question": "x" * 2001}, "the field question is longer than 2000 characters"),
        ({"q_type": "mc_3"}, "q_type is not the number of examples"),
        ({"selection_type": "none"}, "selection_type is neither random nor similarity"),
        ({"modalities": ["image"]}, "examples and modalities are not two lists of one length"),
        ({"modalities": ["image", "smell"]}, "a modality is not one of audio, image, pc and video"),
        ({"examples": [{}, {}]}, "an example has no source or no id"),
        ({"examples": [1, 2]}, "an example is not a JSON object"),
        ({"examples": [row("", PLAIN)["examples"][0]] * 2}, "two examples are the same medium"),
        ({"examples": [], "modalities": []}, "the row has not two to four examples"),
    ],
)
def test_rows_without_a_usable_question_are_skipped(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowProblem) as problem:
        parse_sample(row("one", PLAIN[:2]) | change)
    assert str(problem.value) == reason


def test_the_fields_of_the_papers_appendix_are_read_too() -> None:
    plain = row("one", PLAIN[:2], "Scene B")
    plural = {**plain, "questions": [plain.pop("question")], "answers": [plain.pop("answer")]}
    del plural["question"], plural["answer"]
    sample = parse_sample(plural)
    assert (sample.question, sample.answer, sample.gold) == ("Which scene is louder?", 1, "Scene B")


_VALUES: list[Any] = [
    None,
    3,
    -1,
    "",
    " ",
    "A",
    "Scene D",
    "\ud800",
    "x\ny",
    [],
    [[]],
    [{}],
    ["image"],
    ["pc", "pc"],
    {"a": 1},
    1.5,
    True,
]
_FIELDS = ["id", "examples", "modalities", "question", "answer", "q_type", "selection_type", "category"]


@given(st.dictionaries(st.sampled_from(_FIELDS), st.sampled_from(_VALUES) | st.text(max_size=8), max_size=4))
def test_any_row_is_a_sample_or_a_problem(change: dict[str, Any]) -> None:
    try:
        sample = parse_sample(row("one", PLAIN) | change)
    except RowProblem:
        return
    assert Contra4Sample.from_row(json.loads(json.dumps(sample.to_row()))) == sample


def test_repeated_rows_and_ids_are_left_out(tmp_path: Path) -> None:
    rows = [row("one", PLAIN[:2]), row("two", PLAIN[:2]), row("one", PLAIN[1:3]), "no row"]
    result = build(write_source(tmp_path / "rows", rows), tmp_path / "out")
    assert [problem["reason"] for problem in skipped(result)] == [
        "repeated: another row is the same sample",
        "repeated id: another row has this id",
        "the line is not a JSON object",
    ]


def test_wrong_folders_and_sources_end_the_build(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"; expected a folder with test\.json"):
        build(tmp_path / "empty", tmp_path / "out")
    folder = write_source(tmp_path / "rows", [row("one", PLAIN[:2])])
    with pytest.raises(SourceError, match=r"does not exist; coco_val is read from COCO val2017"):
        build(folder, tmp_path / "out", ("coco_val", str(tmp_path / "nowhere")))
    with pytest.raises(SpecError, match="no source of questions"):
        CONTRA4.build([("coco_val", str(folder / "coco_val"))], tmp_path / "out", BuildOptions())
    with pytest.raises(SourceError, match=r"no usable sample \(once: the row has no question\)"):
        build(write_source(tmp_path / "bad", [row("one", PLAIN[:2], question="")]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_same_source_gives_the_same_build(tmp_path: Path) -> None:
    folder = write_source(tmp_path / "rows", [row("one", PLAIN), row("two", PLAIN[:2])])
    assert build(folder, tmp_path / "a").digest == build(folder, tmp_path / "b").digest


def test_damaged_medium_affects_only_its_own_row(tmp_path: Path) -> None:
    rows = [row("one", PLAIN), row("two", PLAIN[:2])]
    folder = write_source(tmp_path / "rows", rows)
    for name in ("pointllm/abc_8192.npz", "msrvtt_test/video7.mp4"):
        (folder / name).write_bytes((folder / name).read_bytes()[:700])
    result = build(folder, tmp_path / "out")
    reasons = [problem["reason"] for problem in skipped(result)]
    assert len(reasons) == 2
    assert all("is truncated or damaged" in reason for reason in reasons)
    assert result.manifest["with_all_media"] == 1


def test_project_renderer_is_used(tmp_path: Path) -> None:
    result = build(write_source(tmp_path / "rows", [row("one", PLAIN)]), tmp_path / "out", render=media_pictures)
    media = [part for part in instances_by_condition(result)["rendered"].parts if isinstance(part, Media)]
    assert [part.modality for part in media] == ["image", "audio", *["image"] * (6 + 8)]
