"""Text of every kind as the value of every option and argument: a result or one sentence, never a traceback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import click
import pytest

from app.cli import cli
from app.exit_codes import MEANINGS
from tests.support.command import Rashomon
from tests.support.demo import DEMO
from tests.support.inside import run_inside

NAMES = ("x" * 300, "x" * 5000, "org/" + "x" * 300, "policy:" + "x" * 300, "imported:x", "a\nb", "\udcff", "")
PATHS = ("/" + "x" * 300, "y" * 250, "~nobody-at-all/x", "/dev/stdin", ".", "/", "rows=" + "x" * 300, "m+" + "x" * 300)
LEFT_OUT = ("open", "serve", "view", "doctor", "push", "completion")
REQUIRED = {
    "run": "r",
    "names": "r",
    "benchmark": "cmc-bench",
    "build": "cmc-bench",
    "file": "answers.jsonl",
    "sample": "ID",
    "model": "policy:random",
    "out": "out",
    "adapter": "adapter",
    "target": "target",
    "annotator": "me",
    "person": "me",
    "data": "data",
}
MORE = {
    "batch": ("--benchmark", "cmc-bench", "--model", "policy:random", "--dry-run"),
    "judge": ("--judge", "match"),
    "build": ("--source", f"rows={DEMO / 'held_out' / 'cmc-bench'}", "--out", "built"),
    "get": ("--dry-run",),
    "vary": ("--factor", "blur=0,2", "--dry-run"),
    "passages": ("--dry-run",),
    "parity": ("--probe", "0"),
    "train": ("--model", "m", "--data", "data", "--dry-run"),
    "learning-curve": ("--model", "m", "--dry-run"),
}


def commands(group: click.Group, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        yield (*before, name), command


def line(names: tuple[str, ...], command: click.Command, parameter: click.Parameter, value: str) -> list[str]:
    """A command line that is valid but for the ``value`` of a parameter."""
    arguments, options, more = [], [], MORE.get(names[-1], ())
    for other in command.params:
        text = value if other is parameter else REQUIRED.get(other.name or "", "x")
        if isinstance(other, click.Argument):
            arguments += [text] if other.required or other is parameter else []
        elif other is parameter or (other.required and other.opts[0] not in more):
            options.append(f"{other.opts[0]}={text}")
    pairs = [more[place : place + 2] for place in range(0, len(more), 2)]
    options += [word for pair in pairs if pair[0] not in parameter.opts for word in pair]
    return [*names, *options, "--", *arguments]


CASES = [
    pytest.param(names, command, parameter, id=f"{'-'.join(names)} {parameter.name}")
    for names, command in commands(cli)
    for parameter in command.params
    if names[0] not in LEFT_OUT and isinstance(parameter.type, click.types.StringParamType | click.Path)
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    rashomon = Rashomon(tmp_path_factory.mktemp("home"))
    rashomon.run("build", "cmc-bench", "--source", f"rows={DEMO / 'held_out' / 'cmc-bench'}")
    run = ("--benchmark", "cmc-bench", "--model", "policy:random", "--limit", "1", "--display", "none")
    rashomon.run("--batch", *run, "--name", "r")
    (rashomon.home / "answers.jsonl").write_text('{"id": "x", "answer": "y"}\n')
    return rashomon


def _hangs(*_: Any) -> None:
    raise AssertionError("it hangs")


@pytest.mark.slow
@pytest.mark.parametrize(("names", "command", "parameter"), CASES)
def test_no_text_ends_in_a_traceback(
    names: tuple[str, ...], command: click.Command, parameter: click.Parameter, home: Rashomon
) -> None:
    before = signal.signal(signal.SIGALRM, _hangs)
    reader, writer = os.pipe()  # /dev/stdin has nothing yet
    standard_input = os.dup(0)
    os.dup2(reader, 0)
    try:
        for value in (*NAMES, *PATHS):
            signal.alarm(30)
            environment = {**home.environment, "RASHOMON_WORKSPACE": str(home.workspace)}
            code, _, err = run_inside(line(names, command, parameter, value), environment, home.home)
            assert code in MEANINGS, value
            assert code == 0 or err.startswith(("rashomon: ", "planned", "building", "warning: ")), (value, err[:300])
            assert "Traceback" not in err, (value, err)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        os.dup2(standard_input, 0)
        for descriptor in (reader, writer, standard_input):
            os.close(descriptor)


def test_the_commands_are_all_covered() -> None:
    named = {str(case.id).partition(" ")[0] for case in CASES}
    assert named >= {"batch", "judge", "parity", "import", "vary", "models-fuse", "data-get"}
    assert len(CASES) > 100
