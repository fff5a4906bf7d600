"""Requests sent to remote engines, the names of their models, and what is cached of their responses."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Literal
from urllib.parse import quote, urlsplit

import httpx2
import keyring
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from PIL import Image, PngImagePlugin

from app.doctor import workspace_and_network_checks
from app.store.workspace import Workspace
from benchmarks.errors import KeyMissingError, ModelError, SpecError
from benchmarks.vocabulary import Choice, Decoding, JSONObject, Media, Message, Request, Text
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import allowed_addresses, api_keys, is_remote, rate_limit
from mlx_backends.remote.api_budget import Budget, estimate_usage
from mlx_backends.remote.http_errors import retry_after
from mlx_backends.remote.rate_limit import RateLimit
from mlx_backends.remote.remote_names_and_media import address_of, parse
from tests.support.fault_server import FaultServer
from tests.support.recording_proxy import RecordingProxy
from tests.support.remote import KEYS, ask, endpoint, generate_one, nowhere, run
from tests.support.trust import agree_to

pytestmark = pytest.mark.usefixtures("client")

BASES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
LABEL = JSONObject({"label": ("IMAGE", "TEXT"), "why": ()})
SECRET = KEYS["OPENAI_API_KEY"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    faulty = FaultServer()
    for name in BASES:
        monkeypatch.setenv(name, faulty.url)
    return faulty


def picture(folder: Path, size: tuple[int, int] = (60, 40)) -> Media:
    """An image with something in its metadata; its left half is red, its right half blue."""
    image = Image.new("RGB", size, (255, 0, 0))
    image.paste((0, 0, 255), (size[0] // 2, 0, *size))
    metadata = PngImagePlugin.PngInfo()
    metadata.add_text("comment", "where it was taken")
    file = io.BytesIO()
    image.save(file, "PNG", pnginfo=metadata)
    name = sha256(file.getvalue()).hexdigest()
    (folder / f"{name}.png").write_bytes(file.getvalue())
    return Media(name, ".png")


# --- requests ---


@pytest.mark.parametrize("model", ["openai:m", "azure:m", "anthropic:m", "gemini:m"])
@pytest.mark.parametrize(("max_pixels", "size"), [(None, (60, 40)), (600, (30, 20))])
def test_image_is_sent_in_place_without_metadata(
    model: str, max_pixels: int | None, size: tuple[int, int], server: FaultServer, tmp_path: Path
) -> None:
    image = picture(tmp_path)
    with server:
        backend = load_backend(model, lambda media: tmp_path / media.name, remote=RemoteOptions())
        generation = generate_one(backend, ask(1, Text("before"), image, Text("after"), max_pixels=max_pixels))
        backend.close()
    assert generation.text == "yes"
    body = server.received[0].body
    if model == "gemini:m":
        before, picture_part, after = body["contents"][0]["parts"]
        assert picture_part["inlineData"]["mime_type"] == "image/png"
        data = picture_part["inlineData"]["data"].replace("-", "+").replace("_", "/")
    elif model == "anthropic:m":
        before, picture_part, after = body["messages"][0]["content"]
        assert (picture_part["type"], picture_part["source"]["type"], picture_part["source"]["media_type"]) == (
            "image",
            "base64",
            "image/png",
        )
        data = picture_part["source"]["data"]
    else:
        before, picture_part, after = body["messages"][0]["content"]
        assert picture_part["image_url"]["detail"] == "high"
        head, _, data = picture_part["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
    assert (before["text"], after["text"]) == ("before", "after")
    arrived = base64.b64decode(data)
    assert b"where it was taken" not in arrived
    with Image.open(io.BytesIO(arrived)) as opened:
        assert opened.format == "PNG"
        assert opened.size == size
        assert [opened.getpixel((x, 5)) for x in (1, size[0] - 2)] == [(255, 0, 0), (0, 0, 255)]


def test_unsendable_medium_is_an_error_without_a_call(tmp_path: Path) -> None:
    image = picture(tmp_path)
    (tmp_path / image.name).write_bytes(b"\x89PNG\r\n\x1a\n something else")
    sound = Media("0" * 64, ".wav", "audio")
    gone = Media("1" * 64, ".png")
    with FaultServer() as server:
        backend = endpoint(server, lambda media: tmp_path / media.name)
        done = run(backend, [ask(1, image), ask(2, sound), ask(3, gone)])
        backend.close()
        assert server.requests == 0
    errors = {g.request_id: g.error or "" for g in done}
    assert {g.calls for g in done} == {0}
    assert "is not the one that was built" in errors["r1#0"]
    assert "takes image media only, and this request holds audio" in errors["r2#0"]
    assert "is missing" in errors["r3#0"]


def test_a_conversation_keeps_its_roles(server: FaultServer) -> None:
    turns: tuple[tuple[Literal["system", "user", "assistant"], str], ...] = (
        ("system", "Be brief."),
        ("user", "first?"),
        ("assistant", "one"),
        ("user", "second?"),
    )
    request = Request("r", 0, tuple(Message(role, (Text(text),)) for role, text in turns), Decoding())
    with server:
        for model in ("openai:m", "anthropic:m", "gemini:m"):
            backend = load_backend(model, nowhere, remote=RemoteOptions())
            generate_one(backend, request)
            backend.close()
    openai, anthropic, gemini = (received.body for received in server.received)
    assert [(m["role"], m["content"]) for m in openai["messages"]] == list(turns)
    assert anthropic["system"] == [{"type": "text", "text": "Be brief."}]
    assert [m["role"] for m in anthropic["messages"]] == ["user", "assistant", "user"]
    assert gemini["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert [m["role"] for m in gemini["contents"]] == ["user", "model", "user"]
    assert gemini["contents"][1]["parts"] == [{"text": "one"}]


def sent(server: FaultServer, model: str, request: Request) -> dict[str, object]:
    """Return the body that a request to ``model`` is sent as."""
    backend = load_backend(model, nowhere, remote=RemoteOptions())
    assert generate_one(backend, request).finish_reason == "stop"
    backend.close()
    return dict(server.received[-1].body)


def test_decoding_settings_are_sent(server: FaultServer) -> None:
    request = ask(1, temperature=0.7, top_p=0.9, seed=5)
    with server:
        openai = sent(server, "openai:m", request)
        azure = sent(server, "azure:m", request)
        own = sent(server, f"endpoint:m@{server.url}", request)
        anthropic = sent(server, "anthropic:m", request)
        greedy = sent(server, "anthropic:m", ask(2))
        gemini = sent(server, "gemini:m", request)
    assert openai["max_completion_tokens"] == azure["max_tokens"] == own["max_tokens"] == anthropic["max_tokens"] == 64
    for body in (openai, azure, own):
        assert (body["temperature"], body["top_p"], body["seed"]) == (0.7, 0.9, 5)
    assert (anthropic["temperature"], anthropic["top_p"]) == (0.7, 0.9)
    assert "seed" not in anthropic
    assert (greedy["temperature"], "top_p" in greedy) == (0.0, False)
    assert gemini["generationConfig"] == {"temperature": 0.7, "topP": 0.9, "seed": 5, "maxOutputTokens": 64}


def test_form_is_sent_if_the_api_supports_it(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    word = ask(2, form=Choice(("yes", "no")))
    request = ask(1, form=LABEL)
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": LABEL.schema()}}
    with server:
        assert sent(server, "openai:m", request)["response_format"] == schema
        assert sent(server, f"endpoint:m@{server.url}", request)["response_format"] == schema
        assert sent(server, "azure:m", request)["response_format"] == {"type": "json_object"}
        assert server.received[-1].path.endswith("/deployments/m/chat/completions?api-version=2024-02-15-preview")
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
        assert sent(server, "azure:m", request)["response_format"] == schema
        anthropic = sent(server, "anthropic:m", request)["output_config"]
        assert anthropic == {"format": {"type": "json_schema", "schema": LABEL.schema()}}
        gemini = sent(server, "gemini:m", request)["generationConfig"]
        assert isinstance(gemini, dict)
        assert gemini["responseMimeType"] == "application/json"
        assert gemini["responseSchema"]["property_ordering"] == ["label", "why"]
        assert gemini["responseSchema"]["properties"]["label"]["enum"] == ["IMAGE", "TEXT"]
        chosen = sent(server, "gemini:m", word)["generationConfig"]
        assert isinstance(chosen, dict)
        assert (chosen["responseMimeType"], chosen["responseSchema"]["enum"]) == ("text/x.enum", ["yes", "no"])
        for model in ("openai:m", "azure:m", "anthropic:m", f"endpoint:m@{server.url}"):
            assert not {"response_format", "output_config"} & set(sent(server, model, word))


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        ("openai:m", "temperature,top_p,seed,response_format,max_completion_tokens"),
        ("azure:m", "max_tokens,temperature"),
        ("anthropic:m", "temperature,output_config"),
        ("gemini:m", "seed,responseSchema"),
    ],
)
def test_refused_parameter_is_dropped_and_reported_once(
    model: str, refused: str, server: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fault = lambda number: f"refuses {refused}"
    names = refused.split(",")
    with server:
        backend = load_backend(model, nowhere, remote=RemoteOptions(attempts=1, concurrency=1))
        first = generate_one(backend, ask(1, form=LABEL))
        second = generate_one(backend, ask(2, form=LABEL))
        backend.close()
    assert (first.finish_reason, first.calls) == ("stop", 1 + len(names))
    assert (second.finish_reason, second.calls) == ("stop", 1)
    body = server.received[-1].body
    assert not set(names) & ({*body, *body.get("generationConfig", {})})
    if model == "openai:m":
        assert body["max_tokens"] == 64
    if model == "azure:m":
        assert body["max_completion_tokens"] == 64
    messages = [record.getMessage() for record in caplog.records if "left out from now on" in record.getMessage()]
    assert len(messages) == len(names)
    assert all(text.startswith(model) for text in messages)
    # The limit on tokens has another name, and is sent under that.
    left_out = sorted(set(names) - {"max_tokens", "max_completion_tokens"})
    spelt = ["response_schema" if name == "responseSchema" else name for name in left_out]
    assert sorted(backend.remarks) == [f"{model} refuses {name}, which was left out." for name in sorted(spelt)]


def test_token_limit_refused_under_both_names_is_an_error(server: FaultServer) -> None:
    server.fault = lambda number: "refuses max_tokens,max_completion_tokens"
    with server:
        backend = load_backend("openai:m", nowhere, remote=RemoteOptions())
        generation = generate_one(backend, ask(1))
        backend.close()
    assert (generation.finish_reason, generation.calls) == ("error", 2)


@pytest.mark.parametrize("model", ["openai:m", "azure:m", "anthropic:m", "gemini:m", "endpoint:m"])
def test_a_server_on_this_machine_is_not_asked_through_a_proxy(
    model: str, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RecordingProxy() as proxy, server:
        for name in ("http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("HTTPS_PROXY", "socks4://invalid.invalid")  # which no client may read by itself
        monkeypatch.setenv("no_proxy", "elsewhere.invalid")
        whole = f"{model}@{server.url}" if model == "endpoint:m" else model
        backend = load_backend(whole, nowhere, remote=RemoteOptions(attempts=1))
        generation = generate_one(backend, ask(1))
        backend.close()
    assert proxy.carried == []
    assert generation.text == "yes"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_cannot_have_its_credentials_stored(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It repeats them in its refusals, as they were sent: in base64."""
    with RecordingProxy() as proxy:
        monkeypatch.setenv(f"{scheme}_proxy", f"http://somebody:pass-of-9@{proxy.address}")
        allowed_addresses.allow([f"{address_of(f'{scheme}://model.invalid')},proxy={proxy.url}"])
        backend = load_backend(f"endpoint:m@{scheme}://model.invalid/v1", nowhere, remote=RemoteOptions(attempts=1))
        generation = generate_one(backend, ask(1))
        backend.close()
    sent = proxy.carried[0].headers["proxy-authorization"].removeprefix("Basic ")
    assert base64.b64decode(sent) == b"somebody:pass-of-9"
    assert generation.error
    assert "***" in generation.error
    assert not {"somebody", "pass-of-9", sent.rstrip("=")} & set(re.split(r"[^\w+/-]", generation.error))


