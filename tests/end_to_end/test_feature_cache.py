"""Whole runs with vision features on disk: shared with later work, and the same answers whatever happens to the folder."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from app.store.run_facts import WorkDone
from app.store.run_store import RunStore
from benchmarks.errors import StoreError
from benchmarks.vocabulary import canonical_json
from mlx_backends.mlx.vision import feature_folder, vision_cache
from mlx_backends.mlx.vision.feature_folder import FOLDER, LIMIT
from mlx_backends.mlx.vision.feature_store import FeatureStore
from mlx_backends.mlx.vlm_backend import VLMBackend
from mlx_backends.models.host_machine import host_info
from tests.support.adapters import linear_names, make_adapter
from tests.support.command import Rashomon
from tests.support.fp32 import in_fp32
from tests.support.full_disk import disk
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm

_CAPBSET_DROP, _DAC_OVERRIDE, _DAC_READ_SEARCH = 24, 1, 2  # of Linux


@dataclass(frozen=True)
class Home:
    """A user's home in which one model answers the same questions again and again."""

    rashomon: Rashomon
    model: Path

    @property
    def folder(self) -> Path:
        return self.rashomon.home / "cache/rashomon" / FOLDER

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.features"))

    def options(self, name: str, *more: str) -> tuple[str, ...]:
        model = () if "--model" in more else ("--model", str(self.model))
        options = ("--batch", "--benchmark", "cmc-bench", "--limit", "4", "--max-tokens", "4", "--max-pixels", "20000")
        return (*options, *model, *more, "--temperature", "0", "--name", name, "--fresh", "--display", "none")

    def answers(self, name: str, *more: str) -> str:
        """Run and return the samples, tokens included."""
        self.rashomon.run(*self.options(name, *more))
        return self.samples(name)

    def samples(self, name: str) -> str:
        out = self.rashomon.home / "exported" / name
        self.rashomon.run("export", name, "--canonical", "--format", "json", "--out", out)
        return (out / "samples.jsonl").read_text("utf-8")

    def work(self, name: str) -> Counter[str]:
        """Return what the run's workers computed."""
        with RunStore.read(self.rashomon.workspace / "runs" / name) as store:
            return Counter(WorkDone.load(store).counts)

    def limited(self, limit: str) -> Home:
        return replace(self, rashomon=replace(self.rashomon, variables={LIMIT: limit}))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_fp32(build_tiny_vlm(tmp_path_factory.mktemp("models") / "model", TEXTS, quantise=False))


