"""Machines that Rashomon cannot run on, and what is said about them before anything is installed."""

from __future__ import annotations

import ast
import platform
import site
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from app import main
from app.system import requirements
from tests.support.command import ROOT

Mac = Callable[..., None]


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> Mac:
    """A Mac as Python describes it."""

    def describe(version: str, kernel: str, machine: str = "arm64", translated: bytes = b"") -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), machine))
        monkeypatch.setattr(platform, "release", lambda: kernel)
        monkeypatch.setattr(platform, "machine", lambda: machine)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=translated))

    return describe


@pytest.mark.parametrize(
    ("reported", "kernel", "actual"),
    [
        ("14.7.1", "23.6.0", "14.7.1"),
        ("15.5", "24.5.0", "15.5"),
        ("10.16", "22.6.0", "13"),
        ("10.16", "25.1.0", "26"),
        ("16.0", "25.0.0", "26.0"),
        ("16.2", "25.2.0", "26.2"),
        ("26.1", "25.1.0", "26.1"),
        ("27.0", "27.0.0", "27.0"),
        ("27.1", "27.1.0", "27.1"),
        ("10.16", "27.0.0", "27"),
        ("16.0", "27.0.0", "27"),
        ("17.0", "27.0.0", "27"),
        ("28.2", "28.2.0", "28.2"),
        ("28.2", "30.0.0", "28.2"),
        ("10.16", "28.0.0", "newer than 27"),
        ("16.4", "26.0.0", "newer than 26"),
        ("10.16", "", "10.16"),
        ("10.15.7", "19.6.0", "10.15.7"),
        ("", "", ""),
    ],
)
def test_the_version_of_macos_is_the_actual_one(reported: str, kernel: str, actual: str) -> None:
    assert requirements.macos_version(reported, kernel) == actual


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (("15.5", "24.5.0"), ""),
        (("16.0", "25.0.0"), ""),
        (("10.16", "25.0.0"), ""),
        (("27.0", "27.0.0"), ""),
        (("10.16", "28.0.0"), ""),
        (("10.16", "22.0.0"), "this is macOS 13"),
        (("13.6", "22.6.0"), "this is macOS 13.6"),
        (("15.5", "24.5.0", "x86_64", b"1\n"), "Rosetta"),
        (("15.5", "24.5.0", "x86_64", b"0\n"), "Intel Mac"),
        (("12.7", "21.6.0", "x86_64"), "Intel Mac"),
    ],
)
def test_a_mac_is_told_what_is_wrong(
    description: tuple[str, ...], message: str, mac: Mac, capsys: pytest.CaptureFixture[str]
) -> None:
    mac(*description)
    problem = requirements.machine_problem()
    assert message in problem
    assert bool(problem) == bool(message)
    main._warn_of_machine()
    assert capsys.readouterr().err == (f"warning: {problem}\n" if problem else "")


def test_an_old_python_and_an_old_system_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert requirements.machine_problem() == ""
    monkeypatch.setattr(sys, "platform", "linux")
    for library in (("glibc", "2.31"), ("", "")):
        monkeypatch.setattr(platform, "libc_ver", lambda library=library: library)
        assert "glibc 2.35" in requirements.machine_problem()
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    assert "Python 3.11" in requirements.machine_problem()


def test_a_hidden_path_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert requirements.hidden_problem() == ""
    (tmp_path / "_editable_impl_rashomon.pth").touch()
    (tmp_path / "plain.pth").touch()
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    actual = Path.stat

    def flagged(path: Path, **options: bool) -> object:
        return SimpleNamespace(st_flags=stat.UF_HIDDEN if "rashomon" in path.name else 0, st_mode=actual(path).st_mode)

    monkeypatch.setattr(Path, "stat", flagged)
    assert "_editable_impl_rashomon.pth is hidden" in requirements.hidden_problem()


def test_the_check_needs_no_library_and_no_new_python() -> None:
    file = ROOT / "app" / "system" / "requirements.py"
    tree = ast.parse(file.read_text("utf-8"), feature_version=(3, 8))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names | {"__future__"}
    done = subprocess.run([sys.executable, "-S", "-I", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
