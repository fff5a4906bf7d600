"""Malformed run specs, tables, question sets and runs: one sentence, a documented exit code, bounded work, nothing outside."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import pytest

from tests.malformed import sets, sheets, specs
from tests.malformed.case import Case
from tests.malformed.home import make_home
from tests.malformed.measured import measured
from tests.support.command import Rashomon
from tests.support.sampled import some_fast

MEGABYTES, SECONDS = 500, 10
CASES = [case for module in (specs, sheets, sets) for case in module.all_cases()]
OWN = {"workspace", "cache", "state", ".cache", ".config", ".local"}
"""The names in a home that commands may write."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("malformed")
    make_home(home)
    return home


def test_the_corpus_has_its_size() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 225


@pytest.mark.parametrize("case", some_fast(CASES, 4), ids=lambda case: case.name.replace(" ", "-"))
def test_malformed_input_is_named_within_bounds(template: Path, tmp_path: Path, case: Case) -> None:
    home = tmp_path / "home"
    shutil.copytree(template, home, symlinks=True)
    arguments = case.make(home)
    before = _outside(home)
    done = measured(Rashomon(home, variables={"XDG_STATE_HOME": str(home / "state")}), *arguments)
    report = f"{case.name}\n{done}"[:5_000]
    assert _outside(home) == before, report
    assert "Traceback" not in done.out + done.err, report
    assert done.code == case.code, report
    assert case.says in done.out + done.err, report
    lines = [line for line in done.err.splitlines() if line.startswith("rashomon: ")]
    assert len(lines) == (done.code != 0), report
    assert not _CONTROL.search(done.out + done.err), report
    assert done.megabytes <= MEGABYTES, report
    assert done.seconds <= SECONDS, report


def _outside(home: Path) -> dict[str, str]:
    """Return what is in a home and beside it, other than the workspace and the program's own folders."""
    entries = {}
    for path in sorted(home.parent.rglob("*")):
        parts = path.relative_to(home.parent).parts
        if len(parts) > 1 and parts[1] in OWN:
            continue
        is_file = path.is_file() and not path.is_symlink()
        entries[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() if is_file else str(path.lstat().st_mode)
    return entries