def test_an_invalid_proxy_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks4://somebody:secret@h:1")
    with pytest.raises(SpecError, match="https_proxy") as error:
        load_backend("openai:m", nowhere, remote=RemoteOptions())
    assert "secret" not in str(error.value)


def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer() as server:
        monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "elsewhere.invalid")
        agree_to("http://elsewhere.invalid")
        allowed_addresses.allow([f"http://somewhere.invalid:80,proxy={server.url.removesuffix('/v1')}"])
        backend = load_backend("endpoint:m@http://somewhere.invalid/v1", nowhere, remote=RemoteOptions(attempts=1))
        assert generate_one(backend, ask(1)).text == "yes"
        backend.close()
        assert server.received[0].path == "http://somewhere.invalid/v1/chat/completions"
        backend = load_backend("endpoint:m@http://elsewhere.invalid/v1", nowhere, remote=RemoteOptions(attempts=1))
        with pytest.raises(ModelError, match="cannot be reached"):
            generate_one(backend, ask(1))
        backend.close()
        assert server.requests == 1


# --- names ---


def test_description_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    for name in BASES:
        monkeypatch.delenv(name, raising=False)
    info = describe("openai:gpt-5-mini")
    assert (info.engine, info.model, info.device, info.needs_device) == ("openai", "openai:gpt-5-mini", "remote", False)
    assert (info.weights, info.quantisation, set(info.versions)) == (None, None, {"openai"})
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://Lab.openai.azure.com/")
    azure = describe("azure:judge").versions
    assert (azure["api"], azure["server"]) == ("2024-02-15-preview", "lab.openai.azure.com")
    own = describe("endpoint:mlx-community/Q@4bit@http://127.0.0.1:8080/v1/")
    assert (own.model, own.versions["server"]) == ("endpoint:mlx-community/Q@4bit", "127.0.0.1:8080/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example/anthropic")
    assert describe("anthropic:c").versions["server"] == "gateway.example/anthropic"


