"""Tab in real shells: what is typed is completed as someone would see it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from app.cli import cli, run_cli, shell_completion
from benchmarks.errors import SpecError
from tests.app.cli.test_start_up import HEAVY
from tests.support.command import ROOT, Rashomon

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
SET_UP = {
    "bash": 'eval "$(rashomon completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(rashomon completion zsh)"',
    "fish": "rashomon completion fish | source",
}


SETUPS = ["clash", "cmc-bench", "contra4", "crosscheck-bench", "gqa", "mmkc-bench", "okvqa", "pope"]


class Shell:
    """An interactive shell on a terminal. `rashomon` says with what it was called, unless it is asked what fits."""

    def __init__(self, name: str, rashomon: Rashomon) -> None:
        binaries = rashomon.home / "bin"
        binaries.mkdir()
        program = binaries / "rashomon"
        program.write_text(
            f'#!/bin/sh\n[ -n "$_RASHOMON_COMPLETE" ] || [ "$1" = completion ] && exec {sys.executable} -m app.main "$@"\n'
            'printf "CALLED"; printf "<%s>" "$@"; printf "END\\n"\n'
        )
        program.chmod(0o755)
        environment = {**rashomon.environment, "TERM": "xterm", "PS1": "$ ", "PYTHONPATH": str(ROOT)}
        environment["PATH"] = f"{binaries}{os.pathsep}{environment['PATH']}"
        self._here, there = pty.openpty()
        self._process = subprocess.Popen(
            START[name],
            stdin=there,
            stdout=there,
            stderr=there,
            env=environment,
            cwd=rashomon.home,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # its terminal, for job control
        )
        os.close(there)
        self._said = ""
        self.type(f"{SET_UP[name]}\n")
        self.type("echo REA''DY\n")
        self._until("READY")

    def type(self, text: str) -> None:
        os.write(self._here, text.encode())

    def completed(self, text: str) -> str:
        """Return the arguments of rashomon when ``text`` is typed, then Tab and Return."""
        self._said = ""
        self.type(text)
        self.type("\t")
        # The shell takes what follows for what is typed next, once it has completed.
        self.type("\n")
        self._until("END")
        return self._said.rpartition("CALLED")[2].partition("END")[0]

    def _until(self, word: str) -> None:
        end = time.monotonic() + 60
        while word not in self._said:
            assert time.monotonic() < end, self._said
            if select.select([self._here], [], [], 0.2)[0]:
                self._said += os.read(self._here, 65536).decode(errors="replace")

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._here)


@pytest.fixture
def rashomon(tmp_path: Path) -> Rashomon:
    result = Rashomon(tmp_path)
    for name in ("clash-tiny-12", "cmc-bench-tiny-3", "$(touch gone)", "a b"):
        (result.workspace / "runs" / name).mkdir(parents=True)
    (result.workspace / "sets" / "charts").mkdir(parents=True)
    (tmp_path / "cache/huggingface/hub/models--org--tiny-4bit").mkdir(parents=True)
    for name in ("pilot.toml", "paper.toml", "$(touch gone).toml"):
        (tmp_path / name).touch()
    (tmp_path / "papers").mkdir()
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", list(START))
def test_tab_completes_in_a_real_shell(name: str, rashomon: Rashomon) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name} here")
    shell = Shell(name, rashomon)
    try:
        assert shell.completed("rashomon show cla") == "<show><clash-tiny-12>"
        assert shell.completed("rashomon --batch --model policy:always-im") == "<--batch><--model><policy:always-image>"
        assert shell.completed("rashomon --batch --model org/t") == "<--batch><--model><org/tiny-4bit>"
        assert shell.completed("rashomon --batch paper:cm") == "<--batch><paper:cmc-bench>"
        assert shell.completed("rashomon batch pilot.t") == "<batch><pilot.toml>"
        assert shell.completed("rashomon data get cros") == "<data><get><crosscheck-bench>"
    finally:
        shell.close()
    assert not (rashomon.home / "gone").exists()


@pytest.fixture
def asked(
    rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """Return bash's completions of a line."""
    for name in ("RASHOMON_WORKSPACE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, rashomon.environment[name])
    monkeypatch.chdir(rashomon.home)
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(shell_completion.VARIABLE, "bash_complete")

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("COMP_LINE", line)
        assert shell_completion.respond(cli) == 0
        return capsys.readouterr().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("rashomon show ", ["clash-tiny-12", "cmc-bench-tiny-3"]),
        ("rashomon resume cm", ["cmc-bench-tiny-3"]),
        ("rashomon show @", ["@charts"]),
        ("rashomon compare clash-tiny-12 la", ["latest:"]),
        ("rashomon show latest:policy:always-i", ["always-image"]),
        ("rashomon parity latest:org/t", ["org/tiny-4bit"]),
        ("rashomon audit @ch", ["@charts"]),
        ("rashomon --workspace /nowhere show ", []),
        ("rashomon build ", ["cmc-bench", "clash"]),
        ("rashomon --batch --model policy:", ["always-image"]),
        ("rashomon --batch --model=policy:al", ["always-image"]),
        ("rashomon batch --benchmark cl", ["clash"]),
        ("rashomon batch --benchmark cmc-bench --conditions aligned,both", ["aligned,both-wrong"]),
        ("rashomon --batch paper:", SETUPS),
        ("rashomon batch paper:", SETUPS),
        ("rashomon --batch paper:cl", ["clash"]),
        ("rashomon --batch pa", [*(f"paper:{name}" for name in SETUPS), "paper.toml", "papers/"]),
        ("rashomon --batch pi", []),
        ("rashomon benchmarks po", ["pope"]),
        ("rashomon review cm", ["cmc-bench"]),
        ("rashomon parity cla", ["clash-tiny-12"]),
        ("rashomon parity --benchmark gq", ["gqa"]),
        ("rashomon parity --model policy:al", ["always-image"]),
        ("rashomon judge x --judge any", []),
        ("rashomon judge x --judge openai", ["openai:"]),
        ("rashomon judge x --judge mat", ["match"]),
        ("rashomon models get mlx-community/Qwen3-VL-4B", ["mlx-community/Qwen3-VL-4B-Instruct-4bit"]),
        ("rashomon data get --t", ["--to"]),
        ("rashomon completion z", ["zsh"]),
        ("rashomon show 'half a quo", []),
    ],
)
def test_what_is_offered(line: str, first: list[str], asked: Callable[[str], list[str]]) -> None:
    result = asked(line)
    assert result[: len(first)] == first
    assert first or not result


def test_completing_imports_nothing_heavy(rashomon: Rashomon) -> None:
    code = (
        "import sys, json\nfrom app.main import main\n"
        "try: main([])\nexcept SystemExit: pass\n"
        "print('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    asked = {**rashomon.environment, "PYTHONPATH": str(ROOT), "_RASHOMON_COMPLETE": "bash_complete"}
    for line in (
        "rashomon --batch --model ",
        "rashomon --batch paper:",
        "rashomon benchmarks ",
        "rashomon judge x --judge ",
        "rashomon show ",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**asked, "COMP_LINE": line}, capture_output=True, text=True, check=True
        )
        loaded = set(json.loads(done.stdout.splitlines()[-1]))
        assert not loaded & {*HEAVY, "huggingface_hub", "httpx2", "sqlite3"}


def test_a_shell_that_is_not_known_is_told(rashomon: Rashomon) -> None:
    assert "'bash', 'zsh', 'fish'" in rashomon.run("completion", "tcsh", code=2).stderr


def test_a_shell_that_is_not_named_is_told_in_one_line() -> None:
    with pytest.raises(SpecError) as raised:
        run_cli(["completion"])
    assert str(raised.value) == (
        "missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish; see `rashomon completion --help`."
    )
