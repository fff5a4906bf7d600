"""A model of the Hub's into the Hub's cache: each file checked and put among the cache's blobs, then linked by the library."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from app.fetch.hub import Repository, explained, repository
from app.fetch.remote_file import RemoteFile
from benchmarks.errors import ModelError
from mlx_backends.models.discovery import hub_cache

WANTED = ("*.safetensors", "*.json", "*.model", "*.tiktoken", "*.txt", "*.jinja")
"""Weights, configuration, tokenizer, processor. Pickles, code and other formats of the weights are not fetched."""

_UNWANTED = ("*consolidated*.safetensors", "*/*.safetensors")


def wanted(name: str) -> bool:
    """Whether a model's file is fetched."""
    return any(fnmatch(name, pattern) for pattern in WANTED) and not any(
        fnmatch(name, pattern) for pattern in _UNWANTED
    )


def blobs(name: str) -> Path:
    """Where the Hub's cache keeps the files of model ``name``, each named by its digest."""
    return hub_cache() / f"models--{name.replace('/', '--')}" / "blobs"


def listed(name: str) -> tuple[Repository, tuple[RemoteFile, ...]]:
    """The repository of model ``name``, and its files as blobs of the cache. Raises FetchError, ModelError."""
    found = repository(name, "model", wanted)
    if not any(file.name.endswith(".safetensors") for file in found.files):
        raise ModelError(f"{name} has no weights in safetensors, and no others are loaded; name a version that has.")
    return found, tuple(found.remote(file, blobs(name) / file.digest.value) for file in found.files)


def link(found: Repository) -> Path:
    """Let the Hub's library make a snapshot of the blobs that are in the cache; its folder. Raises FetchError."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        with explained(found.id, "model"):
            names = [file.name for file in found.files]
            return Path(snapshot_download(found.id, cache_dir=hub_cache(), allow_patterns=names))
    finally:
        if shown:
            enable_progress_bars()
