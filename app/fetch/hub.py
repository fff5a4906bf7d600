"""Repositories of the Hugging Face Hub: files with sizes and digests, licence, and errors in plain words."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.fetch.download import access_denied
from app.fetch.remote_file import Digest, FetchError, RemoteFile
from benchmarks.errors import SpecError

Kind = Literal["model", "dataset"]


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository; ``name`` is its path in it."""

    name: str
    size: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at commit ``revision``. ``licence`` is the one on its card, or ""."""

    id: str
    kind: Kind
    revision: str
    licence: str
    files: tuple[HubFile, ...]

    @property
    def page(self) -> str:
        """The address of its web page."""
        return page(self.id, self.kind)

    def remote(self, file: HubFile, path: Path) -> RemoteFile:
        """Return ``file`` as a remote file for ``path``."""
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(self.id, file.name, repo_type=self.kind, revision=self.revision)
        return RemoteFile(url, path, self.id, file.size, file.digest, page=self.page, hub=True)


def page(name: str, kind: Kind) -> str:
    """Return the address of a repository's web page."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{name}"


def repository(name: str, kind: Kind, is_needed: Callable[[str], bool]) -> Repository:
    """Return the repository called ``name`` with the files that are needed.

    Raises FetchError if it does not exist, is gated or private, or if the Hub cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    with translate_hub_errors(name, kind):
        api = HfApi()
        info = api.repo_info(name, repo_type=kind)
        revision = info.sha or "main"
        tree = api.list_repo_tree(name, repo_type=kind, revision=revision, recursive=True)
        files = tuple(
            HubFile(
                entry.path,
                entry.size,
                Digest("sha256", entry.lfs.sha256) if entry.lfs else Digest("git-sha1", entry.blob_id),
            )
            for entry in tree
            if isinstance(entry, RepoFile) and is_needed(entry.path)
        )
    licence = next(
        (tag.partition(":")[2] for tag in getattr(info, "tags", None) or [] if tag.startswith("license:")), ""
    )
    return Repository(name, kind, revision, licence, files)


@contextmanager
def translate_hub_errors(name: str, kind: Kind) -> Iterator[None]:
    """Translate errors of the Hub's library to a FetchError of one sentence, and silence its log."""
    import httpx2
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    from benchmarks.http_transport import route_hub_library

    route_hub_library()
    with silenced():
        try:
            yield
        except HFValidationError as error:
            raise SpecError(f"{name!r} is not a Hub id; write org/name.") from error
        except OfflineModeIsEnabled as error:
            raise _offline() from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            code = "GatedRepo" if isinstance(error, GatedRepoError) else error.response.headers.get("X-Error-Code", "")
            if status == 404 or code in ("RepoNotFound", "RevisionNotFound"):
                raise access_denied(f"{kind} {name} on the Hub", status, "RepoNotFound", page(name, kind)) from error
            if status in (401, 403):
                raise access_denied(name, status, code, page(name, kind)) from error
            raise FetchError(f"the Hub responds with status {status} for {name}; try again later.") from error
        except (httpx2.HTTPError, OSError) as error:
            raise FetchError(
                f"the Hub cannot be reached for {name} ({error.__class__.__name__}); check the network, or fetch it on another "
                "machine and copy it here."
            ) from error


def is_offline() -> bool:
    """Return whether the environment demands offline mode, read as the Hub's library does, without importing it."""
    value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in ("1", "ON", "YES", "TRUE")


def check_online() -> None:
    """Raise FetchError if the environment demands offline mode, which applies to every server."""
    if is_offline():
        raise _offline()


def _offline() -> FetchError:
    return FetchError("HF_HUB_OFFLINE is set, so nothing is fetched; unset it and run the same command.")


@contextmanager
def silenced() -> Iterator[None]:
    """Silence the log of the Hub's library; the final error is reported anyway."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
