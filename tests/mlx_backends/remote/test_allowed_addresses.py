"""Agreements to addresses: each is for an address, and for the proxy that leads there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.errors import AddressError, SpecError
from benchmarks.untrusted import private_state
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import allowed_addresses, check_ready
from tests.support.trust import elsewhere

PROXY = "http://proxy.invalid:3128"
MODEL = "endpoint:m@https://model.invalid/v1"
LOCAL = "endpoint:m@http://127.0.0.1:8080/v1"


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with elsewhere():
        yield


def ready(*models: str) -> bool:
    """Return whether the models may be asked, in both ways that the product finds out."""
    allowed = allowed_addresses.all_allowed(models)
    for model in models:
        try:
            check_ready(model, RemoteOptions())
        except AddressError:
            assert not allowed
            return False
    assert allowed
    return True


def test_agreements_of_earlier_versions_hold_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    private_state.write(allowed_addresses.ADDRESSES_FILE, "https://model.invalid:443\nhttp://127.0.0.1:8080\n")
    assert ready(MODEL, LOCAL)
    monkeypatch.setenv("ALL_PROXY", PROXY)
    assert ready(LOCAL), "no proxy leads to this machine"
    assert not ready(MODEL)
    assert allowed_addresses.new_addresses([MODEL, LOCAL]) == [f"https://model.invalid:443,proxy={PROXY}"]
    monkeypatch.setenv("NO_PROXY", "model.invalid")
    assert ready(MODEL)


def test_agreements_with_several_proxies_stay_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    for proxy in (PROXY, "socks5://other.invalid", ""):
        monkeypatch.setattr("benchmarks.fetch.proxies.find_spec", lambda name: name)
        monkeypatch.setenv("https_proxy", proxy)
        assert not ready(MODEL), proxy
        allowed_addresses.allow(allowed_addresses.new_addresses([MODEL]))
        assert ready(MODEL)
    for proxy in ("http://proxy.invalid:3129", "https://proxy.invalid:3128"):
        monkeypatch.setenv("https_proxy", proxy)
        assert not ready(MODEL)
    for proxy in ("http://somebody:secret@PROXY.invalid:3128/", "proxy.invalid:3128"):
        monkeypatch.setenv("https_proxy", proxy)
        assert ready(MODEL), "the same proxy"
    assert "secret" not in (private_state.read(allowed_addresses.ADDRESSES_FILE) or "")


def test_the_address_of_a_key_is_allowed_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RASHOMON_ENDPOINT_KEY", "https://model.invalid:443=0123456789abcdef")
    assert ready(MODEL)
    monkeypatch.setenv("https_proxy", PROXY)
    assert not ready(MODEL)


def test_a_vendors_own_encrypted_address_needs_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("https_proxy", PROXY)
    assert ready("openai:m")


def test_an_address_to_allow_can_have_a_proxy() -> None:
    text = " http://Model.invalid/v1,proxy=http://somebody:secret@Proxy.invalid "
    assert allowed_addresses.parse_address(text) == "http://model.invalid:80,proxy=http://proxy.invalid:80"
    for invalid in ("http://h,proxy=", "http://h,proxy=ftp://secret@p", ",proxy=http://p"):
        with pytest.raises(SpecError) as error:
            allowed_addresses.parse_address(invalid)
        assert "secret" not in str(error.value)
