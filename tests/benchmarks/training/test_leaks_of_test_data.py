"""Leaks planted in training data: which are refused, which are warned of, and by what."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.engine.training.workspace_test_data import find_leaks
from benchmarks.build import Build, BuildOptions
from benchmarks.registry import get_benchmark
from benchmarks.training import leaks_of_test_data
from benchmarks.training.leaks_of_test_data import REFUSED, WARNED, LeakIndex, Means
from benchmarks.training.prompt_texts import QuestionIndex
from benchmarks.training.same_picture_hash import ImageIndex, Match
from benchmarks.training.training_set import TrainingSet
from benchmarks.vocabulary import Instance, Media, Text
from tests.support.command import Rashomon
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.small import REAL_DATA, own_rows
from tests.support.demo import HeldOutSet

CHARTS = REAL_DATA / "chartqa" / "png"
CAPTIONS = {"original": "left", "conflicting": "right"}


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def chat(text: str, answer: str = "A tree", system: str = "") -> list[dict[str, str]]:
    before = [{"role": "system", "content": system}] if system else []
    return [*before, {"role": "user", "content": text}, {"role": "assistant", "content": answer}]


def planted(folder: Path, picture: bytes, suffix: str = ".png", text: str = "What is it?", **more: Any) -> TrainingSet:
    return written(folder, [{"images": [f"renamed{suffix}"], "messages": chat(text), **more}], picture)


def written(folder: Path, rows: Sequence[dict[str, Any]], picture: bytes) -> TrainingSet:
    folder.mkdir()
    for name in {image for row in rows for image in row["images"]}:
        (folder / name).write_bytes(picture)
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TrainingSet.open(folder)


def means(build: Build, *sets: TrainingSet) -> list[set[str]]:
    index = LeakIndex([(get_benchmark(build.benchmark), build)])
    return [{leak.means for leak in index.compare(training_set).leaks} for training_set in sets]


@dataclass(frozen=True)
class TestData:
    """A small build of scenes, with its instances."""

    __test__ = False
    build: Build
    instances: Sequence[Instance]

    def path(self, media: Media) -> Path:
        return self.build.media_path(media)


@pytest.fixture(scope="module")
def tests(scenes: HeldOutSet, tmp_path_factory: pytest.TempPathFactory) -> TestData:
    """Six samples with the pictures of drawn scenes, each with captions of its own."""
    folder = tmp_path_factory.mktemp("tests")
    media = [part for i in scenes.under("open-original", 6) for part in i.parts if isinstance(part, Media)]
    things = ("piano", "kettle", "ladder", "mirror", "bicycle", "drum")
    rows = [
        own_sample(
            n, **{f"{kind}_caption": f"A dog {side} of a chair and a {thing}." for kind, side in CAPTIONS.items()}
        )
        for n, thing in zip(range(1, 1 + len(media)), things, strict=True)
    ]
    own_folder(folder / "source", rows, pictures=len(media))
    for number, medium in enumerate(media, 1):
        (folder / "source" / f"{number}.png").write_bytes(scenes.path(medium).read_bytes())
    clash = get_benchmark("clash")
    build = clash.build([("rows", str(folder / "source"))], folder / "build", BuildOptions())
    return TestData(build, list(clash.instances(build, "official")))


@pytest.fixture(scope="module")
def other() -> bytes:
    return encoded(Image.effect_mandelbrot((96, 96), (-2, -1.5, 1, 1.5), 60))


def test_a_test_image_is_found_however_it_is_changed(tests: TestData, tmp_path: Path) -> None:
    test = next(part for part in tests.instances[0].parts if isinstance(part, Media))
    data = tests.path(test).read_bytes()
    image = Image.open(io.BytesIO(data)).convert("RGB")
    width, height = image.size
    variants = {
        "renamed": (data, ".png", "image"),
        "re-encoded": (encoded(image, "JPEG", quality=60), ".jpg", "picture"),
        "resized": (encoded(image.resize((width * 3, height * 3))), ".png", "picture"),
        "halved": (encoded(image.resize((width // 2, height // 2))), ".png", "picture"),
        "cropped": (encoded(image.crop((4, 4, width - 2, height - 4))), ".png", "picture"),
    }
    sets = [planted(tmp_path / name, picture, suffix) for name, (picture, suffix, _) in variants.items()]
    assert means(tests.build, *sets) == [{expected} for _, _, expected in variants.values()]
    assert {expected for _, _, expected in variants.values()} <= REFUSED.keys()


def test_a_test_image_is_found_with_a_transparent_ground(tests: TestData, tmp_path: Path) -> None:
    test = next(part for part in tests.instances[0].parts if isinstance(part, Media))
    image = Image.open(tests.path(test)).convert("RGBA")
    ground = Image.new("L", image.size, 255)
    ground.paste(0, (0, 0, image.width, image.height // 3))
    image.putalpha(ground)
    assert means(tests.build, planted(tmp_path / "colours", encoded(image))) == [{"picture"}]
    opaque = Image.open(tests.path(test)).convert("L").point(lambda level: 0 if level < 250 else 255)
    drawing = Image.merge(
        "RGBA", (*Image.open(tests.path(test)).convert("RGB").split(), opaque.point(lambda v: 255 - v))
    )
    assert means(tests.build, planted(tmp_path / "white", encoded(drawing))) == [{"picture"}]


def test_test_texts_are_found_with_another_picture(tests: TestData, tmp_path: Path, other: bytes) -> None:
    test = tests.instances[0]
    prompt = "".join(part.text for part in test.parts if isinstance(part, Text))
    sets = [
        planted(tmp_path / "prompt", other, text=prompt),
        planted(tmp_path / "question", other, question=test.question),
        planted(tmp_path / "group", other, group=test.group),
        planted(tmp_path / "none", other),
    ]
    assert means(tests.build, *sets) == [{"prompt"}, {"question"}, {"example"}, set()]
    assert {"prompt", "example"} <= REFUSED.keys()
    assert "question" in WARNED


def test_a_test_prompt_that_occurs_twice_without_groups_is_no_template(
    tests: TestData, tmp_path: Path, other: bytes
) -> None:
    prompt = "".join(part.text for part in tests.instances[0].parts if isinstance(part, Text))
    twice = [{"images": [f"{n}.png"], "messages": chat(prompt)} for n in range(2)]
    answers = [{"images": [f"{n}.png"], "messages": chat(prompt, f"{n}")} for n in range(2)]
    groups = [{**row, "group": f"{n}"} for n, row in enumerate(twice)]
    sets = [written(tmp_path / f"{n}", rows, other) for n, rows in enumerate((twice, answers, groups))]
    assert means(tests.build, *sets) == [{"prompt"}, {"question"}, {"question"}]


def test_test_texts_are_found_within_prompts(tests: TestData, tmp_path: Path, other: bytes) -> None:
    test = tests.instances[0]
    prompt = "".join(part.text for part in test.parts if isinstance(part, Text))
    turns = [*chat(prompt, "Yes"), *chat("And the colour of the sky in it, in a word?")]
    rows = {
        "system": chat(prompt, system="You are a helpful assistant."),
        "turn": turns,
        "wrapped": chat(f"Look well. {test.question.upper().rstrip('?')}?? Answer in a word."),
        "part": chat(f"Look well. {' '.join(test.question.split()[1:])}"),
    }
    sets = [written(tmp_path / name, [{"images": ["a.png"], "messages": row}], other) for name, row in rows.items()]
    assert means(tests.build, *sets) == [{"prompt"}, {"prompt"}, {"question"}, set()]


def test_questions_without_spaces_between_words_are_found() -> None:
    questions = QuestionIndex()
    questions.add("\u56fe\u4e2d\u6709\u51e0\u53ea\u732b?", "test", "example")
    assert questions.find("", ["\u8bf7\u56de\u7b54:\u56fe\u4e2d\u6709\u51e0\u53ea\u732b\u3002"]) == "test"
    assert questions.find("", ["\u8bf7\u56de\u7b54:\u56fe\u4e2d\u6709\u51e0\u53ea\u72d7\u3002"]) == ""


def test_images_are_compared_once_with_the_same_test_images(
    tests: TestData, tmp_path: Path, other: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    compared: list[Image.Image] = []
    find = ImageIndex.find

    def counted(index: ImageIndex, image: Image.Image) -> list[Match]:
        compared.append(image)
        return find(index, image)

    monkeypatch.setattr(ImageIndex, "find", counted)
    test = next(part for part in tests.instances[0].parts if isinstance(part, Media))
    leaked = encoded(Image.open(tests.path(test)).convert("RGB"), "JPEG", quality=60)
    sets = [planted(tmp_path / "other", other), planted(tmp_path / "leaked", leaked, ".jpg")]
    builds = [(get_benchmark(tests.build.benchmark), tests.build)]

    def results() -> tuple[int, list[list[Means]]]:
        compared.clear()
        means = [[leak.means for leak in find_leaks(builds, training_set).leaks] for training_set in sets]
        return len(compared), means

    expected: list[list[Means]] = [[], ["picture"]]
    assert results() == (2, expected)
    assert results() == (0, expected)
    (stored,) = (tmp_path / "cache").rglob("training-images.json")
    for damaged in ("{", '{"tests": 1, "images": []}', re.sub(r"\d+, true", '99999, "x"', stored.read_text())):
        stored.write_text(damaged)
        assert results()[1] == expected
    monkeypatch.setattr(leaks_of_test_data, "HASH_VERSION", "another")
    assert results() == (2, expected)


@pytest.mark.skipif(not CHARTS.is_dir(), reason="ChartQA's pictures are not beside the project")
def test_different_charts_are_not_taken_for_each_other() -> None:
    images = [Image.open(file).convert("RGB") for file in sorted(CHARTS.glob("*.png"))[:40]]
    index = ImageIndex()
    for number, image in enumerate(images[:20]):
        index.add(image, number)
    assert not any(match.same for image in images[20:] for match in index.find(image))
    for number, image in enumerate(images[:20]):
        match = index.find(Image.open(io.BytesIO(encoded(image, "JPEG", quality=40))))[0]
        assert (match.number, match.same) == (number, True)


def test_a_picture_is_found_by_its_crop_and_the_crop_by_the_picture() -> None:
    whole = Image.effect_mandelbrot((400, 300), (-2, -1.5, 1, 1.5), 60).convert("RGB")
    crop = whole.crop((30, 20, 370, 275))
    for stored, image in ((whole, crop), (crop, whole)):
        index = ImageIndex()
        index.add(Image.effect_mandelbrot((400, 300), (-1, -1, 0, 0), 60).convert("RGB"), 3)
        index.add(stored, 7)
        match = index.find(Image.open(io.BytesIO(encoded(image, "JPEG", quality=60))))[0]
        assert (match.number, match.same) == (7, True)
        assert match.window[2] == pytest.approx(0.85, abs=0.02)


def test_an_index_takes_less_than_two_kilobytes_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.rows.record_file._BUFFER", 1)
    images = [Image.effect_noise((64, 64), 10 + n) for n in range(100)]
    index = ImageIndex()
    index.add(images[0], 0)  # what is loaded once
    tracemalloc.start()
    for number, image in enumerate(images[1:], 1):
        index.add(image, number)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2000 * len(images)


def test_the_command_refuses_test_data_with_the_count_or_drops_it(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    for name, rows in (("table", 12), ("test", 3)):
        own_rows(tmp_path / name, [str(100 + 7 * n) for n in range(rows)])
        rashomon.run("build", "cmc-bench", "--source", f"rows={tmp_path / name}", "--out", tmp_path / f"{name}-build")
    arguments = ("training", "cmc-bench", "--data", tmp_path / "table-build")
    plain = rashomon.json(*arguments, "--out", tmp_path / "plain")
    assert plain["leaks"] == {}
    with_test = (*arguments, "--test", tmp_path / "test-build", "--out", tmp_path / "out")
    assert "training rows are test data" in rashomon.run(*with_test, code=2).stderr
    assert not (tmp_path / "out").exists()
    dropped = rashomon.json(*with_test, "--drop-leaks")
    assert dropped["leaks"]["image"] >= 3
    assert dropped["manifest"]["rows"]["train"] < plain["manifest"]["rows"]["train"]
    # A build that a run was made from is test data, wherever it lies.
    run = ("--benchmark", "cmc-bench", "--data", tmp_path / "table-build", "--model", "policy:always-text")
    rashomon.run("--batch", *run, "--limit", "2")
    rashomon.run(*arguments, "--out", tmp_path / "used", code=2)
    rashomon.run(*arguments, "--out", tmp_path / "used", "--drop-leaks", code=2)
