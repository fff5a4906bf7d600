"""Memory estimates, and the refusal of models that do not fit before they are loaded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Text
from mlx_backends.models import memory_estimate
from mlx_backends.models.memory_estimate import GIB, device_info, memory_fit, required_memory
from mlx_backends.registry import load_backend
from tests.mlx_backends.conftest import Pictures, answer, request_of


@given(st.integers(0, 10**13))
def test_memory_need_is_weights_plus_allowance(weights: int) -> None:
    assert required_memory(weights) == weights + weights // 8 + GIB


def test_metal_limit_makes_the_estimate_exact() -> None:
    device = {"device_name": "Apple M2 Pro", "max_recommended_working_set_size": 11 * GIB, "memory_size": 16 * GIB}
    good, bad = memory_fit(8 * GIB, device), memory_fit(9 * GIB, device)
    assert (good.need, good.available, good.ok) == (10 * GIB, 11 * GIB, True)
    assert not bad.ok
    assert bad.source == "Metal's recommended working set"
    assert bad.sentence == (
        "it needs about 11.1 GiB (9.0 GiB of weights and working memory) and does not fit in the 11.0 GiB of "
        "Metal's recommended working set"
    )


@pytest.mark.parametrize(("total", "share"), [(16, 2 / 3), (36, 2 / 3), (64, 3 / 4)])
def test_mac_without_mlx_is_estimated(total: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctl(command: list[str], **_: object) -> Any:
        assert command[-1] == "hw.memsize"
        return SimpleNamespace(returncode=0, stdout=f"{total * GIB}\n")

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("subprocess.run", sysctl)
    fit = memory_fit(GIB)
    assert fit.available == pytest.approx(total * GIB * share)
    assert f"estimated from {total} GiB" in fit.source


def test_other_machines_reserve_a_memory_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    for total, have in ((8, 6), (64, 56), (1, 0)):
        monkeypatch.setattr(memory_estimate, "_total", lambda total=total: total * GIB)
        assert memory_fit(0).available == have * GIB


@pytest.mark.parametrize("figure", [None, 0, -1, "12", 1.5])
def test_unusable_device_value_is_ignored(figure: object) -> None:
    assert memory_fit(0, {"max_recommended_working_set_size": figure}) == memory_fit(0)


def test_host_memory_is_positive() -> None:
    assert isinstance(device_info(), dict)
    assert memory_fit(0, device_info()).available > GIB


@pytest.mark.parametrize("kind", ["function", "metal", "neither", "fails"])
def test_device_information_is_found_in_any_mlx_version(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlx.core as mx

    def fail() -> dict[str, object]:
        raise RuntimeError("[metal::device_info] no Metal back-end")

    info = {"max_recommended_working_set_size": 5}
    metal = SimpleNamespace(device_info=lambda: info) if kind == "metal" else SimpleNamespace()
    monkeypatch.setattr(mx, "device_info", {"function": lambda: info, "fails": fail}.get(kind), raising=False)
    monkeypatch.setattr(mx, "metal", metal, raising=False)
    assert device_info() == (info if kind in ("function", "metal") else {})


def test_too_large_model_is_refused_with_numbers_before_loading(
    tiny: Path, pictures: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_estimate, "device_info", lambda: {"max_recommended_working_set_size": GIB // 2})
    with monkeypatch.context() as patch:
        patch.setattr("mlx_backends.mlx.load.load", lambda path: pytest.fail("it was loaded"))
        with pytest.raises(ModelError, match=r"needs about 1\.0 GiB .* does not fit in the 0\.5 GiB .* --force"):
            load_backend(str(tiny), pictures.path)
    forced = load_backend(str(tiny), pictures.path, force=True)
    assert answer(forced, request_of(Text("Hello."))).error is None