@pytest.mark.parametrize(
    "model",
    [
        "openai:",
        "openai: gpt",
        "openai:a\nb",
        "openai:a\x1b[31m",
        "openai:" + "x" * 300,
        "azure:../../x",
        "azure:a b",
        "gemini:../files",
        "gemini:models/a/../b",
        "gemini:m?key=x",
        "endpoint:m",
        "endpoint:m@127.0.0.1:8080",
        "endpoint:@http://127.0.0.1/v1",
        "endpoint:m@http://",
        "endpoint:m@http:///v1",
        "endpoint:m@http://host:99999/v1",
        "endpoint:m@http://host:0/v1",
        "endpoint:m@http://me:hunter2secret@host/v1",
        "endpoint:m@http://hunter2secret@http://host/v1",
        "endpoint:m@http://host/v1?key=hunter2secret",
        "endpoint:m@http://host/v1?",
        "endpoint:m@http://host/v1#hunter2secret",
        "endpoint:m@http://ho st/v1",
        "endpoint:m@http://host/v1\r\nx: y",
        "endpoint:m@httpx://host/v1",
        "endpoint:m@http://[::1/v1",
        "endpoint:m@http://höst/v1",
    ],
)
def test_incomplete_name_or_name_with_a_key_is_refused(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://lab.openai.azure.com")
    with pytest.raises(SpecError) as caught:
        describe(model)
    assert "hunter2secret" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", BASES)
def test_a_base_url_with_a_key_in_it_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "https://me:hunter2secret@host/v1")
    engine = {"OPENAI": "openai", "ANTHROPIC": "anthropic", "GOOGLE": "gemini", "AZURE": "azure"}[name.split("_")[0]]
    with pytest.raises(SpecError, match=f"{name} holds a user") as caught:
        describe(f"{engine}:m")
    assert "hunter2secret" not in str(caught.value)


