"""The parts of a vision encoder's output that are kept: those that the model uses, and never a wrong answer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import pytest
from mlx import nn

from benchmarks.vocabulary import Text
from mlx_backends import stored_checks
from mlx_backends.base import EngineInfo
from mlx_backends.core.saved_work import Reuse
from mlx_backends.mlx.vision import vision_cache
from mlx_backends.mlx.vision.encoder_output_parts import UNUSED
from mlx_backends.mlx.vision.feature_folder import LIMIT, FeatureFolder
from mlx_backends.mlx.vision.feature_store import FeatureStore
from mlx_backends.mlx.vision.vision_cache import CachedVisionTower, VisionEncoder, encoder_identity
from mlx_backends.mlx.vlm_row import VLMRow
from mlx_backends.models.host_machine import host_info
from mlx_backends.models.request_memory import element_bytes, feature_bytes
from tests.support.model_matrix import GAPS, Subject
from tests.support.tiny_models import FAMILIES

FAST_FAMILIES = ("lfm2_vl", "llava", "qwen3_vl")
STORING = sorted(family for family in FAMILIES if (family, "features from disk") not in GAPS)

# --- how much is kept ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache/rashomon/vision-features"


@pytest.fixture
def subject(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Subject]:
    subject = Subject(request.param, tmp_path / "subject")
    yield subject
    subject.close()


@pytest.mark.parametrize(
    "subject",
    [pytest.param(name, marks=() if name in FAST_FAMILIES else pytest.mark.slow) for name in STORING],
    indirect=True,
)
def test_an_image_takes_the_bytes_that_the_caches_sizes_count_on(subject: Subject, folder: Path) -> None:
    """Tiny models are in fp32, whatever their configuration tells."""
    model = subject.backend._model
    if subject.family == "phi3_v":  # whose tiny encoder is of another width than the class's
        model.config.vision_config.hidden_size = 64
    inputs = subject.backend._preprocessor.inputs(subject._asked(subject.noise(1, 300, 200), Text("Why?")))
    rows = subject.backend._rows.for_check(1, share=True)
    assert rows._reader.tower is not None
    rows._reader.embed(VLMRow(inputs, 2))
    expected = feature_bytes(model.config, int((inputs.content < 0).sum())) * 4 // element_bytes(model.config)
    assert 0.5 <= rows._reader.tower._features._size / expected <= 2
    (file,) = folder.glob("*.features")
    assert file.stat().st_size <= 2 * expected + 2000
    rows.close()


# --- which parts are kept ------------------------------------------------------------------------


class Tower(nn.Module):  # type: ignore[misc]
    """An encoder of three layers, which returns (pooled, (layer, layer, layer))."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = mx.arange(6).astype(mx.float32) + 1
        self.calls = 0

    def __call__(self, pixels: Any) -> Any:
        self.calls += 1
        layers = [pixels * self.weight[number] for number in range(3)]
        return sum(layers), tuple(layers)


class Model(nn.Module):  # type: ignore[misc]
    """A model that uses one layer of its encoder, another one of images whose first pixel is negative."""

    def __init__(self) -> None:
        super().__init__()
        self.vision_tower = Tower()
        self.config = SimpleNamespace(vision_config=None)

        self.embed: Callable[[Any], Any] = self._embed

    def _embed(self, pixels: Any) -> Any:
        _, layers = self.vision_tower(pixels)
        used = layers[0] if pixels[0].item() < 0 else layers[-1]
        if used.size == 1:
            raise ValueError("an image of one pixel")
        return SimpleNamespace(to_dict=lambda: {"inputs_embeds": used + 1})


@pytest.fixture
def model() -> Model:
    return Model()


def ask(tower: CachedVisionTower, model: Model, pixels: list[float], reuse: Reuse | None = None) -> list[float]:
    image = str(pixels)
    output = tower.embed(lambda: model.embed(mx.array(pixels)), [image], reuse=reuse)
    values: list[float] = output.to_dict()["inputs_embeds"].tolist()
    return values


def tower_of(model: Model, folder: Path, encoder: VisionEncoder | None = None) -> CachedVisionTower:
    store = FeatureStore(dict, FeatureFolder(folder, 2**20))
    return CachedVisionTower(encoder or VisionEncoder(model, store), 2**20)


def kept(tower: CachedVisionTower, pixels: list[float]) -> Any:
    return tower._features.find((str(pixels),))


def test_only_what_the_model_uses_is_kept_in_memory_and_on_disk(model: Model, tmp_path: Path) -> None:
    tower, reuse = tower_of(model, tmp_path), Reuse()
    for pixels in ([1.0, 2.0], [3.0, 4.0], [1.0, 2.0]):
        assert ask(tower, model, pixels, reuse) == [3 * value + 1 for value in pixels]
        pooled, (first, second, third) = kept(tower, pixels)
        assert (pooled, first, second) == (UNUSED, UNUSED, UNUSED)
        assert third.tolist() == [3 * value for value in pixels]
    assert (reuse.encoded, model.vision_tower.calls) == (2, 2)
    later = tower_of(model, tmp_path)
    assert ask(later, model, [1.0, 2.0], reuse) == [4.0, 7.0]
    assert kept(later, [1.0, 2.0])[0] is UNUSED
    assert (reuse.from_disk, model.vision_tower.calls) == (1, 2)


