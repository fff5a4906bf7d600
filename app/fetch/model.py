"""Models fetched into the Hub's cache: verified files among the cache's blobs, linked by the Hub's library."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from app.fetch.hub import Repository, repository, translate_hub_errors
from app.fetch.remote_file import RemoteFile, path_inside
from benchmarks.errors import ModelError
from mlx_backends.models.discovery import hub_cache, repository_folder
from mlx_backends.models.licence import CARD

NEEDED_PATTERNS = ("*.safetensors", "*.json", "*.model", "*.tiktoken", "*.txt", "*.jinja", CARD)
"""Weights, configuration, tokenizer, processor and card. Pickles, code and other weight formats are not fetched."""

_EXCLUDED_PATTERNS = ("*consolidated*.safetensors", "*/*.safetensors")


def is_needed(name: str) -> bool:
    """Return whether a model's file is fetched."""
    return any(fnmatch(name, pattern) for pattern in NEEDED_PATTERNS) and not any(
        fnmatch(name, pattern) for pattern in _EXCLUDED_PATTERNS
    )


def blobs_folder(name: str) -> Path:
    """Return the folder of the files of model ``name`` in the Hub's cache, each named by its digest."""
    return repository_folder(name) / "blobs"


def list_files(name: str) -> tuple[Repository, tuple[RemoteFile, ...]]:
    """Return the repository of model ``name`` and its files as blobs of the cache. Raises a RashomonError."""
    repo = repository(name, "model", is_needed)
    if not any(file.name.endswith(".safetensors") for file in repo.files):
        raise ModelError(
            f"{name} has no safetensors weights, the only format that is loaded; choose a version that has."
        )
    return repo, tuple(repo.remote(file, path_inside(blobs_folder(name), file.digest.value)) for file in repo.files)


def link_snapshot(repo: Repository) -> Path:
    """Link the blobs in the cache to a snapshot with the Hub's library; return its folder. Raises FetchError."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    enabled = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        with translate_hub_errors(repo.id, "model"):
            names = [file.name for file in repo.files]
            return Path(snapshot_download(repo.id, cache_dir=hub_cache(), allow_patterns=names))
    finally:
        if enabled:
            enable_progress_bars()
