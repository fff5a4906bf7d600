"""The workflows on GitHub: pinned actions, no credentials left behind, no expression inside a shell command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# The runner images that GitHub offers; https://github.com/actions/runner-images announces when it withdraws one.
RUNNERS = {"ubuntu-24.04", "macos-15", "macos-26"}


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} == {"release", "test", "weekly", "wheel"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflow:
    def test_actions_are_pinned_to_commits(self, path: Path) -> None:
        actions = [line for line in re.findall(r"uses: (.+)", path.read_text("utf-8")) if not line.startswith("./")]
        assert actions
        assert [line for line in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", line)] == []

    def test_permissions_are_read_only_unless_a_job_needs_more(self, path: Path) -> None:
        text = path.read_text("utf-8")
        assert re.search(r"^permissions:\n  contents: read\n(?=\S|\n)", text, re.MULTILINE)
        if path.stem != "release":
            assert ": write" not in text

    def test_no_checkout_leaves_its_token_behind(self, path: Path) -> None:
        text = path.read_text("utf-8")
        checkouts = re.findall(r"uses: actions/checkout@.*\n( +with:\n +persist-credentials: false\n)?", text)
        assert checkouts
        assert all(checkouts)

    def test_no_expression_is_expanded_into_a_shell_command(self, path: Path) -> None:
        commands = re.findall(r"run: (?:\|\n(?:\s{10}.*\n)+|.*\n)", path.read_text("utf-8"))
        assert commands
        assert [command for command in commands if "${{" in command] == []

    def test_every_runner_is_still_offered(self, path: Path) -> None:
        labels = set(re.findall(r"(?:ubuntu|macos|windows)-[\w.-]+", path.read_text("utf-8")))
        assert labels <= RUNNERS


def test_what_publishes_cannot_write_to_the_repository() -> None:
    text = next(path for path in WORKFLOWS if path.stem == "release").read_text("utf-8")
    jobs = dict(re.findall(r"^  (\w+):\n((?:    .*\n|\n|  #.*\n)+)", text, re.MULTILINE))
    assert "id-token: write" in jobs["publish"]
    assert [name for name, job in jobs.items() if "contents: write" in job] == ["announce"]
    assert "id-token: write" not in jobs["announce"]