def test_a_part_that_a_later_image_needs_is_encoded_again(model: Model, tmp_path: Path) -> None:
    tower, reuse = tower_of(model, tmp_path), Reuse()
    assert ask(tower, model, [1.0, 2.0], reuse) == [4.0, 7.0]
    assert ask(tower, model, [-1.0, 2.0], reuse) == [0.0, 3.0]
    assert ask(tower, model, [1.0, 2.0], reuse) == [4.0, 7.0]
    assert reuse.encoded == 4, "each with one part, then with all"
    later = tower_of(model, tmp_path)
    assert ask(later, model, [-1.0, 2.0], reuse) == [0.0, 3.0]
    assert ask(later, model, [1.0, 2.0], reuse) == [4.0, 7.0]
    assert reuse.encoded == 4


def test_features_on_disk_without_a_part_that_is_needed_are_encoded_again(model: Model, tmp_path: Path) -> None:
    tower, image = tower_of(model, tmp_path), [-1.0, 2.0]
    ask(tower, model, [1.0, 2.0])
    key = [[str(image)], [], [], []]
    tower._encoder.save(key, (UNUSED, (UNUSED, UNUSED, mx.array(image) * 3)))
    later, reuse = tower_of(model, tmp_path), Reuse()
    assert ask(later, model, image, reuse) == [0.0, 3.0]
    assert (reuse.from_disk, reuse.encoded) == (1, 1)


def test_an_image_that_fails_by_itself_changes_nothing(model: Model, tmp_path: Path) -> None:
    tower = tower_of(model, tmp_path)
    with pytest.raises(ValueError, match="one pixel"):
        ask(tower, model, [1.0])
    ask(tower, model, [1.0, 2.0])
    with pytest.raises(ValueError, match="one pixel"):
        ask(tower, model, [2.0])
    ask(tower, model, [3.0, 4.0])
    assert kept(tower, [3.0, 4.0])[0] is UNUSED
    assert isinstance(model.vision_tower, Tower), "the model is as it was"


def test_the_parts_are_found_once_for_all_rows_of_a_model(model: Model, tmp_path: Path) -> None:
    encoder = VisionEncoder(model)
    calls, embed = [], model.embed

    def counted(pixels: Any) -> Any:
        calls.append(pixels)
        return embed(pixels)

    model.embed = counted
    ask(tower_of(model, tmp_path, encoder), model, [1.0, 2.0])
    attempts = len(calls)
    ask(tower_of(model, tmp_path, encoder), model, [1.0, 2.0])
    assert attempts > 2
    assert len(calls) == attempts + 1


def test_what_a_failing_gpu_computed_is_not_taken_for_a_part_in_use(model: Model, tmp_path: Path) -> None:
    fault = RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory")
    calls, embed = [], model.embed

    def failing(pixels: Any) -> Any:
        calls.append(pixels)
        if len(calls) == 2:
            raise fault
        return embed(pixels)

    model.embed = failing
    with pytest.raises(RuntimeError, match="Insufficient"):
        ask(tower_of(model, tmp_path), model, [1.0, 2.0])
    assert not list(tmp_path.rglob("*.features"))


# --- what decides the features -------------------------------------------------------------------

INFO = EngineInfo("mlx-vlm", "model", weights="0" * 64, versions={"mlx": "1"})


@pytest.mark.parametrize("change", ["patch", "chip", "system", "version", "device", "switch", "weights", "dtype"])
def test_features_are_those_of_one_encoder_engine_code_and_machine(
    change: str, model: Model, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, info = encoder_identity(INFO, model), INFO
    assert encoder_identity(INFO, model) == before
    match change:
        case "patch":  # of the same name
            package = shutil.copytree(Path(stored_checks.__file__).parent, tmp_path / "mlx_backends")
            with (package / "mlx/patches/gelu.py").open("a") as source:
                source.write("# changed\n")
            monkeypatch.setattr(vision_cache, "code_digest", lambda: stored_checks.code_digest(package))
        case "chip" | "system":
            other = replace(host_info(), chip="another") if change == "chip" else replace(host_info(), system="another")
            monkeypatch.setattr(vision_cache, "host_info", lambda: other)
        case "version":
            info = replace(INFO, versions={"mlx": "2"})
        case "device":
            info = replace(INFO, device="metal")
        case "switch":
            monkeypatch.setenv("MLX_ENABLE_TF32", "0")
        case "weights":
            model.vision_tower.weight = model.vision_tower.weight + 1
            info = replace(INFO, weights="1" * 64)
        case "dtype":
            model.set_dtype(mx.bfloat16)
    assert encoder_identity(info, model) != before


def test_two_models_with_the_same_encoder_have_the_same_features(model: Model, folder: Path) -> None:
    other = replace(INFO, weights="1" * 64, quantisation="4-bit")
    assert encoder_identity(INFO, model) == encoder_identity(other, Model())
