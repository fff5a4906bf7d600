"""What a repository of the Hugging Face Hub holds: its files with sizes and digests, its licence, and why it cannot be had."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.fetch.download import refused
from app.fetch.remote_file import Digest, FetchError, RemoteFile

Kind = Literal["model", "dataset"]


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository, by its path in it."""

    name: str
    size: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as it is at commit ``revision``. ``licence`` is what its card says, "" where it says none."""

    id: str
    kind: Kind
    revision: str
    licence: str
    files: tuple[HubFile, ...]

    @property
    def page(self) -> str:
        """Where people read of it."""
        return page(self.id, self.kind)

    def remote(self, file: HubFile, path: Path) -> RemoteFile:
        """``file``, to lie at ``path``."""
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(self.id, file.name, repo_type=self.kind, revision=self.revision)
        return RemoteFile(url, path, self.id, file.size, file.digest, page=self.page, hub=True)


def page(name: str, kind: Kind) -> str:
    """The address of a repository's page."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/{'datasets/' if kind == 'dataset' else ''}{name}"


def repository(name: str, kind: Kind, wanted: Callable[[str], bool]) -> Repository:
    """The repository called ``name`` with those of its files whose name is ``wanted``.

    Raises FetchError where it cannot be had: there is none, it is gated or private, the network or the Hub is away.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    with explained(name, kind):
        api = HfApi()
        info = api.repo_info(name, repo_type=kind)
        revision = info.sha or "main"
        tree = api.list_repo_tree(name, repo_type=kind, revision=revision, recursive=True)
        files = tuple(
            HubFile(
                each.path,
                each.size,
                Digest("sha256", each.lfs.sha256) if each.lfs else Digest("git-sha1", each.blob_id),
            )
            for each in tree
            if isinstance(each, RepoFile) and wanted(each.path)
        )
    licence = next(
        (tag.partition(":")[2] for tag in getattr(info, "tags", None) or [] if tag.startswith("license:")), ""
    )
    return Repository(name, kind, revision, licence, files)


@contextmanager
def explained(name: str, kind: Kind) -> Iterator[None]:
    """Turns what the Hub's library raises into a FetchError of one sentence, and keeps its log quiet."""
    import httpx2
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    with _quiet():
        try:
            yield
        except HFValidationError as error:
            raise FetchError(f"{name!r} is no id of the Hub; write it like org/name.") from error
        except OfflineModeIsEnabled as error:
            raise _offline() from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            code = "GatedRepo" if isinstance(error, GatedRepoError) else error.response.headers.get("X-Error-Code", "")
            if status == 404 or code in ("RepoNotFound", "RevisionNotFound"):
                raise refused(f"{kind} {name} on the Hub", status, "RepoNotFound", page(name, kind)) from error
            if status in (401, 403):
                raise refused(name, status, code, page(name, kind)) from error
            raise FetchError(f"the Hub answers {status} for {name}; try again later.") from error
        except (httpx2.HTTPError, OSError) as error:
            raise FetchError(
                f"the Hub cannot be reached for {name} ({error.__class__.__name__}): check the network, or fetch it on another "
                "machine and copy it here."
            ) from error


def is_offline() -> bool:
    """Whether the environment says to stay offline, read as the Hub's library does, without importing it."""
    said = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return said.upper() in ("1", "ON", "YES", "TRUE")


def check_online() -> None:
    """Raises FetchError where the environment says to stay offline, which goes for every server."""
    if is_offline():
        raise _offline()


def _offline() -> FetchError:
    return FetchError("HF_HUB_OFFLINE is set, so nothing is fetched; unset it and type the same command.")


@contextmanager
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
