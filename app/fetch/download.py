"""Files over HTTP: a few at a time, continued where they broke off, put in place only when whole and checked."""

from __future__ import annotations

import hashlib
import os
import queue
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from app.fetch.remote_file import FetchError, RemoteFile
from benchmarks.untrusted.safe_files import is_full, open_read, open_write

AT_ONCE = 8
ATTEMPTS = 6
LONGEST_WAIT = 60.0

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524})


@dataclass(frozen=True, slots=True)
class Timeouts:
    """``silence`` is how many seconds nothing may come, ``wait`` the first of the pauses between attempts, which double."""

    silence: float = 30.0
    wait: float = 0.5
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """Files that are whole, and bytes that came, in this process."""

    files: int
    bytes: int


class _Again(Exception):
    """A fault that may pass."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _Lost(Exception):
    """This file cannot be had; others may be."""


class _Stopped(Exception):
    """Somebody wants to stop."""


def download(
    files: Sequence[RemoteFile],
    told: Callable[[DownloadProgress], None] = lambda progress: None,
    patience: Timeouts | None = None,
    at_once: int = AT_ONCE,
) -> dict[RemoteFile, str]:
    """Fetch ``files``; those that could not be had, with the reason. ``told`` hears of the progress some times a second.

    A file lies at its path only when it is whole: what comes goes into a file beside it, whose length, digest and first
    bytes are checked before it is renamed. Raises FetchError where going on makes no sense: access is refused, the server
    cannot be reached, or the disk is full. Any exception, also one that a signal raises, leaves only whole files and beginnings.
    """
    return _Downloads(files, patience or Timeouts()).run(told, max(1, min(at_once, len(files))))


class _Downloads:
    def __init__(self, files: Sequence[RemoteFile], patience: Timeouts) -> None:
        self._waiting: queue.SimpleQueue[RemoteFile] = queue.SimpleQueue()
        for file in files:
            self._waiting.put(file)
        self._patience = patience
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._files = self._bytes = 0
        self._lost: dict[RemoteFile, str] = {}
        self._wrong: set[RemoteFile] = set()
        self._end: BaseException | None = None
        self._token: Mapping[str, str] = hub_headers() if any(file.hub for file in files) else {}

    def run(self, told: Callable[[DownloadProgress], None], at_once: int) -> dict[RemoteFile, str]:
        # Threads of our own: a pool would wait at exit for a server that is silent.
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(at_once)]
        with client(self._patience.silence) as self._client:
            try:
                for thread in threads:
                    thread.start()
                while alive := [thread for thread in threads if thread.is_alive()]:
                    alive[0].join(0.1)
                    told(self._progress())
            finally:
                self._stop.set()
                for thread in threads:
                    if thread.ident is not None:
                        thread.join(1.0)
        told(self._progress())
        if self._end is not None:
            raise self._end
        return self._lost

    def _progress(self) -> DownloadProgress:
        with self._lock:
            return DownloadProgress(self._files, self._bytes)

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                file = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._fetch(file)
                with self._lock:
                    self._files += 1
            except _Stopped:
                return
            except _Lost as lost:
                with self._lock:
                    self._lost[file] = str(lost)
            except BaseException as error:
                with self._lock:
                    self._end = self._end or (disk_error(error, file) if isinstance(error, OSError) else error)
                self._stop.set()

    def _fetch(self, file: RemoteFile) -> None:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        wait = self._patience.wait
        for attempt in range(1, self._patience.attempts + 1):
            try:
                self._try(file)
                return
            except _Again as fault:
                if attempt == self._patience.attempts:
                    raise unreachable(file, str(fault), attempt) from fault
                pause = wait if fault.wait is None else min(fault.wait, LONGEST_WAIT)
                if self._stop.wait(pause):
                    raise _Stopped from fault
                wait = min(2 * wait, LONGEST_WAIT)

    def _try(self, file: RemoteFile) -> None:
        begun = file.begun()
        md5 = self._receive(file, begun) if begun == 0 or begun != file.size else None
        self._check(file, md5)
        os.replace(file.part, file.path)

    def _receive(self, file: RemoteFile, begun: int) -> str | None:
        """Write what is lacking of ``file``; the md5 of the whole where the server tells one."""
        import httpx2

        headers = {"Accept-Encoding": "identity", **(self._token if file.hub else {})}
        if begun:
            headers["Range"] = f"bytes={begun}-"
        try:
            with self._client.stream("GET", file.url, headers=headers) as response:
                begun = _begin(file, response, begun)
                length = _length(response)
                if file.size is not None and length is not None and begun + length != file.size:
                    self._refuse(file, f"it has {begun + length:,} bytes, not {file.size:,}")
                self._write(file, response, begun)
                return _md5(response)
        except httpx2.TimeoutException as error:
            raise _Again("it does not answer") from error
        except httpx2.TransportError as error:
            raise _Again(f"the connection failed ({error.__class__.__name__})") from error
        except httpx2.HTTPError as error:
            raise _Lost(f"its address leads nowhere ({error.__class__.__name__})") from error

    def _write(self, file: RemoteFile, response: Any, begun: int) -> None:
        with open_write(file.part.parent, file.part.name, append=bool(begun)) as part:
            for piece in response.iter_bytes():
                if self._stop.is_set():
                    raise _Stopped
                part.write(piece)
                with self._lock:
                    self._bytes += len(piece)
                if file.size is not None and part.tell() > file.size:
                    break
            part.flush()
            os.fsync(part.fileno())

    def _check(self, file: RemoteFile, md5: str | None) -> None:
        """Raises _Again, and forgets what came, where that is not the file."""
        with open_read(file.part.parent, file.part.name) as part:
            found = os.fstat(part.fileno()).st_size
            first = part.read(len(file.begins))
        if file.size is not None and found < file.size:
            raise _Again("the connection broke off")
        wrong = (
            f"it has {found:,} bytes, not {file.size:,}"
            if file.size is not None and found != file.size
            else "what comes is no such file"
            if first != file.begins
            else "its checksum is not the published one"
            if file.digest is not None and not file.digest.matches(file.part)
            else "its checksum is not the server's"
            if md5 is not None and _md5_of(file.part) != md5
            else ""
        )
        if wrong:
            self._refuse(file, wrong)

    def _refuse(self, file: RemoteFile, wrong: str) -> NoReturn:
        """Forget what came of ``file``; once more may bring it."""
        file.part.unlink(missing_ok=True)
        if file in self._wrong:
            raise _Lost(f"{wrong}, twice")
        self._wrong.add(file)
        raise _Again(wrong)


def _length(response: Any) -> int | None:
    """The length of what is being sent, where it is told of what comes and not of something compressed."""
    told = response.headers.get("Content-Length", "")
    plain = response.headers.get("Content-Encoding", "identity") == "identity"
    return int(told) if plain and told.isdigit() else None


def _md5(response: Any) -> str | None:
    """The md5 that S3 calls an object's etag, unless that was put together of parts or encrypted."""
    named = response.headers.get("ETag", "").strip('"')
    plain = response.headers.get("x-amz-server-side-encryption", "AES256") == "AES256"
    is_s3 = response.headers.get("Server") == "AmazonS3" and plain
    return named if is_s3 and re.fullmatch(r"[0-9a-f]{32}", named) else None


