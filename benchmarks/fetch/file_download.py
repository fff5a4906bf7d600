"""Parallel, resumable downloads over HTTP. Files are put in place only when they are complete and verified."""

from __future__ import annotations

import hashlib
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.fetch.hub_repository import hub_token, token_origin
from benchmarks.fetch.remote_file import FetchError, RemoteFile, access_denied
from benchmarks.untrusted.safe_files import is_disk_full, open_read, open_write

MAX_PARALLEL = 8
MAX_ATTEMPTS = 6
MAX_WAIT = 60.0

MAX_UNKNOWN_BYTES = 256 * 2**20
"""The maximum size of a file whose size is not known before."""

_PROGRESS_BYTES = 16 * 1024
"""Received bytes that count as progress; a server that sends fewer in :attr:`Timeouts.silence` is as good as silent."""


_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """``silence`` is the seconds before an idle connection fails, ``wait`` the first pause between attempts, which doubles.

    After ``patience`` seconds of attempts without progress, a file fails.
    """

    silence: float = 20.0
    wait: float = 0.5
    attempts: int = MAX_ATTEMPTS
    patience: float = 40.0


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """The files completed and the bytes received by this process."""

    files: int
    bytes: int


class _Retry(Exception):
    """A failure that may be temporary."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _Failed(Exception):
    """A failure of one file; others can still be fetched."""


class _Stopped(Exception):
    """The download was stopped."""


def download(
    files: Sequence[RemoteFile],
    on_progress: Callable[[DownloadProgress], None] = lambda progress: None,
    timeouts: Timeouts | None = None,
    parallel: int = MAX_PARALLEL,
) -> dict[RemoteFile, str]:
    """Fetch ``files``, which have different paths, and return those that failed, with the reason.

    ``on_progress`` is called several times a second. A file appears at its path only when it is complete. Until then it is a
    part file next to it, whose length, digest and first bytes are checked before it is renamed. Raises FetchError if the rest
    would fail too: access is denied, the server is unreachable, or the disk is full. Any exception, even one from a signal,
    leaves only complete files and part files.
    """
    return _Downloads(files, timeouts or Timeouts()).run(on_progress, max(1, min(parallel, len(files))))


class _Downloads:
    def __init__(self, files: Sequence[RemoteFile], timeouts: Timeouts) -> None:
        self._waiting: queue.SimpleQueue[RemoteFile] = queue.SimpleQueue()
        for file in files:
            self._waiting.put(file)
        self._timeouts = timeouts
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._files = self._bytes = 0
        self._received: dict[RemoteFile, int] = {}
        self._lost: dict[RemoteFile, str] = {}
        self._rejected: set[RemoteFile] = set()
        self._end: BaseException | None = None
        self._token = hub_token() if any(file.hub for file in files) else None

    def run(self, on_progress: Callable[[DownloadProgress], None], parallel: int) -> dict[RemoteFile, str]:
        # Daemon threads: a pool would wait at exit for a silent server.
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(parallel)]
        from benchmarks.fetch.web_requests import client

        with client(self._timeouts.silence) as self._client:
            try:
                for thread in threads:
                    thread.start()
                while alive := [thread for thread in threads if thread.is_alive()]:
                    alive[0].join(0.1)
                    on_progress(self._progress())
            finally:
                self._stop.set()
                for thread in threads:
                    if thread.ident is not None:
                        thread.join(1.0)
        on_progress(self._progress())
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
            except _Failed as lost:
                with self._lock:
                    self._lost[file] = str(lost)
            except BaseException as error:
                with self._lock:
                    self._end = self._end or (disk_failed(error, file) if isinstance(error, OSError) else error)
                self._stop.set()

    def _fetch(self, file: RemoteFile) -> None:
        if file.is_complete():  # another process has fetched it since the plan
            return
        file.path.parent.mkdir(parents=True, exist_ok=True)
        wait = self._timeouts.wait
        end = time.monotonic() + self._timeouts.patience
        for attempt in range(1, self._timeouts.attempts + 1):
            received = self._received.get(file, 0)
            try:
                self._try(file)
                return
            except _Retry as fault:
                if self._received.get(file, 0) - received >= _PROGRESS_BYTES:
                    end = time.monotonic() + self._timeouts.patience
                pause = wait if fault.wait is None else min(fault.wait, MAX_WAIT)
                if attempt == self._timeouts.attempts or time.monotonic() + pause > end:
                    raise connection_failed(file, str(fault), attempt) from fault
                if self._stop.wait(pause):
                    raise _Stopped from fault
                wait = min(2 * wait, MAX_WAIT)

    def _try(self, file: RemoteFile) -> None:
        partial_bytes = file.begun()
        md5 = self._receive(file, partial_bytes) if partial_bytes == 0 or partial_bytes != file.size else None
        self._check(file, md5)
        os.replace(file.part, file.path)

    def _receive(self, file: RemoteFile, partial_bytes: int) -> str | None:
        """Append the missing bytes of ``file``; return the md5 of the complete file if the server sends one."""
        import httpx2

        from benchmarks.fetch.web_requests import OddReplyError, response_to, transport_problem

        token = self._token if file.hub else None
        headers = {"Range": f"bytes={partial_bytes}-"} if partial_bytes else {}
        silence = self._timeouts.silence
        try:
            # Only a digest makes sure that another host has the file.
            with response_to(
                self._client,
                "GET",
                file.url,
                headers=headers,
                token=token,
                seconds=silence,
                elsewhere=bool(file.digest),
            ) as response:
                partial_bytes = _begin(file, response, partial_bytes)
                length = length_of(response)
                if file.size is not None and length is not None and partial_bytes + length != file.size:
                    self._refuse(file, f"it has {partial_bytes + length:,} bytes, not {file.size:,}")
                self._write(file, response, partial_bytes)
                return _md5(response)
        except OddReplyError as error:
            raise _Failed(f"the response is odd: {error}") from error
        except httpx2.TransportError as error:
            raise _Retry(f"it {transport_problem(error)}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _Failed("its address is invalid") from error

    def _write(self, file: RemoteFile, response: Any, partial_bytes: int) -> None:
        most = MAX_UNKNOWN_BYTES if file.size is None else file.size
        checked, progress = time.monotonic(), 0
        with open_write(file.part.parent, file.part.name, append=bool(partial_bytes)) as part:
            for piece in response.iter_raw():
                if self._stop.is_set():
                    raise _Stopped
                part.write(piece)
                with self._lock:
                    self._bytes += len(piece)
                    self._received[file] = self._received.get(file, 0) + len(piece)
                if part.tell() > most:
                    break
                progress += len(piece)
                if progress >= _PROGRESS_BYTES:
                    checked, progress = time.monotonic(), 0
                elif time.monotonic() - checked > self._timeouts.silence:
                    raise _Retry("it sends too slowly")
            part.flush()
            os.fsync(part.fileno())

    def _check(self, file: RemoteFile, md5: str | None) -> None:
        """Raise _Retry and discard the part file if it is not the expected file."""
        with open_read(file.part.parent, file.part.name) as part:
            size = os.fstat(part.fileno()).st_size
            first = part.read(len(file.begins))
        if file.size is not None and size < file.size:
            raise _Retry("the connection was interrupted")
        problem = (
            f"it is larger than {MAX_UNKNOWN_BYTES // 2**20} MiB"
            if file.size is None and size > MAX_UNKNOWN_BYTES
            else f"it has {size:,} bytes, not {file.size:,}"
            if file.size is not None and size != file.size
            else "the content is of another type"
            if first != file.begins
            else "its checksum differs from the published one"
            if file.digest is not None and not file.digest.matches(file.part)
            else "its checksum differs from the server's"
            if md5 is not None and _md5_of(file.part) != md5
            else ""
        )
        if problem:
            self._refuse(file, problem)

    def _refuse(self, file: RemoteFile, problem: str) -> NoReturn:
        """Discard the part of ``file`` and retry once."""
        file.part.unlink(missing_ok=True)
        if file in self._rejected:
            raise _Failed(f"{problem}, twice")
        self._rejected.add(file)
        raise _Retry(problem)


def length_of(response: Any) -> int | None:
    """Return the length of the response's body; None if it is unknown."""
    length = response.headers.get("Content-Length", "")
    return int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None


