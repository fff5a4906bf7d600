"""Stored checks: used while nothing changes that they depend on, confirmed by every run, and never trusted further."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.untrusted import private_state
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Request, Text
from mlx_backends import stored_checks
from mlx_backends.base import EngineInfo, no_media
from mlx_backends.core.batch_invariance import (
    CONFIRMED_TOKENS,
    SEQUENTIAL,
    BatchInvariance,
    ModeCheck,
    ReferenceAnswer,
    select_requests,
)
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.mode_choice import SEQUENTIAL_SHARED
from mlx_backends.models.host_machine import host_info
from mlx_backends.sight_check import ReplaceableMedia, SightCheck, sight_requests, stored_or_checked_sight
from mlx_backends.stored_checks import StoredChecks, checks_path, forget_checks, read_checks
from tests.mlx_backends.conftest import Pictures, request_of
from tests.support.benchmark_requests import answers
from tests.support.full_disk import no_room_above
from tests.support.model_matrix import Subject, shrunk
from tests.support.tiny_models import FAMILIES, TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm

BATCH = "in a batch"
INFO = EngineInfo("mlx-vlm", "tiny", weights="w", quantisation="4-bit", versions={"mlx": "1", "patches": "a,b"})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def requests_with(*images: int) -> list[Request]:
    """Two requests for each number of images, which the two share."""
    return [
        Request(
            f"{number}-{sibling}",
            0,
            (Message("user", (*(Media(f"{number}{i}" * 32, ".png") for i in range(count)), Text(f"{sibling}?"))),),
            Decoding(max_tokens=16),
        )
        for number, count in enumerate(images)
        for sibling in range(2)
    ]


class Model:
    """A model of ten tokens that is checked: with rounding, with a fault in its batches, or with an error in them."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.padded = 0
        self.fault = 0.0
        self.error: Exception | None = None

    def checked(
        self,
        info: EngineInfo = INFO,
        requests: Sequence[Request] = tuple(requests_with(1, 1, 0)),
        width: int = 8,
        prompt_tokens: int = 64,
    ) -> BatchInvariance:
        self.calls = []
        conditions = {"width": width, "prompt_tokens": prompt_tokens}
        check = ModeCheck(select_requests(requests), self._answer, self._padded, {BATCH: self._batch}, conditions)
        result = check.run(StoredChecks(asdict(info)))
        assert result is not None
        return result

    @property
    def made_whole_check(self) -> bool:
        return "padded" in self.calls

    def _answer(self, request: Request) -> ReferenceAnswer:
        self.calls.append("answer")
        tokens = range(request.decoding.max_tokens)
        return ReferenceAnswer(request, tokens, self._logits(request, len(tokens)))

    def _logits(self, request: Request, tokens: int) -> Any:
        return np.random.default_rng(int(request.digest[:8], 16)).standard_normal((8, 10))[:tokens] * 10

    def _padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        self.calls.append("padded")
        self.padded = len(cases)
        return [case.logits + 1e-5 for case in cases]

    def _batch(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        self.calls.append("batch")
        if self.error is not None:
            raise self.error
        forced = [self._logits(case.request, len(case.tokens)) for case in cases]
        return [logits + 1e-5 + self.fault * np.arange(10) for logits in forced]


@pytest.fixture
def model() -> Model:
    return Model()


def test_later_run_confirms_the_stored_check_on_one_request(model: Model) -> None:
    first = model.checked()
    assert (first.way, first.cases, first.confirmed, model.made_whole_check) == (BATCH, 5, 0, True)
    second = model.checked()
    assert model.calls == ["answer", "batch"]
    assert second == replace(first, confirmed=second.confirmed)
    assert 0 < second.confirmed <= CONFIRMED_TOKENS
    (stored,) = read_checks()
    assert (stored.key, stored.at, stored.model) == (first.key, first.checked_at, "tiny")


def test_a_model_that_padding_disturbs_is_checked_and_confirmed_without_it(model: Model) -> None:
    def disturbed(cases: Sequence[ReferenceAnswer]) -> list[Any]:
        return [case.logits + 20 * np.arange(10) for case in cases]

    def checked(unpadded: Any, weights: str) -> BatchInvariance:
        requests, modes = select_requests(requests_with(1, 1, 0)), {BATCH: model._batch}
        check = ModeCheck(
            requests, model._answer, disturbed, modes, {}, unpadded=unpadded, unpadded_modes={"equal": model._batch}
        )
        result = check.run(StoredChecks(asdict(INFO) | {"weights": weights}))
        assert result is not None
        return result

    result = checked(model._padded, "good")
    assert (result.way, list(result.failed), result.confirmed) == ("equal", [BATCH], 0)
    assert result.failed[BATCH].startswith("padding alone moves")
    later = checked(model._padded, "good")
    assert (later.way, later.confirmed > 0) == ("equal", True)
    result = checked(disturbed, "bad")
    assert result.way == SEQUENTIAL
    assert result.failed["equal"].startswith("another prompt in the batch alone moves")


def test_checks_of_a_model_are_known_whatever_their_conditions(model: Model) -> None:
    model.checked(prompt_tokens=128)
    checks = StoredChecks(asdict(INFO))
    assert (checks.has("batches"), checks.has("sight")) == (True, False)
    assert not StoredChecks(asdict(replace(INFO, weights="another"))).has("batches")


def test_noise_is_measured_on_two_requests(model: Model) -> None:
    assert model.checked().cases == 5
    assert model.padded == 2


@pytest.mark.parametrize(
    "change",
    [
        {"info": replace(INFO, versions={**INFO.versions, "mlx": "2"})},
        {"info": replace(INFO, versions={**INFO.versions, "patches": "a"})},
        {"info": replace(INFO, weights="another")},
        {"info": replace(INFO, quantisation="bf16")},
        {"info": replace(INFO, device="metal")},
        {"info": replace(INFO, engine="mlx-lm")},
        {"width": 4},
        {"prompt_tokens": 128},
        {"requests": requests_with(1, 1, 1)},
        {"requests": requests_with(1, 2, 0)},
        {"requests": requests_with(1, 1, 0)[::2]},
    ],
    ids=[
        *("library", "patches", "weights", "quantisation", "device", "engine", "width", "longer prompts"),
        *("no texts", "several images", "nothing shared"),
    ],
)
def test_changed_condition_needs_a_new_check(change: dict[str, Any], model: Model) -> None:
    model.checked()
    different = model.checked(**change)
    assert model.made_whole_check
    model.checked()
    assert not model.made_whole_check, "the first one is still stored"
    assert different.key in {check.key for check in read_checks()}


@pytest.mark.parametrize("what", ["machine", "code", "environment"])
def test_another_machine_or_code_needs_a_new_check(what: str, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model.checked()
    if what == "machine":
        other = replace(host_info(), chip="Apple M9")
        monkeypatch.setattr(stored_checks, "host_info", lambda: other)
        assert not any(check.is_of_this_machine for check in read_checks())
    elif what == "code":
        monkeypatch.setattr(stored_checks, "code_digest", lambda: "0" * 64)
    else:
        monkeypatch.setenv("MLX_ENABLE_TF32", "0")
    model.checked()
    assert model.made_whole_check


def test_engine_without_a_digest_of_its_weights_is_checked_every_time(model: Model) -> None:
    for _ in range(2):
        assert model.checked(replace(INFO, weights=None)).key == ""
        assert model.made_whole_check
    assert read_checks() == []


# --- the confirmation -------------------------------------------------------------------------------


def test_fault_since_the_check_leads_to_a_new_one(model: Model, caplog: pytest.LogCaptureFixture) -> None:
    before = model.checked()
    model.fault = 3.0
    broken = model.checked()
    assert model.made_whole_check
    assert (broken.way, list(broken.failed), broken.confirmed) == (SEQUENTIAL, [BATCH], 0)
    assert before.key[:12] in caplog.text
    (stored,) = read_checks()
    assert (stored.key, stored.result["way"]) == (before.key, SEQUENTIAL)
    model.checked()
    assert model.calls == [], "a model that answers one request at a time has nothing to confirm"


def test_change_beyond_the_stored_noise_is_found_although_no_token_changes(model: Model) -> None:
    model.checked()
    model.fault = 1e-4
    model.checked()
    assert model.made_whole_check


def test_error_in_the_confirmation_leads_to_a_new_check(model: Model) -> None:
    model.checked()
    model.error = RuntimeError("a shape does not fit")
    assert model.checked().way == SEQUENTIAL
    assert model.made_whole_check


def test_lack_of_memory_is_not_stored(model: Model) -> None:
    model.error = MemoryError()
    failed = model.checked()
    assert (failed.way, failed.key, failed.repeatable) == (SEQUENTIAL, "", False)
    model.error = None
    assert model.checked().way == BATCH


# --- the file ---------------------------------------------------------------------------------------


def edited(change: Callable[[dict[str, Any]], None]) -> str:
    content = json.loads(checks_path().read_text())
    change(content["checks"][0])
    return json.dumps(content)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"format": 1, "checks": [NaN, 7, null, {}]}',
        '{"format": 2, "checks": []}',
        " " * (2 << 20),
        *(
            lambda row, name=name, value=value: row["result"].__setitem__(name, value)
            for name, value in {
                "way": 7,
                "noise": -1.0,
                "shift": True,
                "cases": "6",
                "tokens": 1.5,
                "failed": {"x": 7},
            }.items()
        ),
        lambda row: row["result"].__setitem__("way", "in a mode that there is not"),
        lambda row: row["result"].update(noise=1e9, shift=1e9),
        lambda row: row.__setitem__("at", 1e300),
        lambda row: row.__setitem__("result", []),
        lambda row: row["result"].clear(),
    ],
)
def test_damaged_or_hostile_file_is_ignored(content: Any, model: Model) -> None:
    first = model.checked()
    checks_path().write_text(edited(content) if callable(content) else content)
    again = model.checked()
    assert model.made_whole_check
    assert (again.way, again.noise, again.key) == (first.way, first.noise, first.key)
    model.checked()
    assert not model.made_whole_check, "it was replaced by a good one"


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_something_else_than_a_file_is_ignored(kind: str, model: Model, tmp_path: Path) -> None:
    first = model.checked()
    stored = checks_path().rename(tmp_path / "elsewhere")
    if kind == "link":
        checks_path().symlink_to(stored)
    elif kind == "pipe":
        os.mkfifo(checks_path())
    else:
        checks_path().mkdir()
    again = model.checked()
    assert model.made_whole_check
    assert again.way == first.way
    assert again.key == ("" if kind == "folder" else first.key)


