"""Repositories of the Hugging Face Hub: files with sizes and digests, licence, and errors in plain words."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from benchmarks.errors import SpecError
from benchmarks.fetch.proxies import check_proxies
from benchmarks.fetch.remote_file import Digest, FetchError, RemoteFile, access_denied, overwritten, path_inside
from benchmarks.untrusted.file_names import colliding_path

Kind = Literal["model", "dataset"]

LISTING_SECONDS = 40.0
"""The seconds in which a repository must be listed."""

MAX_PAGES, MAX_ENTRIES, MAX_FILES = 200, 100_000, 20_000
"""The most pages of a listing, the most files and folders on them, and the most files that are needed."""

OFFLINE = "HF_HUB_OFFLINE is set, so nothing is fetched; unset it and run the same command."

_SILENCE = 20.0
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,1000}")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository; ``name`` is its path in it."""

    name: str
    size: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at commit ``revision``. ``licence`` has those on its card, or ""."""

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
        url = f"{self.page}/resolve/{self.revision}/{quote(file.name)}"
        return RemoteFile(url, path, self.id, file.size, file.digest, page=self.page, hub=True)


def page(name: str, kind: Kind) -> str:
    """Return the address of a repository's web page."""
    return f"{endpoint()}/{'datasets/' if kind == 'dataset' else ''}{name}"


def endpoint() -> str:
    """Return the address of the Hub. Raises SpecError if HF_ENDPOINT is none."""
    from huggingface_hub import constants

    from benchmarks.fetch.web_requests import web_address

    web_address(constants.ENDPOINT, "HF_ENDPOINT")
    return str(constants.ENDPOINT)


def hub_token() -> str | None:
    """Return the token of HF_TOKEN or `hf auth login`, if there is one. Raises SpecError for one that cannot be sent."""
    from huggingface_hub import get_token

    token = get_token()
    if token and not _TOKEN.fullmatch(token):
        raise SpecError(
            "the token of the Hub has characters that no token has; log in with `hf auth login`, or set HF_TOKEN."
        )
    return token or None


def token_origin() -> str:
    """Return where the token of the Hub is from; "" if there is none."""
    if not hub_token():
        return ""
    variables = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
    return next((name for name in variables if os.environ.get(name)), "`hf auth login`")


def is_id(name: str) -> bool:
    """Return whether ``name`` is OWNER/NAME, as the Hub names repositories."""
    return (
        _ID.fullmatch(name) is not None
        and not any(part in name for part in ("..", "--", "./", "-/"))
        and name[-1] not in ".-"
    )


def repository(name: str, kind: Kind, is_needed: Callable[[str], bool]) -> Repository:
    """Return the repository called ``name`` with the files that are needed, in the order of the listing.

    Raises SpecError for what is no name of a repository, and FetchError if it does not exist, is gated or private, if the Hub
    cannot be reached, or if its reply is not one of a Hub: its digests, revision and names are checked here.
    """
    from benchmarks.fetch import hub_replies as replies

    with _asking(name, kind) as get:
        info = replies.reply(replies.RepositoryInfo, get(_api(name, kind))[1])
        files: dict[str, HubFile] = {}
        for entry in _tree(f"{_api(name, kind)}/tree/{info.sha}?recursive=true&expand=false", get):
            if entry.type == "file" and is_needed(entry.path):
                file = _file(entry)
                if files.setdefault(file.name, file) != file:
                    raise overwritten(name, file.name)
                if len(files) > MAX_FILES:
                    raise FetchError(
                        f"{name} lists more than {MAX_FILES:,} files to fetch, which is too many; choose another repository."
                    )
    for path in files:
        path_inside(Path(), path)
    if (twin := colliding_path(files)) is not None:
        raise overwritten(name, twin)
    return Repository(name, kind, info.sha, info.licence, tuple(files.values()))


