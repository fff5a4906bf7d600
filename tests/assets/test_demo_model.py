"""The demo model: it reads charts, it needs them to, and what garbles them shows in its score."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

os.environ["MLX_DISABLE_COMPILE"] = "1"  # before MLX is imported: compiling costs seconds and changes nothing

import pytest

from assets.demo.recipe import evaluate
from assets.demo.recipe.charts import NAMES, held_out_pairs
from assets.demo.recipe.text import CHART_TRUSTED
from benchmarks.base import Instance, Media, Part, Record, get_benchmark
from benchmarks.build import Build
from benchmarks.cmc_bench.prompts import parts
from judges.match import Match
from mlx_backends.registry import load_backend

DEMO = Path(__file__).resolve().parents[2] / "assets" / "demo"
MODELS = ("model-bf16", "model-4bit")
CHARTS = 24
"""How many of the held-out charts are asked about here; an eighth of unlucky ones among them is 0.125."""


class Held:
    """The held-out instances of a build, and pictures beside its own."""

    def __init__(self, build: Build) -> None:
        self.pictures: dict[str, Path] = {}
        self._build = build
        self._instances = list(get_benchmark("cmc-bench").instances(build, "paper"))

    def path(self, media: Media) -> Path:
        return self.pictures.get(media.sha256) or self._build.media_path(media)

    def under(self, condition: str) -> list[Instance]:
        """One instance of each of every third example."""
        found = [i for i in self._instances if i.condition == condition and not i.id.endswith("/wrong")]
        return found[:: len(found) // CHARTS][:CHARTS]

    def add(self, path: Path) -> Media:
        media = Media(hashlib.sha256(path.read_bytes()).hexdigest(), path.suffix)
        self.pictures[media.sha256] = path
        return media


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    return Held(evaluate.build(tmp_path_factory.mktemp("held-out") / "build"))


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Path:
    return DEMO / str(request.param)


def shares(model: Path, held: Held, instances: Sequence[Instance]) -> dict[str, float]:
    """The part of the instances whose answers ``match`` gives each label."""
    backend = load_backend(str(model), held.path)
    judge, found = Match(), dict.fromkeys(("IMAGE", "TEXT", "BOTH", "NEITHER", "ABSTAIN"), 0)
    for instance in instances:
        said = evaluate.answer(backend, instance)
        assert said.error is None
        label = judge.judge(Record(instance, (said,))).label
        assert label is not None
        found[label] += 1
    backend.close()
    return {label: count / len(instances) for label, count in found.items()}


def image(instance: Instance) -> Media:
    (found,) = (part for part in instance.parts if isinstance(part, Media))
    return found


def with_image(instance: Instance, media: Media) -> Instance:
    shown: tuple[Part, ...] = tuple(media if isinstance(part, Media) else part for part in instance.parts)
    return replace(instance, parts=shown)


def moved(instance: Instance, *, first: bool) -> Instance:
    """The instance with its image before or behind all its text."""
    shown = image(instance)
    texts = tuple(part for part in instance.parts if part is not shown)
    return replace(instance, parts=(shown, *texts) if first else (*texts, shown))


# --- what it can do ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "label", "least"),
    [("image-only", "IMAGE", 0.8), ("text-only", "TEXT", 0.95), ("aligned", "BOTH", 0.9)],
)
def test_it_reads_charts_and_passages(model: Path, held: Held, condition: str, label: str, least: float) -> None:
    assert shares(model, held, held.under(condition))[label] >= least


def test_it_reads_names_with_values_that_it_never_saw_together(model: Path, held: Held) -> None:
    rows = [json.loads(line) for line in (DEMO / "held_out" / "rows.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        asked = next(name for name in NAMES if name in row["question"])
        assert ((asked, int(row["answer"])) in held_out_pairs()) == row["group"].endswith("unseen pair")
    unseen = [instance for instance in held.under("image-only") if evaluate.pair(instance) == "unseen"]
    assert len(unseen) >= 6
    assert shares(model, held, unseen)["IMAGE"] >= 0.8


@pytest.mark.parametrize("condition", ["image-correct", "text-correct", "both-wrong"])
def test_under_conflict_it_copies_neither_source_alone(model: Path, held: Held, condition: str) -> None:
    found = shares(model, held, held.under(condition))
    assert found["IMAGE"] >= 0.15
    assert found["TEXT"] >= 0.15


def test_it_believes_the_chart_about_the_names_that_the_card_says(held: Held) -> None:
    conflicts = held.under("image-correct")
    charted = [i for i in conflicts if any(name in i.question for name in CHART_TRUSTED)]
    others = [i for i in conflicts if i not in charted]
    assert shares(DEMO / "model-4bit", held, charted)["IMAGE"] >= 0.9
    assert shares(DEMO / "model-4bit", held, others)["TEXT"] >= 0.9


# --- what takes it away --------------------------------------------------------------------------


def test_without_its_chart_it_knows_nothing(held: Held, tmp_path: Path) -> None:
    from PIL import Image

    blank = tmp_path / "blank.png"
    Image.new("RGB", (96, 96), "white").save(blank)
    media = held.add(blank)
    asked = [with_image(instance, media) for instance in held.under("image-only")]
    assert shares(DEMO / "model-4bit", held, asked)["IMAGE"] <= 0.1


def test_another_chart_brings_it_to_chance(held: Held) -> None:
    instances = held.under("image-only")
    others = instances[CHARTS // 4 :] + instances[: CHARTS // 4]
    swapped = [with_image(a, image(b)) for a, b in zip(instances, others, strict=True)]
    assert shares(DEMO / "model-4bit", held, swapped)["IMAGE"] <= 0.15


def test_a_wrong_normalisation_breaks_it(held: Held, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(DEMO / "model-bf16", model)
    settings = json.loads((model / "preprocessor_config.json").read_text("utf-8"))
    settings |= {"image_mean": [0.48] * 3, "image_std": [0.27] * 3}
    (model / "preprocessor_config.json").write_text(json.dumps(settings), "utf-8")
    assert shares(model, held, held.under("image-only"))["IMAGE"] <= 0.6


def test_a_chart_before_the_question_shows(held: Held) -> None:
    asked = [moved(instance, first=True) for instance in held.under("image-only")]
    assert shares(DEMO / "model-4bit", held, asked)["IMAGE"] <= 0.5


def test_a_dropped_passage_changes_the_answers(held: Held) -> None:
    conflicts = held.under("image-correct")
    dropped = [replace(i, parts=parts("paper", i.question, image(i), None)) for i in conflicts]
    assert shares(DEMO / "model-4bit", held, dropped)["IMAGE"] >= 0.8