@given(
    model=st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=60),
    host=st.from_regex(r"[a-z0-9]{1,20}(\.[a-z]{2,5})?", fullmatch=True),
    port=st.integers(1, 65535),
    path=st.from_regex(r"(/[a-z0-9._~-]{1,8}){0,3}", fullmatch=True),
)
def test_an_endpoint_is_split_where_its_url_begins(model: str, host: str, port: int, path: str) -> None:
    if "://" in model:
        return
    name = parse(f"endpoint:{model}@http://{host}:{port}{path}")
    assert (name.model, name.base_url, name.server) == (model, f"http://{host}:{port}{path}", f"{host}:{port}{path}")


@given(st.sampled_from(["openai", "azure", "anthropic", "gemini", "endpoint"]), st.text(max_size=80))
def test_any_text_is_a_name_or_refused(engine: str, rest: str) -> None:
    model = f"{engine}:{rest}"
    assert is_remote(model)
    try:
        name = parse(model)
    except SpecError:
        return
    assert name.model.isprintable()
    assert urlsplit(name.base_url).hostname


def test_other_names_are_not_remote() -> None:
    assert not [
        name for name in ("openai", "policy:random", "org/name", "openai/gpt", "./openai:x", "") if is_remote(name)
    ]


def test_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelError, match=r'pip install "rashomon\[api\]"'):
        load_backend("anthropic:c", nowhere)


