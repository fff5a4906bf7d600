"""A machine for clients of remote models: keys, no proxy, short waits."""

from __future__ import annotations

import os

import pytest

from mlx_backends.remote import rate_limit
from tests.support.remote import KEYS


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every vendor's key, and take proxies and OpenAI's other variables away."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rate_limit, "BACKOFF_BASE_S", 0.01)
