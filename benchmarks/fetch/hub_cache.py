"""The Hugging Face cache: files of repositories by their digests, and links to them by name for each commit."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from benchmarks.errors import NoAccessError
from benchmarks.fetch.hub_repository import Kind, Repository
from benchmarks.fetch.remote_file import path_inside
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, read_bytes, replace_file

_LONGEST_REVISION = 100


def hub_cache() -> Path:
    """Return the Hugging Face cache, from the environment variables that move it, without importing the library."""
    for variable, subfolder in (("HF_HUB_CACHE", ""), ("HF_HOME", "hub"), ("XDG_CACHE_HOME", "huggingface/hub")):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser() / subfolder
    return Path.home() / ".cache" / "huggingface" / "hub"


def repository_folder(name: str, kind: Kind = "model") -> Path:
    """Return the folder of a Hub id in the Hugging Face cache, which may not exist."""
    return hub_cache() / f"{kind}s--{name.replace('/', '--')}"


def cached_snapshot(name: str, kind: Kind) -> Path | None:
    """Return the folder of the newest commit of a repository that was fetched; None if there is none."""
    folder = repository_folder(name, kind)
    try:
        revision = read_bytes(folder / "refs", "main", limit=_LONGEST_REVISION).decode("ascii", "replace")
    except (OSError, UnsafeFileError):
        return None
    snapshot = path_inside(folder, f"snapshots/{revision}")
    return snapshot if snapshot.is_dir() else None


def link_snapshot(repo: Repository) -> Path:
    """Link the files of ``repo``, which are in the cache, by their names; return the folder of the links.

    The links are complete before the repository's main branch refers to them. Raises NoAccessError.
    """
    folder = repository_folder(repo.id, repo.kind)
    snapshot = path_inside(folder, f"snapshots/{repo.revision}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in repo.files:
            link = path_inside(snapshot, file.name)
            up = "../" * (len(PurePosixPath(file.name).parts) + 1)
            make_folder(folder, str(link.parent.relative_to(folder)))
            _link(link, f"{up}blobs/{file.digest.value}")
        make_folder(folder, "refs")
        replace_file(folder / "refs", "main", repo.revision.encode())
    except OSError as error:
        raise NoAccessError(
            f"cannot link the files of {repo.id} in {folder}: {error.strerror}; HF_HOME sets the folder of the cache."
        ) from error
    return snapshot


def _link(link: Path, target: str) -> None:
    if link.is_symlink() and os.readlink(link) == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)
