"""What a release is made of: its notes, and one version everywhere."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.command import ROOT, Rashomon

CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-01\n\n### Added\n\n- Trams.\n\n## [1.1.0]\n\n- Buses.\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of version 1.2.0 with the script."""
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "release_notes.py").write_bytes((ROOT / ".github" / "release_notes.py").read_bytes())
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def notes(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = project / ".github" / "release_notes.py"
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)


def test_the_notes_are_the_section_of_the_version(project: Path) -> None:
    assert notes(project, "v1.2.0").stdout == "### Added\n\n- Trams.\n"


@pytest.mark.parametrize("tag", ["v1.1.0", "1.2.0", "v1.2.0; echo x"])
def test_a_tag_that_is_not_the_version_is_refused(project: Path, tag: str) -> None:
    result = notes(project, tag)
    assert (result.returncode, result.stdout) == (2, "")


def test_a_version_without_a_section_is_refused(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(CHANGELOG.replace("- Trams.\n", "").replace("### Added\n", ""))
    assert notes(project, "v1.2.0").returncode == 2


def test_the_command_prints_the_version_of_the_project(tmp_path: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert Rashomon(tmp_path).run("--version").stdout == f"rashomon {version}\n"
