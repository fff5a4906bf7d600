"""Vision features on disk: the same answers without the encoder, and no answer lost to whatever happens to the folder."""

from __future__ import annotations

import errno
import gc
import itertools
import json
import logging
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx.utils import tree_flatten

from app.engine.request_order import order_by_prefix
from app.store.store_types import PendingInstance
from benchmarks.vocabulary import Decoding, Instance, Message, Request, Text
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.vision import feature_folder, feature_store
from mlx_backends.mlx.vision.encoder_output_parts import UNUSED
from mlx_backends.mlx.vision.feature_folder import LIMIT, FeatureFolder, default_cache
from mlx_backends.mlx.vision.feature_store import FeatureStore
from mlx_backends.mlx.vlm_backend import VLMBackend
from mlx_backends.models.memory_and_cache_sizes import least_caches
from tests.mlx_backends.conftest import Pictures
from tests.mlx_backends.mlx.test_batched_answers import tokens, varied
from tests.support import tiny_models
from tests.support.benchmark_requests import answers
from tests.support.distinct_tokens import count_distinct_tokens
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

ENCODER = {"weights": "a"}
FEATURES = [mx.arange(12).reshape(3, 4), (mx.ones((2, 2), mx.bfloat16), None)]
OTHERS = ("qwen2_5_vl", "lfm2_vl", "internvl_chat")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, which may take 1 GB."""
    monkeypatch.setenv(LIMIT, "1")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return default_cache()


def store(folder: Path, limit: int = 2**20, encoder: Mapping[str, Any] = ENCODER) -> FeatureStore:
    return FeatureStore(lambda: encoder, FeatureFolder(folder, limit))


def stored_files(folder: Path) -> list[Path]:
    return sorted((folder / "vision-features").glob("*.features"))


def equal(left: Any, right: Any) -> bool:
    pairs = zip(tree_flatten(left), tree_flatten(right), strict=True)
    return all(
        name == other and (value is same or (isinstance(value, mx.array) and bool(mx.array_equal(value, same))))
        for (name, value), (other, same) in pairs
    )


def loaded(model: Path, media: Any, width: int = 4) -> VLMBackend:
    backend = load_backend(str(model), media)
    assert isinstance(backend, VLMBackend)
    backend.width = width
    backend._model.set_dtype(mx.float32)
    return backend


def encoded(backend: VLMBackend) -> int:
    assert backend.reuse is not None
    return backend.reuse.encoded


# --- the same answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "width"),
    [
        ("qwen3_vl", 4),
        *(
            pytest.param(kind, width, marks=pytest.mark.slow)
            for kind in ("qwen3_vl", *OTHERS)
            for width in (1, 4, 8, 16)
            if (kind, width) != ("qwen3_vl", 4)
        ),
    ],
)
def test_features_from_disk_give_the_same_answers(
    kind: str, width: int, pictures: Pictures, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    if kind == "qwen3_vl":
        build_tiny_vlm(model, TEXTS, quantise=False)
    else:
        getattr(tiny_models, kind)(model)
    requests = varied(pictures, 4)
    monkeypatch.setenv(LIMIT, "0")
    backend = loaded(model, pictures.path, width)
    expected = tokens(answers(backend, requests))
    assert not stored_files(folder), "a limit of zero stores nothing"
    backend.close()

    monkeypatch.setenv(LIMIT, "1")
    first = loaded(model, pictures.path, width)
    first.choose_mode(requests)
    assert tokens(answers(first, requests)) == expected
    first.close()
    assert stored_files(folder)

    stored_files(folder)[0].write_bytes(stored_files(folder)[0].read_bytes()[:-3])  # one is damaged meanwhile
    later = loaded(model, pictures.path, width)
    later.choose_mode(requests)
    assert tokens(answers(later, requests)) == expected
    assert encoded(later) <= 1, "only the damaged one, unless the check met it first"
    later.close()


@pytest.mark.slow
def test_windows_of_random_examples_compute_little_twice(pictures: Pictures, tmp_path: Path) -> None:
    """As in a run that may stop early: the questions on an image fall into several windows."""
    model = build_tiny_vlm(tmp_path / "model", TEXTS, quantise=False)
    image = [pictures.noise(100 + number, 192, 192) for number in range(12)]
    prompts = [
        (number, (image[number % 12], Text(f"Passage {number} says so. "), Text(question)))
        for number in range(36)
        for question in ("What is the value of the bar?", "Is it the passage or the image that is right here?")
    ]
    requests = [
        Request(f"{number}-{place}", 0, (Message("user", parts),), Decoding(max_tokens=1))
        for place, (number, parts) in enumerate(prompts)
    ]
    drawn = random.Random(1).sample(range(36), 36)
    random.Random(2).shuffle(requests)
    windows = [
        [item for item in requests if int(item.instance_id.partition("-")[0]) in drawn[start : start + 12]]
        for start in (0, 12, 24)
    ]
    backend = loaded(model, pictures.path)
    contents = [[backend._preprocessor.inputs(item).content for item in window] for window in windows]
    longest = max(len(content) for window in contents for content in window)
    backend._rows.cache_sizes = least_caches(backend._model.config, longest)
    backend._start_batched(4, share=True)
    for window in windows:
        pending = [(PendingInstance(n, Instance(item.id, "", "", "", ()), ()), item) for n, item in enumerate(window)]
        answers(backend, [item for _, item in order_by_prefix(pending)])
    assert backend.reuse is not None
    assert backend.reuse.computed_tokens <= 1.05 * sum(map(count_distinct_tokens, contents))
    assert backend.reuse.encoded == backend.reuse.distinct_images == 12, (
        "an image of an earlier window comes from the disk"
    )
    backend.close()


@pytest.mark.slow
def test_a_quantisation_with_the_same_encoder_reads_the_features(
    pictures: Pictures, tmp_path: Path, folder: Path
) -> None:
    requests = varied(pictures, 3)
    for quantise in (False, True):
        model = build_tiny_vlm(tmp_path / f"model-{quantise}", TEXTS, quantise=quantise)
        backend = loaded(model, pictures.path)
        backend._start_batched(4, share=True)
        answers(backend, requests)
        assert (encoded(backend) == 0) is quantise
        backend.close()
    names = [path.name for path in stored_files(folder)]
    assert len(set(names)) == len(names) > 0


def test_exact_answers_store_nothing(pictures: Pictures, tiny: Path, folder: Path) -> None:
    backend = loaded(tiny, pictures.path)
    answers(backend, [Request("a", 0, (Message("user", (pictures.noise(1), Text("What?"))),), Decoding(max_tokens=2))])
    backend.close()
    assert not stored_files(folder)


# --- files ---------------------------------------------------------------------------------------

images = itertools.count()
shapes = st.lists(st.integers(0, 4), max_size=3)
arrays = st.builds(
    lambda shape, dtype: mx.random.normal(shape).astype(dtype),
    shapes,
    st.sampled_from([mx.float32, mx.bfloat16, mx.int32]),
)
trees = st.recursive(
    arrays | st.none() | st.just(UNUSED),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
)


@settings(max_examples=50)
@given(trees)
def test_what_is_read_is_what_was_written(tree: Any) -> None:
    features, image = store(default_cache()), next(images)
    features.put(image, [tree])
    back = features.get(image)
    assert equal([tree], back)
    assert back is not None
    assert type(back[0]) is type(tree)


@settings(max_examples=50)
@given(st.data())
def test_no_damaged_file_is_read(data: st.DataObject) -> None:
    features = store(default_cache())
    features.put("image", FEATURES)
    (path,) = stored_files(default_cache())
    original = path.read_bytes()
    position = data.draw(st.integers(0, len(original) - 1))
    flipped = bytearray(original)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    for damaged in (bytes(flipped), original[:position], original + b"0"):
        path.write_bytes(damaged)
        assert features.get("image") is None
        assert not path.exists()


def test_no_array_outlives_its_use(folder: Path) -> None:
    features = store(folder)
    gc.collect()
    gc.disable()  # which does not know how large an array is
    try:
        before = mx.get_active_memory()
        for image in range(3):
            features.put(image, [mx.ones(50_000) * image])
            assert features.get(image) is not None
        assert mx.get_active_memory() - before < 100_000
    finally:
        gc.enable()


def test_features_are_read_under_their_own_name_alone(folder: Path) -> None:
    features = store(folder)
    features.put(1, FEATURES)
    (path,) = stored_files(folder)
    features.put(2, mx.zeros((3, 4)))
    (other,) = set(stored_files(folder)) - {path}
    shutil.copy(path, other)
    assert features.get(2) is None
    assert equal(features.get(1), FEATURES)


def test_other_types_are_not_stored(folder: Path) -> None:
    store(folder).put("image", {"a": mx.ones(2)})
    assert not stored_files(folder)


def test_the_encoder_the_engine_and_the_image_decide(folder: Path) -> None:
    store(folder).put(["image", 1], FEATURES)
    assert equal(store(folder).get(["image", 1]), FEATURES)
    assert store(folder).get(["image", 2]) is None
    assert store(folder, encoder={"weights": "b"}).get(["image", 1]) is None
    assert store(folder, encoder={**ENCODER, "versions": {"mlx": "0.99"}}).get(["image", 1]) is None
    assert store(folder, limit=0).get(["image", 1]) is None


def test_damaged_file_is_deleted_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    features = store(folder)
    features.put("image", FEATURES)
    (path,) = stored_files(folder)
    path.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert features.get("image") is None
    assert caplog.records
    assert not path.exists()
    features.put("image", FEATURES)
    assert equal(features.get("image"), FEATURES)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_takes_nothing_costs_one_warning(
    number: int, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    features = store(folder)
    features.put("before", FEATURES)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(feature_store, "replacing", refuse)
    with caplog.at_level(logging.WARNING):
        for name in ("a", "b"):
            features.put(name, FEATURES)
    assert len(caplog.records) == 1
    assert equal(features.get("before"), FEATURES), "what is there is still read"
    assert len(list((folder / "vision-features").iterdir())) == 1


def test_a_nearly_full_disk_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_folder, "MIN_FREE_BYTES", 2**60)
    store(folder).put("image", FEATURES)
    assert not stored_files(folder)


def test_a_file_in_place_of_the_folder_stops_no_run(folder: Path) -> None:
    folder.mkdir(parents=True)
    place = folder / "vision-features"
    place.write_text("mine")
    features = store(folder)
    assert features.get("image") is None
    features.put("image", FEATURES)
    assert place.read_text() == "mine"


def test_nothing_is_written_through_a_link_in_place_of_the_folder(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "vision-features").symlink_to(outside)
    features = store(folder)
    features.put("image", FEATURES)
    assert features.get("image") is None
    assert not list(outside.iterdir())


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_links_and_fifos_are_never_followed(kind: str, folder: Path, tmp_path: Path) -> None:
    features = store(folder)
    features.put("image", FEATURES)
    (path,) = stored_files(folder)
    outside = tmp_path / "outside"
    path.rename(outside)
    before = outside.read_bytes()
    if kind == "link":
        path.symlink_to(outside)
    else:
        os.mkfifo(path)
    assert store(folder).get("image") is None
    store(folder).put("image", FEATURES)
    assert outside.read_bytes() == before


def test_two_processes_store_one_image_at_the_same_time(folder: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; import mlx.core as mx\n"
        "from mlx_backends.mlx.vision.feature_folder import FeatureFolder\n"
        "from mlx_backends.mlx.vision.feature_store import FeatureStore\n"
        "store = FeatureStore(lambda: {}, FeatureFolder(Path(sys.argv[1]), 2**20))\n"
        "for _ in range(50): store.put('image', mx.ones(5000)); assert store.get('image') is not None\n"
        "os._exit(0)  # as a worker ends: without MLX's own end, which can abort the process"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(folder)]) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(list((folder / "vision-features").iterdir())) == 1


# --- failures ------------------------------------------------------------------------------------


def test_an_error_of_mlx_while_saving_costs_one_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    features = store(folder)
    features.put("before", FEATURES)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("[save_safetensors] failed")

    monkeypatch.setattr(mx, "save_safetensors", fail)
    for name in ("a", "b"):
        features.put(name, FEATURES)
    assert len(caplog.records) == 1
    assert equal(features.get("before"), FEATURES)
    assert len(list((folder / "vision-features").iterdir())) == 1, "no remains of the failed file"


def test_an_encoder_without_a_digest_costs_one_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    def fail() -> Mapping[str, Any]:
        calls.append(1)
        raise FileNotFoundError("config.json") if len(calls) % 2 else RuntimeError("an encoder unlike any other")

    features = FeatureStore(fail, FeatureFolder(folder, 2**20))
    for _ in range(3):
        assert features.get("image") is None
        features.put("image", FEATURES)
    assert len(calls) == 1
    assert not stored_files(folder)


def test_a_fault_of_the_gpu_is_reported(folder: Path) -> None:
    def fail() -> Mapping[str, Any]:
        raise RuntimeError("[METAL] Command buffer execution failed: Insufficient Memory")

    with pytest.raises(RuntimeError):
        FeatureStore(fail, FeatureFolder(folder, 2**20)).get("image")


def test_a_file_that_another_process_removes_ends_no_storing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features, save = store(folder), mx.save_safetensors

    def save_and_lose(*arguments: Any, **named: Any) -> None:
        save(*arguments, **named)
        for part in (folder / "vision-features").glob(".rashomon-*"):
            part.unlink()

    monkeypatch.setattr(mx, "save_safetensors", save_and_lose)
    features.put("lost", FEATURES)
    assert features.get("lost") is None
    monkeypatch.setattr(mx, "save_safetensors", save)
    features.put("next", FEATURES)
    assert equal(features.get("next"), FEATURES)


@pytest.mark.slow
def test_processes_that_note_encoders_at_the_same_time_lose_none(folder: Path) -> None:
    script = (
        "import os, sys; import platformdirs; from pathlib import Path\n"
        "platformdirs.user_cache_path = lambda name: Path(sys.argv[1])\n"
        "platformdirs.user_state_path = lambda name: Path(sys.argv[1]) / 'state'\n"
        "import mlx.core as mx; from mlx_backends.mlx.vision.feature_store import encoder_digest\n"
        "for number in range(20): encoder_digest({'w': mx.ones(3) * number}, f'{sys.argv[2]}-{number}')\n"
        "os._exit(0)"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(folder), name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    noted = json.loads((folder / "vision-features/encoders.json").read_bytes())
    assert len(noted) == 40