def _md5(response: Any) -> str | None:
    """Return the md5 in an S3 object's ETag; None for a multipart or encrypted object."""
    etag = response.headers.get("ETag", "").strip('"')
    plain = response.headers.get("x-amz-server-side-encryption", "AES256") == "AES256"
    is_s3 = response.headers.get("Server") == "AmazonS3" and plain
    return etag if is_s3 and re.fullmatch(r"[0-9a-f]{32}", etag) else None


def _md5_of(path: Path) -> str:
    with open_read(path.parent, path.name) as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def refused(file: RemoteFile, response: Any) -> FetchError:
    """Return the error for a response of 401 or 403; it gives advice on logins only where the file's own host responds."""
    import httpx2

    from benchmarks.fetch.web_requests import same_host

    if not same_host(response.url, httpx2.URL(file.url)):
        return FetchError(
            f"a host to which {file.owner} redirects denies access to {file.name} ({response.status_code}); try again later."
        )
    code, token = response.headers.get("X-Error-Code", ""), token_origin() if file.hub else ""
    return access_denied(file.owner, response.status_code, code, file.page, token)


def _begin(file: RemoteFile, response: Any, partial_bytes: int) -> int:
    """Return how many bytes of the part file to keep, by the server's status. Raises the error the status stands for."""
    from benchmarks.fetch.web_requests import TRANSIENT

    status = response.status_code
    if status == 206 and partial_bytes:
        return partial_bytes  # the checksum detects another range than the requested one
    if status == 200:
        return 0
    if status == 416:
        file.part.unlink(missing_ok=True)
        raise _Retry("it does not continue where the file was interrupted")
    if status in (401, 403):
        raise refused(file, response)
    if status in TRANSIENT:
        retry_after = response.headers.get("Retry-After", "")
        raise _Retry(
            f"it responds with status {status}",
            float(retry_after) if _NUMBER.fullmatch(retry_after) else None,
        )
    raise _Failed("it does not exist (404)" if status == 404 else f"the server responds with status {status}")


def connection_failed(file: RemoteFile, reason: str, attempts: int) -> FetchError:
    """Return the error for a server that failed on every attempt."""
    host, times = file.url.split("/")[2], "once" if attempts == 1 else f"{attempts} times"
    return FetchError(
        f"{file.name} cannot be fetched from {host}, tried {times}: {reason}; check the network, then run the same command."
    )


def disk_failed(error: OSError, file: RemoteFile) -> FetchError:
    """Return the error for a disk that cannot be written."""
    if is_disk_full(error):
        return FetchError(
            f"the disk of {file.path.parent} is full; complete files are kept. Free space, then run the same command."
        )
    return FetchError(f"cannot write {file.path}: {error.strerror}; fix that, then run the same command.")
