"""Proxies: which one leads to a URL, and what is displayed of it."""

from __future__ import annotations

import os

import pytest

from benchmarks.errors import SpecError
from benchmarks.fetch.proxies import proxy_for_scheme, proxy_name, proxy_of, proxy_secrets

PROXY = "http://proxy.invalid:3128"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def name_of(url: str) -> str | None:
    proxy = proxy_of(url)
    return proxy.name if proxy else None


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.255.3.4", "127.1", "127.0.0.1.", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "0"),
        *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1%lo]"),
        *("localhost", "LocalHost", "localhost.", "a.localhost", "localhost.localdomain", "ip6-localhost"),
    ],
)
def test_this_machine_is_reached_directly(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, PROXY)
    monkeypatch.setenv("NO_PROXY", "elsewhere.invalid")
    for url in (f"http://{host}", f"https://{host}:8080/v1"):
        assert proxy_of(url) is None


@pytest.mark.parametrize(
    "host", ["128.0.0.1", "10.0.0.1", "[fe80::1]", "localhost.example", "notlocalhost", "1270.0.0.1"]
)
def test_other_hosts_are_not_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", PROXY)
    assert name_of(f"http://{host}/v1") == PROXY


def test_the_proxy_of_a_scheme_comes_before_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_of("https://far.invalid") is None
    monkeypatch.setenv("all_proxy", "all.invalid:1")
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    assert name_of("https://far.invalid") == PROXY
    assert name_of("http://far.invalid") == "http://all.invalid:1"
    proxies = [proxy_for_scheme(scheme) for scheme in ("http", "https")]
    assert [proxy.source for proxy in proxies if proxy] == ["all_proxy", "HTTPS_PROXY"]


@pytest.mark.parametrize(
    ("entries", "excepted"),
    [
        ("far.invalid", ("far.invalid", "a.far.invalid", "FAR.invalid", "far.invalid.")),
        ("x.invalid, .far.invalid", ("a.far.invalid", "x.invalid")),
        ("*.far.invalid", ("a.far.invalid",)),
        ("far.invalid:80", ("far.invalid",)),
        ("10.0.0.0/8", ("10.1.2.3",)),
        ("10.1.2.3,fd00::/8", ("10.1.2.3", "[fd00::1]")),
        ("[fd00::1]", ("[fd00::1]",)),
        ("a,*", ("far.invalid", "10.1.2.3")),
    ],
)
def test_what_no_proxy_excepts(entries: str, excepted: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    monkeypatch.setenv("no_proxy", entries)
    for host in excepted:
        assert proxy_of(f"http://{host}/v1") is None, host
    if "*" not in entries.split(","):
        for host in ("notfar.invalid", "11.1.2.3", "[fe80::1]"):
            assert name_of(f"http://{host}/v1") == PROXY, host


def test_settings_of_the_system_hold_where_the_environment_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.fetch.proxies.getproxies", lambda: {"https": PROXY})
    monkeypatch.setattr("benchmarks.fetch.proxies.proxy_bypass", lambda host: host.startswith("intranet.invalid"))
    proxy = proxy_of("https://far.invalid/v1")
    assert proxy is not None
    assert (proxy.name, proxy.source) == (PROXY, "the system's settings")
    assert proxy_of("https://intranet.invalid") is None
    assert proxy_of("https://127.0.0.1:8080") is None


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://somebody:secret@Proxy.invalid", "http://proxy.invalid:80"),
        ("https://secret@proxy.invalid/", "https://proxy.invalid:443"),
        ("somebody:secret@proxy.invalid:3128", "http://proxy.invalid:3128"),
        ("http://[fd00::1]:1", "http://[fd00::1]:1"),
        ("socks5h://proxy.invalid", "socks5h://proxy.invalid:1080"),
    ],
)
def test_the_name_of_a_proxy_has_no_credentials(url: str, name: str) -> None:
    assert proxy_name(url, "it") == name


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "http://",
            "socks4://h:1",
            "ftp://secret@h",
            "http://secret@h:x",
            "http://h:0",
            "http://h:99999",
            "h h",
            "a..b",
            "h" * 64,
        ),
        *(
            "http://u:1#secret@h",
            "http://u:1/secret@h",
            "http://u:1?secret@h",
            "http://secret@h,proxy=x",
            "http://h\x1b[31m",
        ),
    ],
)
def test_an_invalid_proxy_is_not_quoted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="it is not a valid proxy URL") as error:
        proxy_name(url, "it")
    assert "secret" not in str(error.value)
    if url:
        monkeypatch.setenv("HTTP_PROXY", url)
        with pytest.raises(SpecError, match="HTTP_PROXY"):
            proxy_of("http://far.invalid")


def test_credentials_are_known_as_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://somebody:pass%40word@proxy.invalid")
    monkeypatch.setenv("all_proxy", "me:word@proxy.invalid:1")
    monkeypatch.setenv("NO_PROXY", "me@there")
    assert proxy_secrets() == {"somebody", "pass@word", "somebody:pass@word", "word", "me:word"}
    proxy = proxy_of("http://far.invalid")
    assert "word" not in repr(proxy)
