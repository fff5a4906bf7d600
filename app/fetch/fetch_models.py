"""Models fetched into the Hub's cache: verified files among the cache's blobs."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

from benchmarks.errors import ModelError
from benchmarks.fetch.hub_cache import repository_folder
from benchmarks.fetch.hub_repository import Repository, repository
from benchmarks.fetch.remote_file import RemoteFile, path_inside
from mlx_backends.models.model_licence import CARD

NEEDED_PATTERNS = ("*.safetensors", "*.json", "*.model", "*.tiktoken", "*.txt", "*.jinja", CARD)
"""Weights, configuration, tokenizer, processor and card. Pickles, code and other weight formats are not fetched."""

_EXCLUDED_PATTERNS = ("*consolidated*.safetensors", "*/*.safetensors", ".*", "*/.*")


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
