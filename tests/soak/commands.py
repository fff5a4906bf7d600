"""Commands of a played user: their processes, signals, limits and leftovers in the process table."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path

from tests.soak.terminal import Typist
from tests.support.viewed import ADDRESSES

ROOT = Path(__file__).resolve().parents[2]
INJECTED = Path(__file__).resolve().parent / "injected"
SOAK = "RASHOMON_SOAK"
"""The environment variable with what the soak changes in each process; it also marks the processes of a soak."""

HANG_S = 60.0
"""Seconds after which a command hangs on an idle machine; :func:`slowness` times as many on a busy one."""
GRACE_S = 20.0
"""Seconds in which the processes of a command end after it, on an idle machine."""
STILL_S = 60.0
"""Seconds without any computation after which a command hangs, however busy the machine is."""
STOP_S = 75.0
"""Seconds in which a command ends after a signal that it can handle: a minute for its worker, and some more."""
_LINK = re.compile(r"http://127\.0\.0\.1:\d+/\S*")

_SMALL_DISK = """
disk=$0; kilobytes=$1; build=$2; out=$3; shift 3
mkdir -p "$disk" && mount -t tmpfs -o size=200m tmpfs "$disk" && cp -r "$build" "$disk/charts" || exit 90
mount -o remount,size=$(( $(du -sk "$disk" | cut -f1) + kilobytes ))k "$disk" || exit 91
"$@"; first=$?
case $first in 0|3) ;; *) exit $first;; esac
mount -o remount,size=200m "$disk" && "$@" || exit $((100 + $?))
"$1" -m app.main --workspace "$disk/workspace" export small --canonical --out "$out"
"""
"""The command on a disk with so many kilobytes left, then with room, then an export of its run."""


@dataclass(frozen=True)
class Command:
    """A command line of `rashomon`, and what happens to it.

    In ``arguments``, {home}, {server}, {hub}, {demo} and {workspace} stand for places that differ between two soaks.
    """

    arguments: tuple[str, ...]
    codes: tuple[int, ...] = (0,)
    """The documented exit codes if no signal is sent."""
    signal: str = ""
    """KILL, TERM, INT or HUP; "TREE" is KILL to all of its processes at once, as in a power cut; "CLOSE" closes its terminal."""
    after: float = 0.0
    """Seconds until the signal; with ``keys``, after the last of them."""
    keys: tuple[str, ...] = ()
    """Keys that are typed at its terminal, a piece at a time; without any, it has no terminal."""
    clock: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Seconds by which the clock is wrong, seconds after which it jumps, and by how much."""
    linked: bool = False
    """Whether the workspace is named by a link to it."""
    browses: bool = False
    """Whether the pages that it serves are requested until its signal."""
    megabytes: float = 0.0
    """The size of the disk under {disk}; 0 for none."""
    patience: float = 1.0
    """The multiple of :data:`HANG_S` that the command may take: 2 for trainings."""


@dataclass(frozen=True)
class Result:
    """The end of a command."""

    command: Command
    code: int
    out: str
    err: str
    seconds: float
    signalled: bool
    megabytes: float
    hung: bool = False
    pages: tuple[int, ...] = ()

    @property
    def reason(self) -> list[str]:
        """The lines of standard error that say why it failed."""
        return [line for line in self.err.splitlines() if line.startswith("rashomon: ")]


