"""Check of the names of Rashomon's packages, which other installed packages may have too."""

from __future__ import annotations

import csv
import hashlib
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from app.doctor.check_result import CheckResult
from app.store.workspace import Workspace

_ROOT = Path(__file__).resolve().parents[2]
_NAMES = ("app", "assets", "benchmarks", "judges", "mlx_backends", "rashomon")
_MAX_LISTED = 3
_FIX = "install Rashomon in an environment of its own: `pipx install rashomon`."


def names(workspace: Workspace) -> CheckResult:
    """Check that nothing else has replaced Rashomon's files, and report packages of the same names."""
    if changed := list(_changed_files()):
        more = f" and {len(changed) - _MAX_LISTED} more" if len(changed) > _MAX_LISTED else ""
        return CheckResult(
            "names", False, f"changed since the installation: {', '.join(changed[:_MAX_LISTED])}{more}", _FIX
        )
    others = [*_other_distributions(), *_other_folders()]
    if others:
        return CheckResult("names", True, f"also the names of others: {'; '.join(others)}", _FIX)
    return CheckResult("names", True, f"no other package is called {', '.join(_NAMES[:-1])} or {_NAMES[-1]}")


def _changed_files() -> Iterator[str]:
    """Yield the modules of the installation that are not those that were installed."""
    try:
        installed = distribution("rashomon")
    except PackageNotFoundError:
        return
    # `files` of newer Pythons leaves out what is missing.
    for file, digest, _ in csv.reader((installed.read_text("RECORD") or "").splitlines()):
        if not digest or file.split("/")[0] not in _NAMES or not file.endswith(".py"):
            continue
        algorithm, _, expected = digest.partition("=")
        try:
            actual = hashlib.new(algorithm, Path(str(installed.locate_file(file))).read_bytes()).digest()
        except OSError:
            yield file
            continue
        if urlsafe_b64encode(actual).rstrip(b"=").decode() != expected:
            yield file


def _other_distributions() -> Iterator[str]:
    distributions = packages_distributions()
    for name in _NAMES:
        others = sorted({other for other in distributions.get(name, ()) if other != "rashomon"})
        if others:
            yield f"{name} of {', '.join(others)}"


def _other_folders() -> Iterator[str]:
    """Yield the other packages of these names on the import path, but no second copy of Rashomon."""
    for place in dict.fromkeys(Path(entry).resolve() for entry in sys.path if entry):
        folders = [place / name for name in _NAMES if (place / name / "__init__.py").is_file()]
        if place != _ROOT and not (place / "mlx_backends").is_dir():
            yield from map(str, folders)
