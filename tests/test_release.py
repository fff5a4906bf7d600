"""The release checklist of CONTRIBUTING.md: its commands and files exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from tests.support.command import ROOT

SECTION = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## A release\n")[2]
STEPS = re.findall(r"^(\d+)\. (.+)$", SECTION, re.MULTILINE)
QUOTED = [text for _, step in STEPS for text in re.findall(r"`([^`]+)`", step)]


def test_the_steps_are_numbered_and_each_names_a_command_or_a_file() -> None:
    assert [int(number) for number, _ in STEPS] == list(range(1, len(STEPS) + 1))
    assert len(STEPS) >= 8
    assert all("`" in step for _, step in STEPS)


@pytest.mark.parametrize("target", sorted({word.split()[1] for word in QUOTED if word.startswith("make ")}))
def test_every_target_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


WORDS = sorted(
    {word for text in QUOTED for word in text.split() if re.fullmatch(r"[\w./-]*[\w-]+\.(py|toml|md|txt|yml)", word)}
)


@pytest.mark.parametrize("path", WORDS)
def test_every_file_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_notes_of_a_version_are_printed() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    command = [sys.executable, ".github/release_notes.py", f"v{version}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode == 0 and done.stdout) or (done.returncode == 2 and "rename the section" in done.stderr)
