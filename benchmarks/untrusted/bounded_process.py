"""Child process with limits on memory and time, for processing untrusted data with libraries that have no limits.

The parent has one :class:`BoundedProcess` for each kind of work and sends it one request at a time; the child's module calls
:func:`serve`. Messages are JSON objects, optionally with raw bytes; nothing is ever unpickled. Large input is passed to the
child as an open file rather than copied into its memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from benchmarks.untrusted.system_tools import tool_output

Limit = Literal["memory", "time"]
Message = tuple[dict[str, Any], bytes]
Handler = Callable[[dict[str, Any], IO[bytes] | None], Iterator[tuple[dict[str, Any], bytes]]]

MEMORY = 400 * 10**6
"""The default limit of a request's memory in bytes, in addition to the libraries that the child imports."""

SECONDS = 8.0
"""The default limit of a request's processor time."""

_MESSAGE_TIMEOUT = 60.0
"""The seconds to wait for a message on a machine with nothing else to do, whatever processor time the child has used."""

_LIBRARIES = 500 * 10**6
"""The maximum memory of a child's libraries in bytes on macOS, where the parent enforces the limit."""

_LARGEST_MESSAGE = 64 * 1024 * 1024
_POLL_SECONDS = 0.1
_HEADER = struct.Struct("<II")
_ENVIRONMENT = ("PATH", "HOME", "XDG_STATE_HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "VIRTUAL_ENV", "SYSTEMROOT")


class LimitError(Exception):
    """A request that exceeded its memory or time, or that ended the child; ``limit`` says which."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


class ChildError(Exception):
    """A request at which the child's own code raised; the message is that exception's type and text."""


class BoundedProcess:
    """A child process that runs ``module``, started at the first request and again after a request that ended it.

    It has none of the environment's keys and receives no signal of the terminal. ``memory`` is in bytes, in addition to the
    child's libraries. ``seconds`` of processor time apply to a request, or to each message if ``renewed``, which is for
    answers as long as their files.
    """

    def __init__(self, module: str, seconds: float = SECONDS, memory: int = MEMORY, *, renewed: bool = False) -> None:
        self._module = module
        self._limits = {"seconds": seconds, "memory": memory, "renewed": renewed}
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = 0

    def ask(
        self, request: Mapping[str, Any], file: IO[bytes] | None = None, memory: int | None = None
    ) -> Generator[Message, None, None]:
        """Yield the messages that answer ``request``. Raises LimitError if it exceeds a limit, ChildError for a bug.

        ``memory`` is another limit in bytes, for this request and those that follow.
        """
        with self._lock:
            if memory is not None:
                self._limits["memory"] = memory
            link = self._started()
            try:
                _send(link, {**request, **self._limits, "file": file is not None})
                if file is not None:
                    _send_file(link, file)
                while "end" not in (message := self._message(link))[0]:
                    yield message
                if limit := message[0].get("limit"):
                    raise LimitError("time" if limit == "time" else "memory")
                if fault := message[0].get("fault"):
                    raise ChildError(fault)
            except OSError as error:
                raise LimitError(self._cause()) from error
            except BaseException:  # also an interruption: the rest of the answer must not reach the next request
                self.close()
                raise

    def start(self, request: Mapping[str, Any]) -> None:
        """Start the child and have it import the libraries of such a request, without waiting for it."""
        with self._lock, contextlib.suppress(OSError):  # the first request reports what is wrong
            _send(self._started(), {**request, "start": True})

    def close(self) -> None:
        """Kill the child."""
        if self._child is not None and self._owner == os.getpid():
            self._child.kill()
            self._child.wait()
        if self._socket is not None:
            self._socket.close()
        self._child = self._socket = None

    def _started(self) -> socket.socket:
        if self._owner != os.getpid() or (self._child is not None and self._child.poll() is not None):
            self.close()  # the child belongs to the process that this one was forked from, or has ended
        if self._socket is None:
            ours, theirs = socket.socketpair()
            with theirs:
                self._child = subprocess.Popen(
                    [sys.executable, "-P", "-m", self._module],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    env=_environment(),
                )
            self._owner, self._socket = os.getpid(), ours
        return self._socket

    def _message(self, link: socket.socket) -> Message:
        deadline = time.monotonic() + _MESSAGE_TIMEOUT * _slowness()
        header = self._received(link, _HEADER.size, deadline)
        size, payload = _HEADER.unpack(header)
        if size + payload > _LARGEST_MESSAGE:
            raise ConnectionError("a message is too long")
        fields = json.loads(self._received(link, size, deadline))
        return fields, bytes(self._received(link, payload, deadline))

    def _received(self, link: socket.socket, size: int, deadline: float) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            if not select.select([link], [], [], _POLL_SECONDS)[0]:
                self._check(deadline)
                continue
            count = link.recv_into(view[filled:])
            if not count:
                raise ConnectionError("the child ended")
            filled += count
        return data

    def _check(self, deadline: float) -> None:
        """Raise LimitError after the deadline and, on macOS, if the child has too much memory."""
        assert self._child is not None
        limit: Limit | None = "time" if time.monotonic() > deadline else None
        if sys.platform == "darwin" and _resident(self._child.pid) > self._limits["memory"] + _LIBRARIES:
            limit = "memory"
        if limit is not None:
            raise LimitError(limit)

    def _cause(self) -> Limit:
        """Return the limit that ended the child, which SIGPROF kills when its time is up."""
        assert self._child is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(1)
        cause: Limit = "time" if self._child.returncode == -signal.SIGPROF else "memory"
        self.close()
        return cause


def serve(handle: Handler, prepare: Callable[[dict[str, Any]], None]) -> None:
    """Answer the requests on standard input until the parent closes it. The child's module calls this.

    ``prepare`` imports the libraries of a request, which do not count towards its limits. ``handle`` yields the messages of
    the answer.
    """
    with socket.socket(fileno=os.dup(0)) as link:
        while (request := _read(link)) is not None:
            if request.pop("start", False):
                with contextlib.suppress(Exception):  # which the first request repeats
                    prepare(request)
                continue
            file = _receive_file(link) if request.pop("file") else None
            seconds, memory, renewed = (request.pop(name) for name in ("seconds", "memory", "renewed"))
            try:
                prepare(request)
                _limit_memory(memory)
                signal.setitimer(signal.ITIMER_PROF, seconds)
                for fields, payload in handle(request, file):
                    _send(link, fields, payload)
                    if renewed:
                        signal.setitimer(signal.ITIMER_PROF, seconds)
                end: dict[str, Any] = {"end": True}
            except MemoryError:
                end = {"end": True, "limit": "memory"}
            except Exception as error:
                end = {"end": True, "fault": f"{type(error).__name__}: {error}"[:500]}
            signal.setitimer(signal.ITIMER_PROF, 0)
            _limit_memory(None)
            if file is not None:
                file.close()
            _send(link, end)
            if "limit" in end:
                os._exit(0)  # libraries that ran out of memory are not used again


def _environment() -> dict[str, str]:
    """Return the child's environment, without keys."""
    allowed = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT or name.startswith("PYTHON")}
    return {**allowed, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def _limit_memory(growth: int | None) -> None:
    """Limit the growth of the address space to ``growth`` bytes; None removes the limit. On macOS the parent enforces it."""
    if not sys.platform.startswith("linux"):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if growth is None:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        return
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    soft = pages * resource.getpagesize() + growth
    resource.setrlimit(resource.RLIMIT_AS, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _slowness() -> float:
    """Return how many times longer a process takes than on an idle machine: the processes that wait for each processor."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    kilobytes = tool_output("/bin/ps", "-o", "rss=", "-p", str(pid))
    return int(kilobytes) * 1024 if kilobytes.strip().isdigit() else 0


def _send(link: socket.socket, fields: Mapping[str, Any], payload: bytes = b"") -> None:
    text = json.dumps(fields).encode()
    link.sendall(_HEADER.pack(len(text), len(payload)) + text)
    if payload:
        link.sendall(payload)


def _read(link: socket.socket) -> dict[str, Any] | None:
    header = _exactly(link, _HEADER.size)
    text = _exactly(link, _HEADER.unpack(header)[0]) if header else b""
    return dict(json.loads(text)) if text else None


def _exactly(link: socket.socket, size: int) -> bytes:
    """Return the next ``size`` bytes; empty if the other end closes the connection first."""
    data = b""
    while len(data) < size:
        part = link.recv(size - len(data))
        if not part:
            return b""
        data += part
    return data


def _send_file(link: socket.socket, file: IO[bytes]) -> None:
    socket.send_fds(link, [b"\0"], [file.fileno()])


def _receive_file(link: socket.socket) -> IO[bytes]:
    _, (descriptor, *_), _, _ = socket.recv_fds(link, 1, 1)
    file = os.fdopen(descriptor, "rb")
    file.seek(0)
    return file
