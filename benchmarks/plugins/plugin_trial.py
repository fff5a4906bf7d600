"""Trial import of a plugin's module in a process of its own, before it is imported here.

An import that ends or crashes its process, or never returns, cannot be caught. The result is stored in the user's cache, by the
package's version and the times of its files, so that a trial costs a process once for each version.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from benchmarks.errors import RashomonError
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import read_bytes, replace_file

SECONDS = 30.0
"""The longest import of a plugin; a slow one of a large library takes three."""

_MOST_FILES = 1000
"""The files of a package whose times are looked at."""

_SURVIVED, _THREADS = "survived", "threads"
_CHILD = """
import os, sys, threading
sys.path[:] = sys.argv[2:]
report = os.dup(1)
os.dup2(2, 1)
try:
    __import__(sys.argv[1])
except BaseException:  # which is caught where it matters
    pass
others = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and not thread.daemon]
os.write(report, b"threads" if others else b"survived")
os._exit(0)
"""


def crash(module: str, package: str, *, again: bool = False) -> str:
    """Return why importing ``module`` of ``package`` ends or stops a process, as a phrase; "" if it does not.

    ``package`` is the distribution's name and version. With ``again``, a stored result does not count.
    """
    files = _files(module)
    if not files:  # the import itself reports that there is no such module
        return ""
    folder, name = cache_folder() / "plugins", _key(module, package, files)
    if not again and (stored := _read(folder, name)) is not None:
        return stored
    reason = _try(module)
    try:
        make_private(cache_folder())
        folder.mkdir(exist_ok=True)
        replace_file(folder, name, (reason or _SURVIVED).encode())
    except (OSError, RashomonError):  # the next process tries it again
        pass
    return reason


def _read(folder: Path, name: str) -> str | None:
    try:
        text = read_bytes(folder, name, limit=200).decode()
    except (OSError, ValueError, RashomonError):
        return None
    return "" if text == _SURVIVED else text


def _try(module: str) -> str:
    """Import ``module`` in a child process; return what became of that, as :func:`crash`."""
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD, module, *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError):  # no process can be started, or the name has a null character
        return ""
    try:
        report, _ = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"its import takes more than {SECONDS:.0f} seconds"
    finally:
        if child.poll() is None:
            _kill(child)
    if report == _SURVIVED.encode():
        return ""
    if report == _THREADS.encode():
        return "its import starts a thread that keeps a command from ending"
    code = child.returncode
    return (
        f"its import ends the process by {_signal(-code)}" if code < 0 else f"its import ends the process with {code}"
    )


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with the processes that it has started, which could keep its output open."""
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _files(module: str) -> list[os.stat_result]:
    """Return the files of the top-level package of ``module``, at most :data:`_MOST_FILES`; none if it is not there."""
    try:
        spec = find_spec(module.partition(".")[0])  # of the top, which imports nothing
    except (ImportError, ValueError, OSError):
        return []
    if spec is None:
        return []
    places = spec.submodule_search_locations
    files = [Path(spec.origin)] if places is None and spec.origin else _below(list(places or ()))
    return [file.stat() for file in islice(files, _MOST_FILES) if file.is_file()]


def _below(places: Sequence[str]) -> Iterator[Path]:
    for place in places:
        for folder, folders, names in os.walk(place):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            yield from (Path(folder, name) for name in sorted(names))


def _key(module: str, package: str, files: Sequence[os.stat_result]) -> str:
    facts = (module, package, sys.version, sys.prefix, [(file.st_mtime_ns, file.st_size) for file in files])
    return hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()
