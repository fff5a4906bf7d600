"""Faults of the GPU while a loaded model answers, injected into MLX's synchronisation and evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest

from benchmarks.vocabulary import Choice, Likelihood, Request, Text
from mlx_backends.base import Backend
from mlx_backends.core.metal_faults import DeviceLostError
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.metal import metal_fault_recovery
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery, dropping, quieten, root_cause, settle
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.support.metal_injector import failure
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm

Plan = Callable[..., None]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Order faults: ``at`` are the kinds that the next synchronisations report, None for none."""
    real = mx.synchronize
    pending: list[str | None] = []

    def synchronize(*stream: Any) -> None:
        kind = pending.pop(0) if pending else None
        if kind is not None:
            raise failure(kind)
        real(*stream)

    monkeypatch.setattr(mx, "synchronize", synchronize)
    return lambda *at: pending.extend(at)


@pytest.fixture(scope="module")
def text_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    backend = load_backend(
        str(build_tiny_lm(tmp_path_factory.mktemp("text") / "tiny", TEXTS, quantise=False)), lambda media: Path()
    )
    yield backend
    backend.close()


@pytest.fixture(params=["image", "text"])
def backend(request: pytest.FixtureRequest, model: Backend) -> Backend:
    loaded: Backend = model if request.param == "image" else request.getfixturevalue("text_model")
    loaded.use_sequential_mode()
    return loaded


def hello(name: str = "hello", **more: Any) -> Request:
    return replace(request_of(Text("Hello, what do you see?")), instance_id=name, **more)


@pytest.mark.parametrize("kinds", [("timeout", "timeout", "victim"), ("buffers",)])
def test_a_request_is_repeated_and_its_first_answer_dropped(
    kinds: tuple[str, ...], backend: Backend, plan: Plan
) -> None:
    expected = answer(backend, hello())
    plan(*kinds)  # the pending errors of computations in flight come one by one
    got = answer(backend, hello())
    assert (got.error, got.tokens) == (None, expected.tokens)


def test_a_second_fault_of_one_request_needs_a_new_process(
    backend: Backend, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answer(backend, hello())
    recover = FaultRecovery.recover

    def recovers(self: FaultRecovery, error: BaseException) -> bool:
        recovered = recover(self, error)
        plan("timeout")
        return recovered

    plan("timeout")
    with monkeypatch.context() as patch:
        patch.setattr(FaultRecovery, "recover", recovers)
        with pytest.raises(DeviceLostError) as lost:
            answer(backend, hello())
    assert lost.value.request_id == hello().id
    backend.cancel(hello().id)
    quieten()
    assert answer(backend, hello()).tokens == expected.tokens


@pytest.mark.parametrize("kind", ["ignored", "unserved"])
def test_a_gpu_that_computes_nothing_more_for_the_process_is_lost_at_once(
    kind: str, backend: Backend, plan: Plan
) -> None:
    plan(kind)
    with pytest.raises(DeviceLostError) as lost:
        answer(backend, hello())
    assert lost.value.request_id == hello().id
    backend.cancel(hello().id)
    assert backend.step() == []


def test_a_likelihood_is_repeated(model: Backend, plan: Plan) -> None:
    model.use_sequential_mode()
    request = hello(form=Likelihood(("yes", "no")))
    expected = answer(model, request)
    plan("interactivity")
    assert answer(model, request).scores == expected.scores


def test_wrong_values_that_lead_to_another_error_are_a_fault(
    backend: Backend, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = hello(form=Choice(("yes", "no")))
    expected = answer(backend, request)
    from mlx_backends.core.constrained_decoding import Constraint

    allowed, calls = Constraint.allowed, iter(range(1000))

    def fails_once(self: Constraint, *arguments: Any) -> Any:
        if next(calls) == 1:
            plan("victim")
            raise ValueError("the answer left the requested form")
        return allowed(self, *arguments)

    monkeypatch.setattr(Constraint, "allowed", fails_once)
    assert answer(backend, request).tokens == expected.tokens


def test_errors_that_do_not_end_mean_that_the_gpu_is_lost(plan: Plan) -> None:
    model = nn.Linear(2, 2)
    recovery = FaultRecovery(model)
    plan("timeout", "timeout")
    assert quieten()
    plan(*["timeout"] * 100)
    assert not recovery.recover(failure("timeout"))


def test_a_computation_is_repeated_once(plan: Plan) -> None:
    recovery = FaultRecovery(nn.Linear(2, 2))
    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise failure("timeout")
        return 7

    with pytest.raises(DeviceLostError):
        recovery.repeat(compute)
    assert recovery.repeat(compute) == 7
    assert len(calls) == 3
    with pytest.raises(ZeroDivisionError):
        recovery.repeat(lambda: 1 // 0)


def test_what_a_model_has_stored_since_it_was_loaded_is_dropped() -> None:
    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self._positions: Any = None
            self._frequencies = mx.arange(3) * 2

    model = Model()
    recovery = FaultRecovery(model)
    weight = model.inner.weight
    model._positions, model.inner.extra = mx.arange(2), mx.arange(5)
    assert recovery.recover(failure("victim"))
    assert model._positions is None
    assert not hasattr(model.inner, "extra")
    assert model.inner.weight is weight
    assert model._frequencies.tolist() == [0, 2, 4]


def test_faults_of_what_is_dropped_do_not_matter(plan: Plan) -> None:
    plan("timeout")
    with dropping():
        raise failure("timeout")
    with pytest.raises(RuntimeError, match="shapes"), dropping():
        raise RuntimeError("shapes differ")
    other = ValueError("wrong")
    assert root_cause(other) is other
    plan("victim")
    assert isinstance(root_cause(other), RuntimeError)
    settle()
    assert metal_fault_recovery.quieten()


def test_a_fault_while_loading_is_no_fault_of_the_model(tiny: Path, pictures: Pictures, plan: Plan) -> None:
    plan("timeout", "victim")
    backend = load_backend(str(tiny), pictures.path)
    assert answer(backend, hello()).error is None
    backend.close()
