"""Requests of downloads and of the Hub's library: each goes through the proxy of its own URL."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from huggingface_hub import HfApi, constants, get_session
from huggingface_hub.errors import OfflineModeIsEnabled

from benchmarks.errors import SpecError
from benchmarks.fetch.hub_library import guard_library
from benchmarks.fetch.proxied_transport import RoutedTransport
from tests.support.fake_hub import FakeHub, Repo
from tests.support.recording_proxy import RecordingProxy


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingProxy]:
    with RecordingProxy() as recording:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://somebody:secret@{recording.address}")
        monkeypatch.setenv("no_proxy", "elsewhere.invalid")
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
        yield recording


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub().running() as running:
        running.repos["org/name"] = Repo("model", {"config.json": b"{}"})
        for name, value in running.constants.items():
            monkeypatch.setattr(constants, name, value)
        yield running


def test_a_redirection_to_this_machine_is_followed_directly(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repos["org/name"].files["large.bin"] = bytes(2000)
    monkeypatch.setenv("http_proxy", hub.url)
    with httpx2.Client(transport=RoutedTransport(), follow_redirects=True) as client:
        response = client.get("http://hub.invalid/org/name/resolve/main/large.bin")
    assert response.content == bytes(2000)
    assert [request.host.partition(":")[0] for request in hub.asked] == ["hub.invalid", "localhost"]


def test_both_schemes_go_through_the_proxy_with_its_credentials(proxy: RecordingProxy) -> None:
    with httpx2.Client(transport=RoutedTransport()) as client:
        assert client.get("http://far.invalid/a").status_code == 407
        with pytest.raises(httpx2.ProxyError):
            client.get("https://far.invalid/b")
        with pytest.raises(httpx2.ConnectError):
            client.get("http://elsewhere.invalid/c")
    assert [(request.method, request.target) for request in proxy.carried] == [
        ("GET", "http://far.invalid/a"),
        ("CONNECT", "far.invalid:443"),
    ]
    assert all(request.headers["proxy-authorization"].startswith("Basic ") for request in proxy.carried)


def test_the_hubs_library_asks_a_hub_on_this_machine_directly(proxy: RecordingProxy, hub: FakeHub) -> None:
    guard_library()
    assert HfApi(endpoint=hub.url).model_info("org/name").id == "org/name"
    assert proxy.carried == []
    assert constants.HF_HUB_DISABLE_XET, "Xet's client reads the proxies by itself"
    get_session().get("http://far.invalid/a")
    assert [request.target for request in proxy.carried] == ["http://far.invalid/a"]


def test_the_hubs_library_stays_offline_where_that_is_set(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    guard_library()
    with pytest.raises(OfflineModeIsEnabled):
        HfApi(endpoint=hub.url).model_info("org/name")
    assert hub.asked == []


def test_an_invalid_proxy_is_refused_before_the_library_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks4://secret@h")
    with pytest.raises(SpecError, match="https_proxy"):
        guard_library()