@dataclass
class Home:
    """A user's home: a workspace, a desk where files are written, and an environment."""

    folder: Path
    places: Mapping[str, str]
    key: str
    fault: str = ""
    mark: str = field(default_factory=lambda: f"soak-{os.getpid()}-{time.time_ns()}")

    def __post_init__(self) -> None:
        for place in (self.desk, self.io, self.tmp, self.workspace.parent):
            place.mkdir(parents=True, exist_ok=True)
        if not self.link.is_symlink():
            self.link.symlink_to(self.workspace)

    @property
    def user(self) -> Path:
        return self.folder / "Zoë's home"

    @property
    def workspace(self) -> Path:
        return self.user / "data" / "arbeit – 作業"

    @property
    def link(self) -> Path:
        return self.user / "link"

    @property
    def desk(self) -> Path:
        return self.user / "desk"

    @property
    def tmp(self) -> Path:
        return self.user / "tmp"

    @property
    def io(self) -> Path:
        """The folder for outputs of commands, outside of the user's home."""
        return self.folder / "io"

    @property
    def outside(self) -> Path:
        """The file in which processes note what they change outside of the user's home."""
        return self.folder / "outside.txt"

    def environment(self, command: Command) -> dict[str, str]:
        orders = {
            "mark": self.mark,
            "home": str(self.user),
            "outside": str(self.outside),
            "clock": command.clock,
            "fault": self.fault,
        }
        inherited = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
        return {
            **inherited,
            "HOME": str(self.user),
            "TMPDIR": str(self.tmp),
            "XDG_CACHE_HOME": str(self.user / "cache"),
            "XDG_STATE_HOME": str(self.user / "state"),
            "XDG_DATA_HOME": str(self.user / "share"),
            "XDG_CONFIG_HOME": str(self.user / "config"),
            "RASHOMON_WORKSPACE": str(self.link if command.linked else self.workspace),
            "RASHOMON_ENDPOINT_KEY": self.key,
            "HF_TOKEN": f"hf_{self.key}",
            "HF_ENDPOINT": self.places["hub"],
            "RASHOMON_MIRROR": self.places["hub"] + "/mirror",
            "NO_PROXY": "*",
            "MLX_DISABLE_COMPILE": "1",
            "COLUMNS": "120",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join([str(INJECTED), str(ROOT)]),
            SOAK: json.dumps(orders),
        }

    def words(self, command: Command) -> list[str]:
        """Return the command line."""
        places = {**self.places, "home": str(self.user), "workspace": str(self.workspace)}
        places["disk"] = str(self.user / "disk")
        arguments = [re.sub(r"\{([a-z]+( \d+)?)\}", lambda name: places[name[1]], word) for word in command.arguments]
        words = [sys.executable, "-m", "app.main", *arguments]
        if command.megabytes:
            sizes = (places["disk"], str(int(command.megabytes * 1024)), str(self.workspace / "sets" / "charts" / "1"))
            return ["unshare", "-rm", "sh", "-c", _SMALL_DISK, *sizes, str(self.desk / "small"), *words]
        return words

    def run(self, commands: Sequence[Command]) -> list[Result]:
        """Run the commands at the same time, to the end of all."""
        running = [_Running(self, command, number) for number, command in enumerate(commands)]
        while sum(process.poll() for process in running):
            time.sleep(0.01)
        return [process.result() for process in running]

    def processes(self) -> list[tuple[int, str]]:
        """Return the ids and command lines of the processes of this home that run (Linux; empty elsewhere)."""
        return [*_marked(self.mark.encode())]

    def end(self) -> None:
        """End all processes of this home."""
        for pid, _ in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def survivors(self, seconds: float = GRACE_S) -> list[str]:
        """Return the processes that outlive their commands by so many seconds, on an idle machine, and end them."""
        end = time.monotonic() + seconds * slowness()
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        self.end()
        return [f"{pid}: {line}" for pid, line in left]


