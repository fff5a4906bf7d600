"""Names of remote models: their engine, model and server."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import Literal, cast
from urllib.parse import urlsplit

from benchmarks.errors import SpecError
from benchmarks.vocabulary import Modality
from mlx_backends.remote.server_presets import PRESETS

RemoteEngine = Literal["openai", "azure", "anthropic", "gemini", "endpoint"]

ENGINES: tuple[RemoteEngine, ...] = ("openai", "azure", "anthropic", "gemini", "endpoint")
AZURE_API_VERSION = "2024-02-15-preview"
"""Version of Azure's API that CMC-Bench's judge was pinned to (section 4.2)."""

KEYS: dict[RemoteEngine, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "endpoint": ("RASHOMON_ENDPOINT_KEY",),
}
"""Environment variables that hold an engine's key."""

_PROVIDERS = {
    "openai": ("https://api.openai.com/v1", "OPENAI_BASE_URL"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
    "gemini": ("https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL"),
}
_IN_A_PATH = re.compile(r"(?:models/|tunedModels/)?[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_LENGTH = 256
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class RemoteModelName:
    """A parsed name of a remote model.

    ``base_url`` is where its API is, ``server`` the same without its scheme unless it is the provider's own, ``api_version``
    Azure's, ``own`` whether the address is the provider's own.
    """

    engine: RemoteEngine
    model: str
    base_url: str
    server: str | None = None
    api_version: str | None = None
    own: bool = False
    others: tuple[RemoteModelName, ...] = ()
    """The same model on other servers; ``server`` then names all of them."""

    preset: str | None = None
    """The key of :data:`PRESETS` by which its server was named."""

    @property
    def servers(self) -> tuple[RemoteModelName, ...]:
        """The model on each of its servers."""
        return (self, *self.others)

    @property
    def address(self) -> str:
        """Return its address: scheme, host and port."""
        return address_of(self.base_url)


def address_of(url: str) -> str:
    """Return the address of a URL as ``scheme://host:port``, always with its port. Raise ValueError for no port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port or _PORTS[parts.scheme]}"


def modalities(name: RemoteModelName) -> tuple[Modality, ...]:
    """Return the media that a model takes, by its name, since no API lists them.

    Gemini models take images, sounds and videos. OpenAI's models with "audio" in their name take sounds only. All others
    are sent images only.
    """
    model = name.model.removeprefix("models/").lower()
    if name.engine == "gemini" and model.startswith("gemini"):
        return ("image", "audio", "video")
    if name.engine in ("openai", "azure") and "audio" in model:
        return ("audio",)
    return ("image",)


def is_remote(model: str) -> bool:
    """Return whether ``model`` names a remote engine."""
    engine, colon, _ = model.partition(":")
    return bool(colon) and engine in ENGINES


def parse(model: str) -> RemoteModelName:
    """Return the parts of the name ``model``, with the base URLs that the environment gives.

    Raises SpecError where it is not of the form ``openai:MODEL``, ``azure:DEPLOYMENT``, ``anthropic:MODEL``, ``gemini:MODEL``,
    ``endpoint:MODEL@URL`` (with several URLs separated by commas) or ``endpoint:SERVER/MODEL``, and for a URL that holds a user,
    a query or no host. What is refused is not quoted, as it may hold a key.
    """
    prefix, _, rest = model.partition(":")
    engine = cast(RemoteEngine, prefix)
    if engine == "endpoint":
        name, at, url = rest.rpartition("@http")
        preset, slash, model_there = rest.partition("/")
        if not at and slash and preset in PRESETS:
            base = PRESETS[preset].url
            return RemoteModelName(engine, _model(engine, model_there), base, _server(base), preset=preset)
        if not at:
            raise SpecError(
                "name an endpoint as endpoint:MODEL@URL, such as endpoint:qwen@http://127.0.0.1:8080/v1, or as "
                f"endpoint:SERVER/MODEL, where SERVER is {', '.join(PRESETS)}."
            )
        if "://" in name:
            raise SpecError("the model of an endpoint holds a second URL; name it endpoint:MODEL@URL with one.")
        urls = [check_url(base.strip(), "the endpoint's URL") for base in f"http{url}".split(",")]
        if len({_server(base) for base in urls}) < len(urls):
            raise SpecError("the endpoint names one URL twice; name each server once.")
        first, *others = [RemoteModelName(engine, _model(engine, name), base, _server(base)) for base in urls]
        return replace(first, server=",".join(map(_server, urls)), others=tuple(others))
    if engine == "azure":
        base = os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip()
        if not base:
            raise SpecError("AZURE_OPENAI_ENDPOINT is not set; set it to your resource's URL to use azure:DEPLOYMENT.")
        base = check_url(base, "AZURE_OPENAI_ENDPOINT")
        version = os.environ.get("OPENAI_API_VERSION", "").strip() or AZURE_API_VERSION
        if not re.fullmatch(r"[A-Za-z0-9.-]{1,40}", version):
            raise SpecError("OPENAI_API_VERSION is not an API version; set it to one like 2024-02-15-preview.")
        return RemoteModelName(engine, _model(engine, rest), base, _server(base), version)
    own_url, variable = _PROVIDERS[engine]
    base = check_url(os.environ.get(variable, "").strip() or own_url, variable)
    elsewhere = urlsplit(base).hostname != urlsplit(own_url).hostname
    encrypted = base.startswith("https:") and urlsplit(base).port in (None, 443)
    return RemoteModelName(
        engine, _model(engine, rest), base, _server(base) if elsewhere else None, own=encrypted and not elsewhere
    )


def _model(engine: RemoteEngine, model: str) -> str:
    # Azure's and Gemini's models are part of the URL's path.
    fits = (
        _IN_A_PATH.fullmatch(model) if engine in ("azure", "gemini") else model.strip() == model and model.isprintable()
    )
    if not model or len(model) > _MAX_LENGTH or not fits:
        raise SpecError(f"{engine}: must be followed by a valid model name; name it as {engine}:MODEL.")
    return model


def check_url(url: str, what: str) -> str:
    """Return ``url`` without a trailing slash.

    Raise SpecError, which does not quote the URL, where it is invalid or holds a secret.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SpecError(f"{what} is not a valid URL; give one like http://127.0.0.1:8080/v1.") from None
    plain = url.isascii() and url.isprintable() and not set(url) & set(" \\\"'<>`{}|^") and port != 0
    if not plain or parts.scheme not in ("http", "https") or not parts.hostname:
        raise SpecError(f"{what} is not a valid URL; give one like http://127.0.0.1:8080/v1.")
    if "@" in parts.netloc or parts.query or parts.fragment or set("?#") & set(url):
        raise SpecError(f"{what} holds a user, a query or a fragment; keys belong in the environment or the keychain.")
    return url.rstrip("/")


def _server(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.lower() + parts.path.rstrip("/")
