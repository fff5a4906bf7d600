"""Remote engines: OpenAI, Azure, Anthropic, Gemini, and any server that speaks as OpenAI does."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from benchmarks.base import canonical_json
from benchmarks.errors import ModelError, RashomonError
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.remote.model_names import KEYS, RemoteModelName, is_remote, parse
from mlx_backends.remote.options import RemoteOptions

if TYPE_CHECKING:
    from mlx_backends.remote.provider import Provider

__all__ = ["all_ready", "describe", "is_remote", "load", "ready"]

_LIBRARIES = {
    "openai": ("openai", "openai", "OpenAIProvider"),
    "azure": ("openai", "openai", "OpenAIProvider"),
    "endpoint": ("openai", "openai", "OpenAIProvider"),
    "anthropic": ("anthropic", "anthropic", "AnthropicProvider"),
    "gemini": ("google-genai", "gemini", "GeminiProvider"),
}


def describe(model: str) -> EngineInfo:
    """What would answer as ``model``, without a key, a connection or the vendor's library. Raises SpecError (see parse)."""
    return _info(parse(model))


def ready(model: str, terms: RemoteOptions) -> None:
    """Check what :func:`load` needs, without importing the vendor's library: raises as that does."""
    from mlx_backends.remote import addresses
    from mlx_backends.remote.api_keys import key
    from mlx_backends.remote.budget import Budget

    name = parse(model)
    Budget(terms)
    library = _LIBRARIES[name.engine][0]
    if _version(library) == "none":
        raise _not_installed(name.engine)
    addresses.require(name)
    if name.engine != "endpoint":  # which works without one
        key(*KEYS[name.engine], address=name.address, own=name.own)


def all_ready(models: Iterable[str], terms: RemoteOptions) -> None:
    """:func:`ready` for those of ``models`` that are remote: what would end a run later is said before it begins."""
    for model in models:
        if is_remote(model):
            ready(model, terms)


def lack(models: Iterable[str], terms: RemoteOptions) -> str:
    """What :func:`all_ready` would raise, in a sentence; empty where nothing lacks."""
    try:
        all_ready(models, terms)
    except RashomonError as error:
        return str(error)
    return ""


def load(model: str, media: MediaPath, terms: RemoteOptions) -> Backend:
    """The backend that answers as ``model`` on ``terms``.

    Nothing is sent yet. Raises SpecError for a name or terms that do not fit, ModelError where the vendor's library is
    not installed, KeyMissingError without a key, AddressError for a server that the user has not agreed to.
    """
    from mlx_backends.remote.backend import RemoteBackend
    from mlx_backends.remote.images import EncodedImages
    from mlx_backends.remote.provider import short

    ready(model, terms)  # a missing key is known in a millisecond, a vendor's library imported in two seconds
    name = parse(model)
    _, module, vendor_class = _LIBRARIES[name.engine]
    images = EncodedImages(media)
    try:
        made = getattr(import_module(f"mlx_backends.remote.{module}"), vendor_class)
        vendor: Provider = made(name, images)
    except ImportError as error:
        raise _not_installed(name.engine) from error
    except RashomonError:
        raise
    except Exception as error:  # of a vendor's library, about whatever else its environment variables say
        raise ModelError(f"{name.engine}: cannot be used: {short(str(error))}") from None
    who = [name.engine, name.model, name.base_url, name.api_version]
    # Who serves models of other people's at an address of their choice can put another one there, under the same name.
    if name.server is not None and name.engine != "azure":
        who.append(terms.scope)
    return RemoteBackend(_info(name), vendor, images, terms, canonical_json(who), KEYS[name.engine][0])


def _not_installed(engine: str) -> ModelError:
    library = _LIBRARIES[engine][0]
    return ModelError(
        f'{engine}: models need the library {library}, which is not installed here; pip install "rashomon[api]".'
    )


def _info(name: RemoteModelName) -> EngineInfo:
    library = _LIBRARIES[name.engine][0]
    found = {library: _version(library), "api": name.api_version, "server": name.server}
    return EngineInfo(
        engine=name.engine,
        model=f"{name.engine}:{name.model}",
        device="remote",
        needs_device=False,
        versions={key: value for key, value in found.items() if value is not None},
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