def test_folder_that_cannot_be_written_costs_only_a_new_check(
    model: Model, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state.write_text("a file where the folder should be")
    for _ in range(2):
        result = model.checked()
        assert (result.way, result.key, model.made_whole_check) == (BATCH, "", True)
    assert "cannot be stored" in caplog.text


def test_full_disk_keeps_the_earlier_checks(model: Model) -> None:
    model.checked()
    before = checks_path().read_text()
    with no_room_above(16):
        result = model.checked(width=2)
    assert (result.way, result.key) == (BATCH, "")
    assert checks_path().read_text() == before
    assert [path.name for path in checks_path().parent.iterdir()] == [checks_path().name]


@pytest.mark.slow
def test_two_runs_store_at_the_same_time() -> None:
    def store(number: int) -> None:
        for width in range(20):
            Model().checked(replace(INFO, weights=str(number)), width=width)

    with ThreadPoolExecutor(2) as pool:
        stores = [pool.submit(store, number) for number in range(2)]
        while not all(future.done() for future in stores):
            assert json.loads(private_state.read(checks_path().name) or "{}") is not None
    for future in stores:
        future.result()
    assert len(read_checks()) == 2 * 20


def test_old_checks_make_room_for_new_ones(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_checks, "_MAX_CHECKS", 3)
    keys = [model.checked(width=width).key for width in range(5)]
    assert [check.key for check in read_checks()] == keys[:1:-1]


def test_checks_are_forgotten(model: Model) -> None:
    assert forget_checks() == 0
    model.checked()
    assert forget_checks() == 1
    assert read_checks() == []
    model.checked()
    assert model.made_whole_check


# --- real models ------------------------------------------------------------------------------------

FAST = ("qwen3_vl",)


@pytest.mark.parametrize(
    "family", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in sorted(FAMILIES)]
)
def test_answers_with_a_stored_check_equal_fresh_and_sequential_ones(family: str, tmp_path: Path) -> None:
    subject = Subject(family, tmp_path)
    backend, requests = subject.backend, subject.mixed
    backend.use_sequential_mode()
    exact = answered(answers(backend, requests))
    ways = []
    for confirms in (False, True):
        backend.stored_checks = StoredChecks(asdict(backend.info))
        with shrunk(family):
            result = backend.choose_mode(requests)
            assert result is not None
            assert bool(result.confirmed) == (confirms and result.way != SEQUENTIAL)
            assert answered(answers(backend, requests)) == exact
        ways.append((result.way, result.failed, result.key, result.checked_at, result.lacks))
    assert ways[0] == ways[1]
    print(f"{family}: {ways[0][0]}, {len(exact)} answers, {len(set(exact.values()))} different")
    subject.close()