@pytest.fixture
def home(rashomon: Rashomon, model: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_STATE_HOME", str(rashomon.home / "state"))
    return Home(replace(rashomon, variables={LIMIT: "1"}), model)


@pytest.fixture(scope="module")
def expected(built: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The samples of a run without features on disk."""
    place = tmp_path_factory.mktemp("expected")
    shutil.copytree(built, place / "workspace/benchmarks")
    home = Home(Rashomon(place, variables={LIMIT: "0"}), model)
    samples = home.answers("without")
    assert not home.folder.exists()
    assert home.work("without")["distinct_images"] > 2
    return samples


# --- shared work ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_later_run_and_another_prompt_set_encode_nothing(home: Home, expected: str) -> None:
    assert home.answers("first") == expected
    first = home.work("first")
    assert first["distinct_images"] == len(home.files)
    assert home.answers("later") == expected
    home.answers("prompts", "--prompt-set", "careful-auditor")
    for name in ("later", "prompts"):
        assert (home.work(name)["encoded"], home.work(name)["from_disk"]) == (0, first["distinct_images"])


@pytest.mark.slow
def test_a_resumed_run_encodes_no_image_twice(home: Home, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step, answered = VLMBackend.step, list[Any]()

    def interrupted(backend: VLMBackend) -> Any:
        done = step(backend)
        answered.extend(done)
        if len(answered) > 8:
            raise StoreError("the disk is full.")
        return done

    put, encoded = FeatureStore.put, list[str]()

    def noted(store: FeatureStore, key: Any, features: Any) -> None:
        encoded.append(canonical_json(key))
        put(store, key, features)

    monkeypatch.setattr(FeatureStore, "put", noted)
    with monkeypatch.context() as patch:
        patch.setattr(VLMBackend, "step", interrupted)
        home.rashomon.run(*home.options("stopped"), code=2)
    before = len(encoded)
    assert home.answers("stopped") == expected
    assert 0 < before < len(encoded) == len(set(encoded))


@pytest.mark.slow
def test_a_quantisation_encodes_nothing(home: Home, tmp_path: Path) -> None:
    home.answers("first")
    quantised = in_fp32(build_tiny_vlm(tmp_path / "4bit", TEXTS, quantise=True))
    home.answers("quantised", "--model", str(quantised))
    assert home.work("quantised")["encoded"] == 0
    assert home.work("quantised")["from_disk"] == home.work("first")["distinct_images"]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["language_model", "vision_tower"])
def test_an_adapter_encodes_nothing_unless_it_changes_the_encoder(part: str, home: Home, tmp_path: Path) -> None:
    home.answers("first")
    adapter = make_adapter(home.model, tmp_path / "adapter", targets=linear_names(home.model, part))
    adapted = home.answers("adapted", "--adapter", str(adapter))
    work = home.work("adapted")
    assert bool(work["encoded"]) is (part == "vision_tower")
    assert adapted == home.limited("0").answers("without", "--adapter", str(adapter))
    if part == "vision_tower":
        home.answers("again", "--adapter", str(adapter))
        assert home.work("again")["encoded"] == 0


# --- folders that take or give nothing ------------------------------------------------------------


@pytest.mark.slow
def test_a_limit_of_zero_reads_and_stores_nothing(home: Home, expected: str) -> None:
    home.answers("first")
    _poison(home.files)
    before = [path.stat() for path in home.files]
    assert home.limited("0").answers("without") == expected
    assert [path.stat() for path in home.files] == before
    assert home.answers("poisoned") == expected
    work = home.work("poisoned")
    assert work["encoded"] == work["images"], "the check finds them wrong, so nothing is shared"


@pytest.mark.slow
@pytest.mark.parametrize("other", ["chip", "system", "code"])
def test_files_of_another_machine_or_version_are_never_used(
    other: str, home: Home, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if other == "code":
            patch.setattr(vision_cache, "code_digest", lambda: "0" * 64)
        else:
            host = replace(host_info(), chip="M9") if other == "chip" else replace(host_info(), system="another")
            patch.setattr(vision_cache, "host_info", lambda: host)
        home.answers("theirs")
    theirs = set(home.files)
    _poison(home.files)
    assert home.answers("ours") == expected
    assert theirs < set(home.files)
    assert len(home.files) == 2 * len(theirs)
    work = home.work("ours")
    assert work["encoded"] + work["from_disk"] == work["distinct_images"], "nothing wrong was found"


@pytest.mark.slow
def test_a_nearly_full_disk_costs_no_answer(home: Home, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_folder, "MIN_FREE_BYTES", 2**60)
    assert home.answers("full") == expected
    assert not home.files


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "garbage", "a folder"])
def test_damaged_files_cost_no_answer(damage: str, home: Home, expected: str) -> None:
    home.answers("first")
    for path in home.files:
        if damage == "a folder":
            path.unlink()
            path.mkdir()
        else:
            path.write_bytes(path.read_bytes()[:-7] if damage == "truncated" else b"\xff" * 10_000)
    assert home.answers("second") == expected
    assert home.work("second")["encoded"] <= len(home.files)


@pytest.mark.slow
def test_a_full_disk_costs_no_answer(home: Home, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is a disk that holds a few images, and no free space is left to others."""
    monkeypatch.setattr(feature_folder, "MIN_FREE_BYTES", -(2**40))
    home.folder.parent.mkdir(parents=True)
    with disk(home.folder, "40k"):
        assert home.answers("full") == expected
        stored = len(home.files)
        assert 0 < stored < home.work("full")["distinct_images"]
        assert not list(home.folder.glob(".rashomon-*"))
        assert home.answers("again") == expected
        assert home.work("again")["from_disk"] >= stored


@pytest.mark.slow
def test_a_read_only_folder_costs_no_answer_and_is_still_read(home: Home, expected: str) -> None:
    home.answers("first")
    lacking, *others = home.files
    lacking.unlink()
    home.folder.chmod(0o555)
    done = _without_roots_rights(home, *home.options("second"))
    assert done.returncode == 0, done.stderr
    assert home.samples("second") == expected
    assert home.files == others, "nothing was written"
    assert home.work("second")["encoded"] >= 1
    assert home.work("second")["from_disk"] == len(others)


def _poison(files: list[Path]) -> None:
    """Put other features into files, with the right names and checksums."""
    for path in files:
        loaded: Any = mx.load(str(path), format="safetensors", return_metadata=True)
        arrays, metadata = loaded
        zeros = {name: mx.zeros_like(value) for name, value in arrays.items()}
        mx.eval(list(zeros.values()))
        with path.open("wb") as stream:
            mx.save_safetensors(stream, zeros, metadata=metadata)
        data = path.read_bytes()
        path.write_bytes(data + hashlib.sha256(data).digest())


def _without_roots_rights(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run in a process that folders can be closed to, even if its user is root."""

    def give_up_rights() -> None:
        for right in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(_CAPBSET_DROP, right, 0, 0, 0)

    return subprocess.run(
        home.rashomon.command(*arguments),
        env=home.rashomon.environment,
        cwd=home.rashomon.home,
        preexec_fn=give_up_rights if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=False,
    )
