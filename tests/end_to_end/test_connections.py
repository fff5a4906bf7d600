"""Connections of every command: none that the user has not agreed to, and none at all where models and data are local."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click
import pytest

import rashomon
from app.cli import cli
from benchmarks.fetch.unasked_requests import SETTINGS
from tests.support.command import ROOT, Rashomon, children_of
from tests.support.connections import can_record, connections, record, traced
from tests.support.fake_hub import FakeHub, Repo
from tests.support.terminal import Terminal
from tests.support.viewed import ADDRESSES, Viewer

DEMO = str(ROOT / "assets" / "demo" / "model-4bit")
ROWS, CLASH = ("{}={}".format(*next(iter(rashomon.demo_source(name).items()))) for name in ("cmc-bench", "clash"))
A, B = "always-text", "seeing"
SMALL = ("--limit", "2", "--conditions", "aligned,text-correct", "--display", "none")
EXAMPLES: Mapping[str, tuple[Sequence[str], ...]] = {
    "build": (
        ("build", "cmc-bench", "--source", ROWS, "--per-stratum", "6"),
        ("build", "clash", "--source", CLASH),
        ("build", "cmc-bench", "--from", str(ROOT / "assets" / "demo" / "rows.csv"), "--name", "mine"),
    ),
    "batch": (
        ("batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--name", A, *SMALL),
        ("batch", "--benchmark", "cmc-bench", "--model", DEMO, "--name", B, *SMALL),
    ),
    "resume": (("resume", B, "--repeat", "--display", "none"),),
    "judge": (("judge", A, "--judge", "match", "--retry-failed", "--display", "none"),),
    "demo": (("demo", "--display", "none"),),
    "runs": (("runs",),),
    "show": (("show", A), ("show", B, "--sample", "ID")),
    "view": (("view", A, "--save", "page.html"),),
    "compare": (("compare", A, B),),
    "check": (("check", B, "--baseline", A),),
    "recommend": (("recommend", A, B),),
    "parity": (("parity", B, A, "--probe", "1", "--display", "none"),),
    "report": (("report", A, "--out", "report"),),
    "published": (("published", "cmc-bench"),),
    "audit": (("audit", "cmc-bench"),),
    "label": (("label", A, "--as", "me", "--n", "1", "--export", "sheet.csv"),),
    "override": (("override", A, "ID", "IMAGE", "--as", "me", "--reason", "so"),),
    "review": (("review", "cmc-bench", "--reviewer", "1", "--name", "me", "--export", "review.csv"),),
    "answer": (("answer", "cmc-bench", "--as", "me", "--limit", "1"),),
    "sets": (("sets",),),
    "try": (("try", "policy:always-text", "--set", "mine", "--display", "none"),),
    "history": (("history", "mine"),),
    "sets remove": (("sets", "remove", "mine", "--yes"),),
    "sets restore": (("sets", "restore", "mine"),),
    "baselines": (("baselines", A, "--display", "none"),),
    "import": (("import", "answers.jsonl", "--benchmark", "cmc-bench", "--model", "theirs", "--display", "none"),),
    "data": (("data",),),
    "data get": (("data", "get", "cmc-bench", "--dry-run"),),
    "models": (("models",),),
    "models get": (("models", "get", "org/model", "--yes"),),
    "models adapter": (("models", "adapter", "nowhere", "--model", DEMO, "--to-peft", "peft"),),
    "models fuse": (("models", "fuse", DEMO, "--adapter", "nowhere", "--to", "fused", "--no-check"),),
    "benchmarks": (("benchmarks",), ("benchmarks", "clash")),
    "judges": (("judges",),),
    "judges check": (("judges", "check", "match", "--limit", "2"),),
    "prompts": (("prompts", "--benchmark", "cmc-bench"),),
    "vary": (("vary", "cmc-bench", "--factor", "blur=0,2", "--limit", "1", "--out", "varied"),),
    "passages": (("passages", "cmc-bench", "--passages", "3", "--wrong", "1", "--limit", "1", "--out", "passages"),),
    "figures": (("figures", "clash", "--format", "svg", "--out", "figures"),),
    "training": (("training", "clash", "--out", "set", "--limit", "4", "--drop-leaks"),),
    "train": (
        ("train", "--model", DEMO.replace("4bit", "bf16"), "--data", "set", "--steps", "1", "--display", "none"),
    ),
    "trainings": (("trainings",),),
    "learning-curve": (("learning-curve", "--data", "nowhere", "--model", DEMO),),
    "export": (("export", A, "--format", "csv,json,html", "--out", "export"),),
    "bundle": (("bundle", A, "--out", "a.bundle"),),
    "open": (("open", "a.bundle"),),
    "adopt": (("adopt", A, "--yes"),),
    "cite": (("cite", A),),
    "push": (("push", A, "hub:me/set", "--dry-run"),),
    "doctor": (("doctor",), ("doctor", A)),
    "serve": (("serve", "--help"),),
    "completion": (("completion", "bash"),),
    "schema": (("schema", "show"),),
    "": (("--help",),),
}
"""Every command as the documentation has it, with local models; in an order in which later ones find what they need."""

USER_NAMES = "/var/run/nscd/socket"
"""Where the C library looks a user's name up, on this machine. A host's name that it cannot look up there goes to port 53."""

ONLINE = {"data get", "models get", "push"}
"""Commands that ask the Hub, which the user has agreed to by running them."""


def commands(group: click.Command, context: click.Context, name: str = "") -> Iterator[str]:
    """Yield the names of all commands below a group that do something."""
    if isinstance(group, click.Group):
        for part in group.list_commands(context):
            command = group.get_command(context, part)
            assert command is not None
            yield from commands(command, click.Context(command, parent=context), f"{name} {part}".strip())
    if not isinstance(group, click.Group) or group.invoke_without_command:
        yield name


def test_every_command_has_an_example() -> None:
    assert set(EXAMPLES) - {""} == set(commands(cli, click.Context(cli))) - {""}


def unset(variables: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing but Rashomon itself switches requests off."""
    return {name: value for name, value in variables.items() if name not in (*SETTINGS, "HF_HUB_OFFLINE")}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace in which the examples follow each other, with a questions' set and answers to import."""
    return Rashomon(tmp_path_factory.mktemp("home"))