# --- keys ---


OPENAI = "https://api.openai.com:443"


class Keychain(KeyringBackend):
    """A keychain in memory."""

    priority = 1

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


@pytest.fixture
def keychain() -> Iterator[Keychain]:
    before = keyring.get_keyring()
    chain = Keychain()
    keyring.set_keyring(chain)
    yield chain
    keyring.set_keyring(before)


def test_keychain_entry_belongs_to_one_address(keychain: Keychain, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "RASHOMON_ENDPOINT_KEY"):
        monkeypatch.delenv(name, raising=False)
        keychain.set_password("rashomon", name, "sk-of-the-vendor")
        keychain.set_password("rashomon", f"{name}@http://127.0.0.1:8080", "sk-of-one-server")
        assert api_keys.find_key(name, address="http://127.0.0.1:8080", own=False) == "sk-of-one-server"
        for other in ("http://127.0.0.1:8081", "https://127.0.0.1:8080", OPENAI):
            with pytest.raises(KeyMissingError):
                api_keys.find_key(name, address=other, own=False)


def test_environment_key_belongs_to_its_named_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    named = "https://A.example/v1=sk-one=/x http://[::1]:8080=sk-two https://x:y=sk-three nonsense"
    monkeypatch.setenv("RASHOMON_ENDPOINT_KEY", named)
    assert api_keys.find_key("RASHOMON_ENDPOINT_KEY", address="https://a.example:443", own=False) == "sk-one=/x"
    assert api_keys.find_key("RASHOMON_ENDPOINT_KEY", address="http://[::1]:8080", own=False) == "sk-two"
    with pytest.raises(KeyMissingError):
        api_keys.find_key("RASHOMON_ENDPOINT_KEY", address="http://a.example:80", own=False)
    assert api_keys.redact("it says sk-one=/x and sk-three") == "it says *** and ***"
    assert api_keys.redact("https://a.example/v1 did not answer") == "https://a.example/v1 did not answer"


SPELT = [
    *(
        "http://LOCALHOST",
        "http://localhost.",
        "http://[::1]",
        "http://[::ffff:127.0.0.1]",
        "http://127.1",
        "http://0x7f.1",
    ),
    *(
        "http://%31%32%37.0.0.1",
        "http://a%2eexample",
        "https://xn--bcher-kva.example",
        "http://a;b",
        "http://a_b",
        "http://a%40b",
    ),
]


@pytest.mark.parametrize("port", ["", ":80", ":080", ":443", ":8080", ":"])
@pytest.mark.parametrize("spelt", SPELT)
def test_agreed_address_is_the_one_contacted(spelt: str, port: str) -> None:
    for path in ("", "/", "//evil.example/v1", "/@evil.example", "/..//", "/%2e%2e/"):
        try:
            base = parse(f"endpoint:m@{spelt}{port}{path}").base_url
        except SpecError:
            continue
        url = httpx2.URL(f"{base}/chat/completions")
        host = url.raw_host.decode()
        parts = (url.scheme, f"[{host}]" if ":" in host else host, url.port or {"http": 80, "https": 443}[url.scheme])
        assert "{}://{}:{}".format(*parts) == address_of(base)


def test_environment_key_precedes_the_keychain(keychain: Keychain, monkeypatch: pytest.MonkeyPatch) -> None:
    keychain.set_password("rashomon", "OPENAI_API_KEY", "sk-from-the-keychain")
    assert api_keys.find_key("OPENAI_API_KEY", address=OPENAI) == SECRET
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert api_keys.find_key("OPENAI_API_KEY", address=OPENAI) == "sk-from-the-keychain"
    assert api_keys.redact("got sk-from-the-keychain!") == "got ***!"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(
        KeyMissingError,
        match=r"no key ANTHROPIC_API_KEY for https://api.anthropic.com:443; set it .* `keyring set rashomon ANTHROPIC_API_KEY`",
    ):
        load_backend("anthropic:c", nowhere)
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-of-google")
    assert (
        api_keys.find_key("GEMINI_API_KEY", "GOOGLE_API_KEY", address="https://generativelanguage.googleapis.com:443")
        == "AIza-of-google"
    )


