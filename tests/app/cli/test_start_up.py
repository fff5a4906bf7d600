"""The command line starts at once: nothing heavy is imported before it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, Rashomon

HEAVY = (
    "mlx",
    "mlx_vlm",
    "torch",
    "transformers",
    "datasets",
    "numpy",
    "PIL",
    "matplotlib",
    "pydantic",
    "rich",
    "textual",
    "pint",
    "babel",
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["runs", "--json"],
        ["data"],
        ["completion", "bash"],
        ["benchmarks"],
        ["judges", "--json"],
        ["batch", "--help"],
    ],
)
def test_nothing_heavy_is_imported_to_list_or_help(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys, json\nfrom app.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit as end: assert not end.code\n"
        "print('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    rashomon = Rashomon(tmp_path)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import site; site.main()\n" + code, *arguments],
        env={**rashomon.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert not set(loaded) & set(HEAVY)


def test_help_names_every_command_and_the_exit_codes(tmp_path: Path) -> None:
    stdout = Rashomon(tmp_path).run("--help").stdout
    for word in (
        "batch",
        "resume",
        "build",
        "runs",
        "show",
        "compare",
        "recommend",
        "parity",
        "export",
        "benchmarks",
        "models",
        "judges",
        "doctor",
        "demo",
    ):
        assert f"\n  {word}" in stdout
    assert "130 interrupted" in stdout
    assert Rashomon(tmp_path).run().stdout == stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bild"], "did you mean 'build'"),
        (["show"], "missing argument"),
        (["show", "nothing"], "there is no run 'nothing'"),
        (["resume", "../../etc"], "there is no run"),
        (["export", "nothing", "--format", "docx"], "there is no format 'docx'"),
        (["build", "cmc-bnch"], "did you mean 'cmc-bench'?"),
        (["build", "cmc-bench"], "nothing to build from"),
        (["build", "cmc-bench", "--source", "chartqua=x"], "did you mean 'chartqa'?"),
        (["build", "cmc-bench", "--source", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_what_is_typed_wrong_is_told_in_one_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    stderr = Rashomon(tmp_path).run(*arguments, code=2).stderr
    assert says.lower() in stderr.lower()
    assert len(stderr.splitlines()) == 1


@pytest.mark.slow
def test_listings_are_json_too(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    assert rashomon.json("runs") == []
    benchmark = rashomon.json("benchmarks")[0]
    assert benchmark["conditions"][:4] == ["aligned", "image-correct", "text-correct", "both-wrong"]
    models = rashomon.json("models")
    assert models["policies"][0]["name"] == "policy:always-image"
    assert rashomon.json("judges")["rules"][0]["name"] == "match"
    findings = rashomon.json("doctor")
    assert {finding["check"]: finding["ok"] for finding in findings}["mlx"] is True


def test_an_interruption_while_a_class_is_created_is_no_bug(tmp_path: Path) -> None:
    code = """
import os, signal
from app import cli, main

class Attribute:
    def __set_name__(self, owner, name):  # Python 3.11 turns what is raised here into a RuntimeError
        os.kill(os.getpid(), signal.SIGTERM)

cli.run_cli = lambda arguments: type("Created", (), {"attribute": Attribute()})
main.main([])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**Rashomon(tmp_path).environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