def identifier(home: Rashomon) -> str:
    """Return the id of an instance of the first run; "" before there is one."""
    file = home.workspace / "runs" / A / "run.sqlite"
    if not file.exists():
        return ""
    with closing(sqlite3.connect(file)) as database:
        return str(database.execute("SELECT id FROM instance").fetchone()[0])


@pytest.mark.slow
@pytest.mark.skipif(not can_record(), reason="needs strace and network namespaces")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ONLINE])
def test_a_command_makes_no_connection(home: Rashomon, name: str, tmp_path: Path) -> None:
    first = identifier(home)
    (home.home / "answers.jsonl").write_text(json.dumps({"id": first, "answer": "42"}))
    for example in EXAMPLES[name]:
        arguments = [first if word == "ID" else word for word in example]
        recording = record(home.command(*arguments), unset(home.environment), home.home, tmp_path / "trace")
        note(name, arguments, recording.code, recording.connections)
        assert "Traceback" not in recording.output, recording.output
        assert recording.code in (0, 1, 2, 6), recording.output
        assert recording.connections <= {USER_NAMES}, recording.output


def begin(home: Rashomon, name: str) -> None:
    """Begin a run of this name, on the build that is made if there is none yet."""
    if not (home.workspace / "benchmarks" / "cmc-bench").exists():
        home.run(*EXAMPLES["build"][0])
    home.run(*EXAMPLES["batch"][0], "--name", name)


SCREENS = ("3", "4", "2", "9", "7", "\x1b[17~", "\x1b[19~", "\x1b[21~", "\x0e", "\x0e")
"""The keys of Samples, Tables, Live run, Doctor, Settings, Fetch, Trainings, Sets, and of New run with its models."""


@pytest.mark.slow
@pytest.mark.skipif(not can_record(), reason="needs strace and network namespaces")
def test_the_interface_makes_no_connection(home: Rashomon, tmp_path: Path) -> None:
    begin(home, "displayed")
    trace = tmp_path / "trace"
    terminal = Terminal(traced(home.command(), trace), unset(home.environment), home.home)
    try:
        terminal.until("displayed")
        for key in SCREENS:
            terminal.send(key)
            terminal.read(0.5)
        while terminal.process.poll() is None:
            terminal.send("\x1b")
            terminal.read(0.3)
            terminal.send("\x11")
            terminal.read(0.3)
    finally:
        terminal.close()
    note("(interface)", SCREENS, terminal.process.returncode, connections(trace))
    assert terminal.process.returncode == 0, terminal.screen[-2000:]
    assert connections(trace) <= {USER_NAMES}