def answered(generations: dict[str, Generation]) -> dict[str, tuple[Any, ...]]:
    return {name: (generation.tokens, generation.error is None) for name, generation in generations.items()}


@pytest.mark.slow
def test_text_model_with_a_stored_check_answers_as_without(tmp_path: Path) -> None:
    backend = load_backend(str(build_tiny_lm(tmp_path / "lm", TEXTS, quantise=False)), no_media)
    requests = [
        replace(request_of(Text(f"{number}: {'bar ' * (7 * number % 40)}?")), instance_id=str(number))
        for number in range(12)
    ]
    backend.use_sequential_mode()
    exact = answered(answers(backend, requests))
    backend.stored_checks = StoredChecks(asdict(backend.info))
    keys = []
    for confirms in (False, True):
        result = backend.choose_mode(requests)
        assert result is not None
        assert (result.way, bool(result.confirmed), backend.capacity > 1) == ("in batches", confirms, True)
        assert answered(answers(backend, requests)) == exact
        keys.append(result.key)
    assert keys[0] == keys[1] != ""
    backend.close()


@pytest.mark.slow
def test_patch_that_is_lost_leads_to_a_new_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_vlm.generate import ar

    from mlx_backends.mlx.patches import qwen3_vl_deepstack

    subject = Subject("qwen3_vl", tmp_path)
    backend, requests = subject.backend, subject.mixed
    expected = answered(answers(backend, requests))
    backend.stored_checks = StoredChecks(asdict(backend.info))
    before = backend.choose_mode(requests)
    merge = ar._merge_prefill_prompt_kwargs
    monkeypatch.setattr(qwen3_vl_deepstack, "AFFECTED_VERSIONS", ())
    monkeypatch.setattr(ar, "_merge_prefill_prompt_kwargs", getattr(merge, "__wrapped__", merge))
    after = backend.choose_mode(requests)
    assert before is not None
    assert after is not None
    assert (after.way, after.confirmed, after.key) == (SEQUENTIAL_SHARED, 0, before.key)
    assert answered(answers(backend, requests)) == expected
    subject.close()


