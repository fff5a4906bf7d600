"""Servers by name: their addresses, and the consent that these need like any other."""

from __future__ import annotations

import pytest

from benchmarks.errors import AddressError, SpecError
from mlx_backends.engine_registry import describe
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import check_ready
from mlx_backends.remote.remote_names_and_media import parse
from tests.support.trust import forget


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("endpoint:ollama/qwen2.5vl:7b", "qwen2.5vl:7b", "http://127.0.0.1:11434/v1"),
        ("endpoint:lmstudio/qwen/qwen3-vl-4b", "qwen/qwen3-vl-4b", "http://127.0.0.1:1234/v1"),
        ("endpoint:llamacpp/gemma", "gemma", "http://127.0.0.1:8080/v1"),
        ("endpoint:vllm/Qwen/Qwen3-VL-2B", "Qwen/Qwen3-VL-2B", "http://127.0.0.1:8000/v1"),
        ("endpoint:sglang/m", "m", "http://127.0.0.1:30000/v1"),
        ("endpoint:mlxvlm/m", "m", "http://127.0.0.1:8080/v1"),
        ("endpoint:ollama/m@http://10.0.0.2:4000/v1", "ollama/m", "http://10.0.0.2:4000/v1"),  # as gateways name models
    ],
)
def test_preset_names_model_and_address(name: str, model: str, url: str) -> None:
    parsed = parse(name)
    assert (parsed.model, parsed.base_url) == (model, url)
    assert describe(name).versions["server"] == url.removeprefix("http://")


@pytest.mark.parametrize("name", ["endpoint:ollama", "endpoint:ollama/", "endpoint:other/m", "endpoint:m"])
def test_incomplete_name_is_refused(name: str) -> None:
    with pytest.raises(SpecError):
        parse(name)


def test_preset_needs_consent_like_any_address() -> None:
    forget("http://127.0.0.1:30000/v1")
    with pytest.raises(AddressError):
        check_ready("endpoint:sglang/m", RemoteOptions())