@pytest.mark.slow
@pytest.mark.skipif(not can_record(network=True), reason="needs strace")
def test_the_served_page_makes_no_connection(home: Rashomon, tmp_path: Path) -> None:
    begin(home, "served")
    trace = tmp_path / "trace"
    command = traced(home.command("view", "served", "--no-browser"), trace, network=True)
    with subprocess.Popen(
        command, env=unset(home.environment), cwd=home.home, stdout=subprocess.PIPE, text=True
    ) as view:
        assert view.stdout is not None
        viewer = Viewer(view.stdout.readline().strip())
        assert viewer.open().status == 303
        for path in ADDRESSES:
            assert viewer.get(path).status == 200, path
        for pid in children_of(view.pid):
            os.kill(pid, signal.SIGINT)
        assert view.wait(60) == 0
    note("view", ("served",), 0, connections(trace))
    assert connections(trace) <= {USER_NAMES}


@pytest.mark.slow
@pytest.mark.skipif(not can_record(network=True), reason="needs strace")
@pytest.mark.parametrize("name", sorted(ONLINE))
def test_a_command_that_fetches_asks_its_own_host_alone(name: str, home: Rashomon, tmp_path: Path) -> None:
    hub = FakeHub()
    with hub.running():
        hub.repos["org/model"] = Repo("model", {"config.json": b"{}"})
        environment = unset({**home.environment, **hub.variables})
        for arguments in EXAMPLES[name]:
            recording = record(home.command(*arguments), environment, home.home, tmp_path / "trace", network=True)
            note(name, arguments, recording.code, recording.connections)
            assert "Traceback" not in recording.output, recording.output
            assert {place for place in recording.connections if not place.startswith("/")} <= {
                hub.url.removeprefix("http://")
            }
        assert hub.asked or name == "push"  # of which the dry run sends nothing
        assert not [request.path for request in hub.asked if "agent" in request.path or "telemetry" in request.path]


@pytest.mark.skipif(not can_record(), reason="needs strace and network namespaces")
def test_a_recording_sees_connections_of_children_in_any_language(tmp_path: Path) -> None:
    code = "import socket, subprocess, sys\nsocket.socket().connect_ex(('192.0.2.1', 80))\n" + (
        "subprocess.run([sys.executable, '-c', 'import socket; "
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect_ex((chr(58)*2+chr(49), 53))'])"
    )
    recording = record([sys.executable, "-c", code], dict(os.environ), tmp_path, tmp_path / "trace")
    assert recording.connections == {"192.0.2.1:80", "[::1]:53"}


PROCESSES = (
    "app.main",
    "rashomon",
    "app.engine.workers.run_worker",
    "mlx_backends.core.prompts.template_process",
    "judges.base",
)


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_switches_requests_off(module: str) -> None:
    script = (
        f"import importlib, os, sys\nimportlib.import_module({module!r})\nimport benchmarks\n"
        "from huggingface_hub import constants, utils\nfrom huggingface_hub.utils import _detect_agent as agents\n"
        "from datasets import config\n"
        "agents._fetch_registry = lambda: sys.exit('a request')\n"
        "utils.build_hf_headers()\n"
        "print(constants.HF_HUB_DISABLE_TELEMETRY, constants.HF_HUB_DISABLE_UPDATE_CHECK, config.HF_UPDATE_DOWNLOAD_COUNTS)"
    )
    environment = {**unset(os.environ), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True True False\n", done.stderr


def test_libraries_imported_before_are_switched_off_too() -> None:
    script = (
        "import sys\nfrom huggingface_hub import constants, utils\nfrom huggingface_hub.utils import _detect_agent as agents\n"
        "import rashomon\nimport benchmarks\nagents._fetch_registry = lambda: sys.exit('a request')\n"
        "utils.build_hf_headers()\nprint(constants.HF_HUB_DISABLE_TELEMETRY)"
    )
    environment = {**unset(os.environ), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def note(name: str, arguments: Sequence[str], code: int, places: frozenset[str]) -> None:
    """Add a command's connections to the file that the variable CONNECTIONS names, if it is set."""
    if file := os.environ.get("CONNECTIONS"):
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(f"{name or '(none)'}\t{code}\t{', '.join(sorted(places)) or 'none'}\t{' '.join(arguments)}\n")