def slowness() -> float:
    """Return how many times slower than alone a process may be: the load for each processor, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class _Running:
    """A command that runs."""

    def __init__(self, home: Home, command: Command, number: int) -> None:
        self.home, self.command = home, command
        self.slow = slowness()
        self.computed, self.computed_at, self.looked_at = 0.0, time.monotonic(), 0.0
        self.out, self.err = home.io / f"out-{number}", home.io / f"err-{number}"
        self.start = time.monotonic()
        self.code: int | None = None
        self.sent_at: float | None = None
        self.typed_at = 0.0
        self.hung, self.seconds, self.megabytes = False, 0.0, 0.0
        self.pages: list[int] = []
        self.typist: Typist | None = None
        if command.keys:
            keys = [re.sub(r"\{(id \d)\}", lambda name: home.places[name[1]], piece) for piece in command.keys]
            words, environment = home.words(command), home.environment(command)
            self.typist = Typist(words, environment, home.desk, keys, quits=not command.signal)
            self.pid = self.typist.terminal.process.pid
            return
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                home.words(command),
                env=home.environment(command),
                cwd=home.desk,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                process_group=0,
            )
            self.pid = self.process.pid

    def poll(self) -> bool:
        """Send what is due; return whether it still runs."""
        if self.code is not None:
            return False
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        passed = time.monotonic() - self.start
        if pid:
            self.code, self.seconds = os.waitstatus_to_exitcode(status), passed
            self.megabytes = usage.ru_maxrss / (1 << (10 if sys.platform == "linux" else 20))
            return False
        if self.typist is not None:
            self.typist.poll()
        if self.command.browses and not self.pages:
            self.pages = _browse(self.out.read_text("utf-8", "replace"))
        if self.typist is not None and not self.typist.is_done:
            self.typed_at = passed
        due = self.command.signal and self.sent_at is None and passed > self.typed_at + self.command.after
        self.slow = max(self.slow, slowness())
        limit = HANG_S * self.command.patience * self.slow
        if due and (not self.command.browses or self.pages or passed > limit):
            self._send()
        last = limit if self.sent_at is None else self.sent_at + STOP_S * slowness()
        if passed > last or self._is_still():
            self._end_hung()
        return True

    def _is_still(self) -> bool:
        """Return whether none of its processes has computed anything for :data:`STILL_S` seconds."""
        now = time.monotonic()
        if now - self.looked_at > 1:
            self.looked_at = now
            seconds = sum(map(_processor_seconds, [self.pid, *(pid for pid, _ in _below(self.pid))]))
            if seconds != self.computed:
                self.computed, self.computed_at = seconds, now
        return now - self.computed_at > STILL_S and not self.command.browses

    def _send(self) -> None:
        self.sent_at = time.monotonic() - self.start
        if self.command.signal == "TREE":
            for pid, _ in _below(self.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if self.typist is not None and self.command.signal == "CLOSE":
            self.typist.terminal.hang_up()
            return
        name = "KILL" if self.command.signal == "TREE" else self.command.signal
        os.kill(self.pid, signal.Signals[f"SIG{name}"])

    def _end_hung(self) -> None:
        if not self.hung:  # the processes write their stacks to standard error and to worker.log first
            self.hung = True
            for pid, _ in self.home.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGUSR2)
            time.sleep(1)
        self.home.end()

    def result(self) -> Result:
        assert self.code is not None
        if self.typist is not None:
            texts = self.typist.end()
        else:
            texts = (self.out.read_text("utf-8", "replace"), self.err.read_text("utf-8", "replace"))
        return Result(
            self.command,
            self.code,
            *texts,
            round(self.seconds, 2),
            self.sent_at is not None,
            round(self.megabytes, 1),
            self.hung,
            tuple(self.pages),
        )


def _browse(output: str) -> list[int]:
    """Request the page that a command serves, and some of what it links to; return the statuses."""
    match = _LINK.search(output)
    if match is None:
        return []
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar())
    )
    link = match[0].rstrip(".")
    host = link.partition("?")[0].rstrip("/")
    statuses = []
    for url in (link, *(host + path for path in ADDRESSES), f"{host}/no-such-page", f"{host}/../../etc/passwd"):
        try:
            with opener.open(url, timeout=20) as response:
                response.read()
                statuses.append(response.status)
        except urllib.error.HTTPError as error:
            statuses.append(error.code)
        except OSError:
            statuses.append(0)
    return statuses


def _marked(mark: bytes) -> Iterator[tuple[int, str]]:
    own = os.getpid()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != own and mark in (entry / "environ").read_bytes():
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 if it has ended (Linux)."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _below(pid: int) -> list[tuple[int, int]]:
    """Return the ids of a process's descendants, with their parents."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    below, wave = [], {pid}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave}
        below += [(child, parents[child]) for child in wave]
    return below