# --- the sight check --------------------------------------------------------------------------------


def test_stored_sight_check_is_confirmed_on_one_image(
    tmp_path: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject("qwen3_vl", tmp_path)
    backend, media = subject.backend, ReplaceableMedia(pictures.path)
    backend._preprocessor._media = media
    first, second = pictures.noise(1, 96, 64), pictures.noise(2, 96, 64)
    selected = sight_requests([request_of(first, Text("?")), request_of(first, second, Text("?"))])
    checks = StoredChecks(asdict(backend.info))
    probes: list[Request] = []
    probe = backend.probe

    def counted(request: Request, *arguments: Any, **named: Any) -> Any:
        probes.append(request)
        return probe(request, *arguments, **named)

    monkeypatch.setattr(backend, "probe", counted)

    def checked() -> SightCheck:
        probes.clear()
        result = stored_or_checked_sight(backend, media, selected, checks)
        assert result is not None
        return result

    new = checked()
    assert (new.problem, new.images, new.confirmed, len(probes) > 2) == ("", 3, 0, True)
    again = checked()
    assert again == replace(new, confirmed=1)
    assert len(probes) == 2
    with monkeypatch.context() as blind:
        blind.setattr(backend, "probe", lambda request, *more, **named: probe(selected[0], *more, **named))
        result = stored_or_checked_sight(backend, media, selected, checks)
        assert result is not None
        assert result.problem
        assert result.key == ""
    assert checked().problem == ""
    subject.close()
