"""The files of docs/nightly: valid for what reads them, and the script run for two nights."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli import cli
from tests.docs.pages import ROOT, links
from tests.docs.test_commands import parse
from tests.support.command import Rashomon
from tests.support.demo import write_table

FOLDER = ROOT / "docs" / "nightly"
SCRIPT = FOLDER / "nightly.sh"
WORKFLOWS = [*sorted(FOLDER.glob("*.yml")), *sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
PLIST_KEYS = {
    "Label": str,
    "ProgramArguments": list,
    "WorkingDirectory": str,
    "EnvironmentVariables": dict,
    "StartCalendarInterval": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}
CRON_LINE = re.compile(r"([0-9]+|\*)( ([0-9]+|\*)){4} [^%]+")
"""Five numbers or stars, then a command without %, which cron would turn into a new line."""


def commands(text: str) -> list[list[str]]:
    """Return Rashomon's command lines in a script or a workflow."""
    lines = text.replace("\\\n", " ").splitlines()
    matches = (re.match(r"\s*(?:- run: )?(rashomon .*?)(?: \|\| .*| 2?>.*)?$", line) for line in lines)
    return [shlex.split(match[1]) for match in matches if match]


def test_the_page_links_to_all_files() -> None:
    linked = {link.file for link in links("docs/scripting.md")}
    assert {path.relative_to(ROOT).as_posix() for path in FOLDER.iterdir()} <= linked


@pytest.mark.skipif(not find_spec("check_jsonschema"), reason="check-jsonschema is not installed")
def test_workflows_follow_githubs_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([*command, *WORKFLOWS], check=True)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_rights_are_named(path: Path) -> None:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text("utf-8"))
    assert "contents" in workflow["permissions"]
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", [])]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    assert all(("uses" in step) != ("run" in step) for step in steps)


@pytest.mark.parametrize("name", ["nightly.sh", "github-linux.yml"])
def test_commands_parse(name: str) -> None:
    lines = commands((FOLDER / name).read_text("utf-8").replace("$max_loss", "0.03"))
    assert {"batch", "check"} <= {words[1] for words in lines}
    for words in lines:
        parse(words[1:])


def test_launchd_reads_the_plist() -> None:
    job = plistlib.loads((FOLDER / "rashomon.nightly.plist").read_bytes())
    assert {key: type(value) for key, value in job.items()} == PLIST_KEYS
    assert all(isinstance(word, str) for word in job["ProgramArguments"])
    assert all(isinstance(value, str) for value in job["EnvironmentVariables"].values())
    assert 0 <= job["StartCalendarInterval"]["Hour"] < 24
    assert 0 <= job["StartCalendarInterval"]["Minute"] < 60
    assert all(Path(job[key]).is_absolute() for key in ("WorkingDirectory", "StandardOutPath", "StandardErrorPath"))
    assert f"{job['Label']}.plist" == "rashomon.nightly.plist"


def test_cron_reads_the_crontab() -> None:
    lines = [line for line in (FOLDER / "crontab").read_text("utf-8").splitlines() if not line.startswith("#")]
    variables, jobs = lines[:1], lines[1:]
    assert all(re.fullmatch(r"[A-Z_]+=[^$]+", line) for line in variables)
    assert len(jobs) == 1
    assert all(CRON_LINE.fullmatch(line) for line in jobs)
    subprocess.run(["sh", "-n", "-c", jobs[0].split(maxsplit=5)[5]], check=True)


def test_the_script_is_one_for_any_shell() -> None:
    assert os.access(SCRIPT, os.X_OK)
    subprocess.run(["sh", "-n", SCRIPT], check=True)
    if shellcheck := shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"):
        subprocess.run([shellcheck, SCRIPT], check=True)


@pytest.fixture
def night(tmp_path: Path) -> Rashomon:
    """A home with a question set and the command `rashomon`."""
    rashomon = Rashomon(tmp_path, variables={"PYTHONDONTWRITEBYTECODE": "1"})
    rashomon.run("build", "cmc-bench", "--from", write_table(tmp_path, 24))
    program = tmp_path / "bin" / "rashomon"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m app.main "$@"\n')
    program.chmod(0o755)
    return rashomon


def _path(rashomon: Rashomon) -> str:
    return f"{rashomon.home / 'bin'}{os.pathsep}{os.environ['PATH']}"