def _md5_of(path: Path) -> str:
    with open_read(path.parent, path.name) as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _begin(file: RemoteFile, response: Any, begun: int) -> int:
    """How many bytes of the file's part stay, by what the server answers. Raises what the status means."""
    status = response.status_code
    if file.url.startswith("https:") and response.url.scheme != "https":
        raise _Lost("the server leads to an address without encryption")
    if status == 206 and begun:
        return begun  # another range than was asked for would come to another checksum
    if status == 200:
        return 0
    if status == 416:
        file.part.unlink(missing_ok=True)
        raise _Again("it does not continue where the file broke off")
    if status in (401, 403):
        raise refused(file.owner, status, response.headers.get("X-Error-Code", ""), file.page)
    if status in _PASSING:
        after = response.headers.get("Retry-After", "")
        raise _Again(f"it answers {status}", float(after) if after.replace(".", "", 1).isdigit() else None)
    raise _Lost("it is not there (404)" if status == 404 else f"the server answers {status}")


def client(silence: float) -> Any:
    """An HTTP client that follows redirects; a token goes to the host it is for and no other."""
    import httpx2

    return httpx2.Client(timeout=httpx2.Timeout(silence, connect=min(silence, 15.0)), follow_redirects=True)


def hub_headers() -> dict[str, str]:
    """What the Hub wants to know of who asks: the token, where there is one."""
    from huggingface_hub import get_token

    token = get_token()
    return {"Authorization": f"Bearer {token}"} if token else {}


def refused(owner: str, status: int, code: str, page: str) -> FetchError:
    """The error of a server that answers 401 or 403; ``code`` is what the Hub says beside it."""
    if code == "GatedRepo":
        return FetchError(
            f"{owner} is gated: accept its terms at {page} in a browser, then log in here with `hf auth login` or set HF_TOKEN."
        )
    if code == "RepoNotFound":
        return FetchError(f"there is no {owner}, or it is private; check its name, or log in with `hf auth login`.")
    if page:
        login = "wants a login" if status == 401 else "does not let this account in"
        return FetchError(f"{owner} {login} ({status}); see {page}, and log in with `hf auth login` or set HF_TOKEN.")
    return FetchError(f"{owner} refuses access ({status}); try again later, or fetch it by hand.")


def unreachable(file: RemoteFile, reason: str, attempts: int) -> FetchError:
    """The error of a server that was asked often enough."""
    host, times = file.url.split("/")[2], "once" if attempts == 1 else f"{attempts} times"
    return FetchError(
        f"{file.path.name} cannot be had of {host}, tried {times}: {reason}; check the network, then type the same command."
    )


def disk_error(error: OSError, file: RemoteFile) -> FetchError:
    """The error of a disk that does not take what comes."""
    if is_full(error):
        return FetchError(
            f"the disk of {file.path.parent} is full; what is whole is kept: free space, then type the same command."
        )
    return FetchError(f"cannot write {file.path}: {error.strerror}; mend that, then type the same command.")
