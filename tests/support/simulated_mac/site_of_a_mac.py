"""The module that Python imports as ``sitecustomize`` on a simulated Mac; beside it lie its facts and its tools."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent
_FACTS = json.loads((_FOLDER / "facts.json").read_text())
_SYSTEM = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")
_FULL_SYNC = 51


class _Platform(str):
    """The name of the platform, which records the functions that compare it."""

    __hash__ = str.__hash__

    def _name(self) -> str:
        code = sys._getframe(2).f_code
        with (_FOLDER / "branches").open("a") as file:
            file.write(f"{code.co_filename}:{code.co_qualname}\n")
        return "linux" if _is_library(code.co_filename) else "darwin"

    def __eq__(self, other: object) -> bool:
        return self._name() == other

    def __ne__(self, other: object) -> bool:
        return self._name() != other

    def startswith(self, *arguments: Any) -> bool:
        return self._name().startswith(*arguments)


def _is_library(file: str) -> bool:
    """Return whether a module is a library's: their parts for macOS load its frameworks, which are not here."""
    return "site-packages" in file and "platformdirs" not in file


# Python's own build is read while it is still known as Linux's.
os.environ["_PYTHON_SYSCONFIGDATA_NAME"] = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]
sysconfig.get_config_vars()
sys.platform = _Platform("darwin")
platform.system = lambda: "Linux" if _is_library(sys._getframe(1).f_code.co_filename) else "Darwin"
platform.machine = lambda: _FACTS["processor"]
platform.release = lambda: _FACTS["kernel"]
platform.mac_ver = lambda *_: (_FACTS["version"], ("", "", ""), _FACTS["processor"])

_proxies: Any = types.ModuleType("_scproxy")  # of the settings of a Mac's network: none
_proxies._get_proxies = dict
_proxies._get_proxy_settings = lambda: {"exclude_simple": False, "exceptions": ()}
sys.modules["_scproxy"] = _proxies

_control, _start = fcntl.fcntl, subprocess.Popen.__init__


def _file_control(descriptor: Any, command: int, *arguments: Any) -> Any:
    return os.fsync(descriptor) if command == _FULL_SYNC else _control(descriptor, command, *arguments)


def _start_here(process: Any, arguments: Any, *others: Any, **options: Any) -> None:
    """Start the tool of the simulated Mac in place of the system's, which may be missing."""
    if isinstance(arguments, (list, tuple)) and os.path.dirname(arguments[0]) in _SYSTEM:
        arguments = [str(_FOLDER / "bin" / os.path.basename(arguments[0])), *arguments[1:]]
    _start(process, arguments, *others, **options)


fcntl.F_FULLFSYNC = _FULL_SYNC  # type: ignore[attr-defined]
fcntl.fcntl = _file_control
subprocess.Popen.__init__ = _start_here  # type: ignore[method-assign, assignment]