def is_private(name: str, kind: Kind) -> bool:
    """Return whether only its owner sees the repository. Raises the errors of :func:`repository`."""
    from benchmarks.fetch import hub_replies as replies

    with _asking(name, kind) as get:
        return replies.reply(replies.Visibility, get(_api(name, kind))[1]).private


def _api(name: str, kind: Kind) -> str:
    return f"{endpoint()}/api/{kind}s/{name}"


def _tree(url: str, get: Callable[[str], tuple[Any, Any]]) -> Iterator[Any]:
    """Yield the entries on all pages of a listing."""
    from benchmarks.fetch import hub_replies as replies
    from benchmarks.fetch.web_requests import OddReplyError, linked_page

    seen: set[str] = set()
    entries = 0
    place: str | None = url
    while place is not None:
        if place in seen or len(seen) == MAX_PAGES:
            raise OddReplyError("its pages do not end")
        seen.add(place)
        response, value = get(place)
        tree = replies.reply(replies.Tree, value)
        entries += len(tree)
        if entries > MAX_ENTRIES:
            raise OddReplyError(f"it lists more than {MAX_ENTRIES:,} files")
        yield from tree
        place = linked_page(response)


def _file(entry: Any) -> HubFile:
    from benchmarks.fetch.web_requests import OddReplyError

    if entry.lfs is None:
        return HubFile(entry.path, entry.size, Digest("git-sha1", entry.oid))
    if entry.lfs.size != entry.size:
        raise OddReplyError("it lists a file with two sizes")
    return HubFile(entry.path, entry.size, Digest("sha256", entry.lfs.oid))


@contextmanager
def _asking(name: str, kind: Kind) -> Iterator[Callable[[str], tuple[Any, Any]]]:
    """Yield a function that returns the response to a GET and its JSON, with errors as a FetchError of one sentence."""
    import httpx2

    from benchmarks.fetch.web_requests import OddReplyError, client, get_json, transport_problem

    check_online()
    if not is_id(name):
        raise SpecError(f"{name!r} is not a Hub id; write org/name.")
    check_proxies()
    token, end = hub_token(), time.monotonic() + LISTING_SECONDS
    with client(_SILENCE) as session:

        def get(url: str) -> tuple[Any, Any]:
            response, value = get_json(session, url, token, end)
            if response.status_code != 200:
                raise refused(name, kind, response.status_code, response.headers.get("X-Error-Code", ""))
            return response, value

        try:
            yield get
        except OddReplyError as error:
            raise FetchError(odd_reply(name, error)) from error
        except httpx2.TransportError as error:
            raise FetchError(no_reply(name, transport_problem(error))) from error


def no_reply(name: str, problem: str) -> str:
    """Return the sentence on a Hub that does not reply about ``name``; ``problem`` follows "the Hub"."""
    advice = "check the network, then run the same command" if "cannot" in problem else "run the same command later"
    return f"the Hub {problem} (about {name}); {advice}."


def odd_reply(name: str, error: object) -> str:
    """Return the sentence on a reply that is not the Hub's; ``error`` says why."""
    return (
        f"the reply about {name} is not the Hub's ({error}); check the network, whose login page may have replied, and "
        "HF_ENDPOINT."
    )


def refused(name: str, kind: Kind, status: int, code: str) -> FetchError:
    """Return the error for a Hub that responds with another status than 200; ``code`` is its error code."""
    if status == 404 or code in ("RepoNotFound", "RevisionNotFound"):
        owner, code = f"{kind} {name} on the Hub", "RepoNotFound"
        return access_denied(owner, status, code, page(name, kind), token_origin())
    if status in (401, 403):
        return access_denied(name, status, code, page(name, kind), token_origin())
    return FetchError(f"the Hub responds with status {status} for {name}; try again later.")


def is_offline() -> bool:
    """Return whether the environment demands offline mode, read as the Hub's library does, without importing it."""
    value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return value.upper() in ("1", "ON", "YES", "TRUE")


def check_online() -> None:
    """Raise FetchError if the environment demands offline mode, which applies to every server."""
    if is_offline():
        raise FetchError(OFFLINE)
