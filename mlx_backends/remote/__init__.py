"""Remote engines: OpenAI, Azure, Anthropic, Gemini, and any server with OpenAI's API.

A provider's library takes up to two seconds to import, so the modules that need one are imported within functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from benchmarks.errors import ModelError, RashomonError
from benchmarks.vocabulary import canonical_json
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.options import RemoteOptions
from mlx_backends.remote.remote_names_and_media import KEYS, RemoteModelName, is_remote, modalities, parse

if TYPE_CHECKING:
    from mlx_backends.remote.api_provider import Provider

__all__ = ["check_all_ready", "check_ready", "describe", "is_remote", "load"]

_DATE = re.compile(r"(?<!\d)20\d\d(-?)(0[1-9]|1[0-2])\1(0[1-9]|[12]\d|3[01])(?!\d)")
_LIBRARIES = {
    "openai": ("openai", "openai_provider", "OpenAIProvider"),
    "azure": ("openai", "openai_provider", "OpenAIProvider"),
    "endpoint": ("openai", "openai_provider", "OpenAIProvider"),
    "anthropic": ("anthropic", "anthropic_provider", "AnthropicProvider"),
    "gemini": ("google-genai", "gemini_provider", "GeminiProvider"),
}


def describe(model: str) -> EngineInfo:
    """Return the engine that would answer as ``model``, without a key, a connection or the library. Raises SpecError."""
    return _info(parse(model))


def is_dated(info: EngineInfo) -> bool:
    """Return whether a model's name has the date of a revision, which its provider does not change, such as gpt-4o-2024-08-06.

    A server of one's own, and a deployment of Azure's, can have any model behind any name.
    """
    return "server" not in info.versions and _DATE.search(info.model) is not None


def check_ready(model: str, options: RemoteOptions) -> None:
    """Check what :func:`load` needs, without importing the provider's library; raises as :func:`load`."""
    from mlx_backends.remote import allowed_addresses
    from mlx_backends.remote.api_budget import Budget
    from mlx_backends.remote.api_keys import find_key

    name = parse(model)
    Budget(options)
    library = _LIBRARIES[name.engine][0]
    if _version(library) == "none":
        raise _not_installed(name.engine)
    allowed_addresses.check_allowed(name)
    if name.engine != "endpoint":  # works without a key
        find_key(*KEYS[name.engine], address=name.address, own=name.own)


def check_all_ready(models: Iterable[str], options: RemoteOptions) -> None:
    """Run :func:`check_ready` for the remote ones of ``models``, so that a run reports problems before it starts."""
    for model in models:
        if is_remote(model):
            check_ready(model, options)


def readiness_problem(models: Iterable[str], options: RemoteOptions) -> str:
    """Return the message that :func:`check_all_ready` would raise; empty where nothing is missing."""
    try:
        check_all_ready(models, options)
    except RashomonError as error:
        return str(error)
    return ""


def load(model: str, media: MediaPath, options: RemoteOptions) -> Backend:
    """Return the backend that answers as ``model`` with ``options``.

    Nothing is sent yet. Raises SpecError for a name or options that do not fit, ModelError where the provider's library is
    not installed, KeyMissingError without a key, AddressError for a server that the user has not agreed to.
    """
    from mlx_backends.remote.remote_backend import RemoteBackend
    from mlx_backends.remote.remote_errors import shorten
    from mlx_backends.remote.remote_media import EncodedMedia
    from mlx_backends.remote.several_servers import SeveralServers

    check_ready(model, options)  # takes a millisecond, the import of the provider's library two seconds
    name = parse(model)
    _, module, class_name = _LIBRARIES[name.engine]
    encoded = EncodedMedia(media)
    try:
        provider_class = getattr(import_module(f"mlx_backends.remote.{module}"), class_name)
        providers: list[Provider] = [provider_class(server, encoded) for server in name.servers]
    except ImportError as error:
        raise _not_installed(name.engine) from error
    except RashomonError:
        raise
    except Exception as error:  # raised by the library for its other environment variables
        raise ModelError(f"{name.engine}: cannot be used: {shorten(str(error))}") from None
    responder = [name.engine, name.model, name.base_url, name.api_version]
    # A user's own server can serve another model under the same name later, so its responses are cached per scope only.
    if options.always_scoped or (name.server is not None and name.engine != "azure"):
        responder.append(options.scope)
    provider = providers[0] if len(providers) == 1 else SeveralServers(providers)
    return RemoteBackend(_info(name), provider, encoded, options, canonical_json(responder), KEYS[name.engine][0])


def _not_installed(engine: str) -> ModelError:
    library = _LIBRARIES[engine][0]
    return ModelError(
        f'{engine}: models need the library {library}, which is not installed here; pip install "rashomon[api]".'
    )


def _info(name: RemoteModelName) -> EngineInfo:
    library = _LIBRARIES[name.engine][0]
    versions = {library: _version(library), "api": name.api_version, "server": name.server}
    return EngineInfo(
        engine=name.engine,
        model=f"{name.engine}:{name.model}",
        device="remote",
        needs_device=False,
        takes=modalities(name),
        versions={key: value for key, value in versions.items() if value is not None},
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