def run_night(rashomon: Rashomon, number: int, models: str, *, code: int) -> str:
    """Run the script as that of a later day, and return its issue."""
    variables = {
        **rashomon.environment,
        "PATH": _path(rashomon),
        "TZ": f"NIGHT-{24 * number}" if number else "NIGHT0",
        "MODELS": models,
    }
    done = subprocess.run(["sh", SCRIPT], env=variables, cwd=rashomon.home, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    issue = results(rashomon)[-1] / "issue.md"
    return issue.read_text("utf-8") if issue.exists() else ""


def results(rashomon: Rashomon) -> list[Path]:
    """Return the folders of the nights, oldest first."""
    return sorted((rashomon.home / "results").iterdir())


@pytest.mark.slow
def test_a_night_with_a_worse_model_ends_in_an_issue(night: Rashomon) -> None:
    good = "first=policy:always-text second=policy:always-image"
    assert run_night(night, 0, good, code=0) == ""
    issue = run_night(night, 1, good.replace("always-text", "always-abstain"), code=5)
    assert "## first (exit code 5)" in issue
    assert "second" not in issue
    names = sorted(night.run("runs", "--prune", "--keep", "0", code=2).stdout.split())
    assert [name.count("nightly-") for name in names].count(1) == 4
    assert [(folder / "first.xml").exists() for folder in results(night)] == [True, True]


@pytest.mark.slow
def test_a_night_goes_on_with_the_next_model_if_one_cannot_be_asked(night: Rashomon) -> None:
    issue = run_night(night, 0, "gone=no/such-model second=policy:always-image", code=2)
    assert "## gone (exit code 2)" in issue
    assert "no/such-model" in issue
    assert (results(night)[0] / "second.xml").exists()


@pytest.mark.slow
def test_a_night_is_checked_by_its_own_run_not_by_the_newest(night: Rashomon) -> None:
    run_night(night, 0, "first=policy:always-text", code=0)
    command = ("batch", "--benchmark", "cmc-bench", "--data", "charts", "--model", "policy:always-text")
    night.run(*command, "--prompt-set", "conflict-aware", "--name", "mine", "--display", "none")  # which is newer
    run_night(night, 0, "first=policy:always-text", code=0)  # tonight's run is finished already
    reports = [(folder / "first.md").read_text("utf-8") for folder in results(night)]
    assert reports[0] == reports[1]
    assert "nightly-" in reports[1]


@pytest.mark.slow
def test_a_night_leaves_another_one_alone(night: Rashomon) -> None:
    command = ("--batch", "--benchmark", "cmc-bench", "--data", "charts", "--model", "policy:always-text")
    issue = run_night(night, 0, "gone=no/such-model", code=2)
    process = night.held().start(*command, "--name", "reference-first", "--display", "json")
    assert process.stdout is not None
    while '"done": 8' not in (line := process.stdout.readline()):
        assert line, "it ended"
    assert run_night(night, 0, "first=policy:always-text", code=4) == ""
    assert (results(night)[0] / "issue.md").read_text("utf-8") == issue
    night.go_on()
    assert process.wait() == 0


@pytest.mark.slow
def test_the_workflow_on_linux_runs(night: Rashomon) -> None:
    text = (FOLDER / "github-linux.yml").read_text("utf-8")
    ci, summary = night.home / "ci", night.home / "summary.md"
    ci.mkdir()
    shutil.move(night.home / "charts.csv", ci)
    shutil.move(night.home / "held_out", ci)
    variables = night.environment | {"PATH": _path(night), "GITHUB_STEP_SUMMARY": str(summary)}
    reference = re.findall(r"#   (rashomon .*)", text)
    (job,) = yaml.safe_load(text)["jobs"].values()
    steps = [step["run"] for step in job["steps"] if not step.get("run", "pip").startswith("pip")]
    for line in (steps[0], *reference, *steps):
        subprocess.run(["sh", "-e", "-c", line], env=variables, cwd=night.home, check=True, capture_output=True)
    assert "candidate beside reference" in summary.read_text("utf-8")
    assert (night.home / "check.xml").exists()


def test_the_page_names_commands_that_there_are() -> None:
    named = {
        line.split()[1] for line in re.findall(r"rashomon [a-z]+", (ROOT / "docs/scripting.md").read_text("utf-8"))
    }
    assert named <= {*cli.commands}