@pytest.mark.parametrize("value", ["sk with space", "sk-line\nbreak", "sk-ключ"])
def test_unsendable_key_is_refused_without_printing_it(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(KeyMissingError) as caught:
        api_keys.find_key("OPENAI_API_KEY", address=OPENAI)
    assert value not in str(caught.value)


def test_a_quoted_piece_of_a_key_is_hidden() -> None:
    message = f"Incorrect API key provided: {SECRET[:11]}*******{SECRET[-9:]}. See {quote(SECRET)} and {SECRET!r}"
    assert api_keys.redact(message) == f"Incorrect API key provided: ***{'*' * 7}***. See *** and '***'"


SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    lambda value: quote(value, safe=""),
    lambda value: json.dumps(value)[1:-1],
)


@given(
    before=st.text(max_size=40),
    after=st.text(max_size=40),
    value=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=80),
    spelt=st.sampled_from(SPELLINGS),
)
def test_no_known_key_survives(before: str, after: str, value: str, spelt: Callable[[str], str]) -> None:
    os.environ["RASHOMON_ENDPOINT_KEY"] = value
    try:
        assert api_keys.find_key("RASHOMON_ENDPOINT_KEY", address="http://127.0.0.1:80", own=False) == value
        redacted = api_keys.redact(f"{before}{spelt(value)}{after}")
        assert value not in redacted
        assert spelt(value) not in redacted
        for start in range(len(value) - 7):
            assert value[start : start + 8] not in redacted
    finally:
        os.environ["RASHOMON_ENDPOINT_KEY"] = KEYS["RASHOMON_ENDPOINT_KEY"]
        api_keys._handed_out.discard(value)


def test_text_without_keys_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RASHOMON_ENDPOINT_KEY", "ollama")
    text = "An ollama, and the key sk-proj- of nobody."
    assert api_keys.mask_keys(text) == text
    assert api_keys.mask_keys(f"It says {SECRET}.") == "It says ***."
    assert api_keys.redact("by ollama") == "by ***"


# --- pace ---


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_concurrency_rises_by_one_and_halves_on_overload() -> None:
    clock = Clock()
    rate = RateLimit(64, clock)
    assert rate.allowed == 4
    for _ in range(4 + 5 + 6 + 7 + 4):
        rate.succeeded()
    assert rate.allowed == 8
    rounds = [rate.began() for _ in range(8)]
    assert rate.wait() is None
    for began_in in rounds:
        rate.ended()
        rate.overloaded(began_in)
    assert rate.allowed == 4
    rate.overloaded(rate.began())
    assert rate.allowed == 2
    for _ in range(10):
        rate.overloaded(rate.began())
        rate.ended()
    assert rate.allowed == 1
    for _ in range(10_000):
        rate.succeeded()
    assert rate.allowed == 64


def test_longest_pause_applies_to_all_calls() -> None:
    clock = Clock()
    rate = RateLimit(8, clock)
    rate.pause(5)
    rate.pause(2)
    assert rate.wait() == 5
    clock.now += 5
    assert rate.wait() == 0


