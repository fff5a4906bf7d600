"""Requirements of Rashomon on a machine, checked before its libraries are installed.

`make` runs this file with the Python it found, so it imports the standard library only and has no syntax newer than Python 3.8.
"""

from __future__ import annotations

import platform
import site
import stat
import subprocess
import sys
from pathlib import Path

OLDEST_MACOS = 14
_MACOS_OF_DARWIN = {20: 11, 21: 12, 22: 13, 23: 14, 24: 15, 25: 26, 27: 27}
"""The versions of macOS by those of its kernel; there is no Darwin 26."""
_OLDEST_PYTHON = (3, 11)
_OLDEST_GLIBC = (2, 35)


def macos_version(reported: str, kernel: str) -> str:
    """Return the version of macOS from ``platform.mac_ver`` and ``platform.release``; "newer than N" if neither tells.

    Programs built for older systems are told 10.16 on macOS 11 and newer, and 16 on macOS 26, though there is no macOS 16 to 25.
    The kernel's version is never disguised.
    """
    major, _, rest = reported.partition(".")
    if not (reported.startswith("10.16") or (major.isdigit() and 16 <= int(major) <= 25)):
        return reported
    darwin = int(kernel.partition(".")[0]) if kernel.partition(".")[0].isdigit() else 0
    if darwin in _MACOS_OF_DARWIN:
        actual = str(_MACOS_OF_DARWIN[darwin])
        return f"{actual}.{rest}" if (major, actual) == ("16", "26") and rest else actual
    older = [version for number, version in _MACOS_OF_DARWIN.items() if number < darwin]
    return f"newer than {older[-1]}" if older else reported


def machine_problem() -> str:
    """Return what keeps Rashomon from working on this machine with this Python, and what to do; "" if nothing does."""
    if sys.version_info < _OLDEST_PYTHON:
        python = f"{sys.executable} is {platform.python_version()}"
        return f"Rashomon needs Python 3.11 or newer, and {python}; name another: make PYTHON=/path/to/python3."
    if sys.platform == "darwin":
        return _mac_problem()
    libc, version = platform.libc_ver()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if sys.platform == "linux" and (libc != "glibc" or numbers < _OLDEST_GLIBC):
        library = f"{libc} {version}".strip() or "another C library"
        return f"MLX needs Linux with glibc 2.35 or newer (such as Ubuntu 22.04), and this system has {library}."
    return ""


def _mac_problem() -> str:
    if platform.machine() != "arm64":
        if _is_translated():
            return (
                "this Python runs under Rosetta, and MLX needs a native one; start the terminal without Rosetta, or install "
                "an arm64 Python (`brew install python@3.13`, or python.org's installer) and delete .venv."
            )
        return "MLX needs Apple silicon (M1 or newer), and this is an Intel Mac; use another Mac, or Linux."
    version = macos_version(platform.mac_ver()[0], platform.release())
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_MACOS:
        return f"MLX needs macOS {OLDEST_MACOS} or newer, and this is macOS {version}; update the system."
    return ""


def _is_translated() -> bool:
    command = ["/usr/sbin/sysctl", "-n", "sysctl.proc_translated"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.stdout.strip() == b"1"


def hidden_path_files() -> list[Path]:
    """Return this environment's ``.pth`` files that are hidden, which Python ignores; iCloud hides them in its folders."""
    folders = [Path(folder) for folder in site.getsitepackages()]
    files = [file for folder in folders for file in folder.glob("*.pth")]
    return [file for file in files if getattr(file.stat(), "st_flags", 0) & stat.UF_HIDDEN]


def hidden_problem() -> str:
    """Return what to do about hidden ``.pth`` files; "" where there are none."""
    hidden_files = hidden_path_files()
    if not hidden_files:
        return ""
    return (
        f"{hidden_files[0]} is hidden, so Python ignores it and cannot import Rashomon; iCloud does that in Desktop and "
        "Documents: move the folder elsewhere, or delete .venv and install a copy with `make demo EDITABLE=`."
    )


if __name__ == "__main__":
    problem = hidden_problem() if "--installed" in sys.argv else machine_problem()
    if problem:
        sys.exit("rashomon: " + problem)