def test_retry_waits_use_full_jitter_and_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [rate_limit.backoff(failures, lambda: 1.0) for failures in (1, 2, 3, 7, 8, 10_000)] == [
        0.5,
        1,
        2,
        30,
        30,
        30,
    ]
    assert rate_limit.backoff(3, lambda: 0.0) == 0


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Mon, 99 Foo 99999 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_header_is_parsed(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


def test_gemini_retry_delay_is_in_the_body() -> None:
    error = {"details": [{"@type": "x"}, {"@type": "google.rpc.RetryInfo", "retryDelay": "34.5s"}, 7]}
    assert retry_after({}, error) == 34.5


@given(st.text(max_size=40))
def test_any_retry_header_is_a_time_or_none(text: str) -> None:
    delay = retry_after({"retry-after": text})
    assert delay is None or delay >= 0


# --- budget and replies ---


def test_estimate_does_not_decode_images(tmp_path: Path) -> None:
    image = picture(tmp_path, (1500, 1000))
    (tmp_path / image.name).write_bytes((tmp_path / image.name).read_bytes()[:200])
    requests = [ask(1, Text("x" * 100), image), ask(2, Text("ü" * 3), image, max_pixels=7500)]
    terms = RemoteOptions(input_price=2.0, output_price=10.0)
    usage = estimate_usage([(request, 0) for request in requests], terms, lambda media: tmp_path / media.name)
    assert (usage.calls, usage.media, usage.output_tokens_at_most) == (2, 2, 128)
    assert usage.input_tokens == 8 + 34 + 2000 + 8 + 2 + 10
    assert usage.cost == pytest.approx((usage.input_tokens * 2 + 128 * 10) / 1e6)
    assert str(usage) == (
        "2 calls of about 2,062 prompt tokens (2 images) and at most 128 completion tokens, which cost at most about 0.01"
    )
    assert estimate_usage([(ask(1), 0)], RemoteOptions()).cost is None


def test_a_ceiling_on_cost_needs_prices() -> None:
    with pytest.raises(SpecError, match="needs the input price and the output price"):
        load_backend("openai:m", nowhere, remote=RemoteOptions(max_cost=1.0, input_price=1.0))


@given(
    ceiling=st.integers(0, 5000),
    calls=st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300), st.floats(0, 1), st.booleans()), max_size=60),
)
def test_no_order_of_calls_passes_the_ceiling(ceiling: int, calls: list[tuple[int, int, float, bool]]) -> None:
    from mlx_backends.remote.api_budget import NO_TOKENS, RequestSize

    budget = Budget(RemoteOptions(max_tokens=ceiling))
    under_way = []
    for prompt, completion, share, ends in calls:
        needed = RequestSize(prompt, completion)
        held = budget.reserve(needed)
        if held is not None:
            under_way.append((needed, held, share))
        if ends and under_way:
            needed, held, share = under_way.pop(0)
            budget.settle(needed, held, int(needed.prompt * share), int(needed.completion * share))
        assert budget.allows(NO_TOKENS)


def test_estimate_adapts_to_longer_prompts() -> None:
    from mlx_backends.remote.api_budget import RequestSize

    budget = Budget(RemoteOptions(max_tokens=10_000))
    held = budget.reserve(RequestSize(100, 10))
    assert held is not None
    budget.settle(RequestSize(100, 10), held, 3000, 10)
    assert budget.allows(RequestSize(200, 10))
    assert not budget.allows(RequestSize(240, 10))


def test_replies_are_shared_between_processes(tmp_path: Path) -> None:
    from benchmarks.vocabulary import Generation

    one_of_them, other = ResponseCache(tmp_path / "r.sqlite"), ResponseCache(tmp_path / "r.sqlite")
    one_of_them.put("who", "digest", Generation("r", "\ud800 text", "length", prompt_tokens=3, completion_tokens=4))
    one_of_them.put("who", "digest", Generation("r", "another", "stop"))
    one_of_them.put("who", "wrong", Generation("r", "", "error", error="no"))
    assert other.get("who", "digest") == Generation(
        "", "\ud800 text", "length", prompt_tokens=0, completion_tokens=0, calls=0
    )
    assert other.get("whoever", "digest") is other.get("who", "wrong") is None
    other.close()
    one_of_them.close()
    one_of_them.put("who", "late", Generation("r", "text", "stop"))
    assert one_of_them.get("who", "digest") is None


def test_the_keychains_entries_are_named_without_their_values(
    keychain: Keychain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert api_keys.keychain_entries() == []
    keychain.set_password("rashomon", "OPENAI_API_KEY", "sk-of-the-vendor")
    assert api_keys.keychain_entries() == ["OPENAI_API_KEY"]
    assert "in the keychain: OPENAI_API_KEY" in workspace_and_network_checks.keys(Workspace(Path("nowhere"))).message
    commands: list[tuple[str, ...]] = []

    def security(command: tuple[str, ...], **options: object) -> SimpleNamespace:
        commands.append(command)
        if command[-1] == "GEMINI_API_KEY":
            return SimpleNamespace(returncode=0, stdout='keychain: "/Users/ann/Library/Keychains/login.keychain-db"')
        return SimpleNamespace(returncode=44, stdout="")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", security)
    assert api_keys.keychain_entries() == ["GEMINI_API_KEY"]
    assert not any({"-g", "-w"} & set(command) for command in commands)  # those read the value, and ask the user first
