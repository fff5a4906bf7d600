"""Model folders that demand endless work, memory or code execution: refused quickly; loads can be interrupted."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support.charts import draw_sources
from tests.support.command import Rashomon
from tests.support.data.small import picture
from tests.support.hostile_models import hostile, make
from tests.support.tiny_qwen3 import build_tiny_lm, build_tiny_vlm

TEXTS = ["How many apples were sold?", "According to the source, the value is 12."]
OPTIONS = ("--benchmark", "cmc-bench", "--max-tokens", "4", "--display", "none", "--limit", "1")
FEW = (
    "text num_hidden_layers of 10000000",
    "-1000000000 layers, text alone",
    "template 0 of a model that reads",
    "template 3 of a model that sees",
    "tokenizer.json that is a device",
    "config.json that is a pipe",
    "processor patch_size of 1000000000",
    "weights that name a shape of 10**12",
    "a tokenizer that writes letters twice, 40 times",
)
SECONDS = 10
MEMORY = 500 * 10**6


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hostile-models")
    build_tiny_vlm(home / "vlm", TEXTS, quantise=False)
    build_tiny_lm(home / "lm", TEXTS, quantise=False)
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    return home


def loaded_apart(home: Path, folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return what became of loading each hostile folder."""
    data = picture(3)
    image = folder / f"{hashlib.sha256(data).hexdigest()}.png"
    image.write_bytes(data)
    cases = hostile()
    folders = {}
    for number, name in enumerate(names):
        source, change = cases[name]
        folders[str(make(home / source, folder / str(number), change))] = name
    lines = "".join(json.dumps([place, str(image)]) + "\n" for place in folders)
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.load_apart"], input=lines, capture_output=True, text=True, check=True
    )
    return {folders[result["folder"]]: result for result in map(json.loads, done.stdout.splitlines())}


def check(results: dict[str, dict[str, Any]]) -> None:
    for name, result in results.items():
        assert result["said"].startswith(("ModelError: ", "answered: ")), (name, result)
        assert result["seconds"] < SECONDS, (name, result)
        assert result["grown"] < MEMORY, (name, result)


@pytest.mark.slow
def test_endless_work_is_refused_quickly(home: Path, tmp_path: Path) -> None:
    results = loaded_apart(home, tmp_path, FEW)
    check(results)
    assert all(result["said"].startswith("ModelError: ") for result in results.values()), results


@pytest.mark.slow
def test_a_hundred_hostile_folders(home: Path, tmp_path: Path) -> None:
    results = loaded_apart(home, tmp_path, hostile())
    print(json.dumps(results, indent=1))
    check(results)
    refused = [name for name, result in results.items() if result["said"].startswith("ModelError: ")]
    assert len(results) >= 100
    assert len(refused) >= 90


_MEASURED = """
import json, resource, subprocess, sys, time
began = time.monotonic()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"code": done.returncode, "said": done.stdout + done.stderr, "wall": time.monotonic() - began,
                  "seconds": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss}))
"""


def measured(home: Path, folder: Path, name: str) -> dict[str, Any]:
    """Return what became of a run of the model in ``folder``, and what the largest of its processes took."""
    rashomon = Rashomon(home)
    command = rashomon.command("--batch", *OPTIONS, "--model", str(folder), "--name", name)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command],
        env=rashomon.environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    result["memory"] *= 1 if sys.platform == "darwin" else 1024
    return result


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
def test_runs_of_a_hundred_hostile_folders(home: Path, tmp_path: Path, part: int) -> None:
    ordinary = max(measured(home, home / name, f"ordinary-{name}-{part}")["memory"] for name in ("vlm", "lm"))
    for number, (name, (source, change)) in enumerate(hostile().items()):
        if number % 6 != part:
            continue
        result = measured(home, make(home / source, tmp_path / str(number), change), f"hostile-{number}")
        lines = result["said"].strip().splitlines()
        print(
            f"{name:45} {result['code']}, {result['seconds']:4.1f} s, wall {result['wall']:4.1f} s, "
            f"{(result['memory'] - ordinary) / 1e6:+5.0f} MB; {lines[0] if lines else ''}"
        )
        assert result["code"] in (0, 1, 2, 3), (name, result)
        assert "Traceback" not in result["said"], (name, result)
        assert result["seconds"] < SECONDS, (name, result)
        assert result["memory"] - ordinary < MEMORY, (name, result)


@pytest.mark.slow
def test_run_of_a_hostile_model_fails_with_one_sentence(home: Path, tmp_path: Path) -> None:
    source, change = hostile()["10000000 layers, text alone"]
    folder = make(home / source, tmp_path / "layers", change)
    message = Rashomon(home).process("--batch", *OPTIONS, "--model", folder, "--name", "layers", code=2).stderr
    assert "num_hidden_layers" in message
    assert "Traceback" not in message


_UNSANDBOXED = """
import sys, threading, types
source = '''
def late(text, **context):
    from jinja2 import Environment, Template
    environment = Environment(extensions=["jinja2.ext.loopcontrols"])
    return [Template(text).render(**context), environment.from_string(text).render(**context)]

from jinja2 import Environment, Template
def early(text, **context):
    return [Template(text).render(**context), Environment().from_string(text).render(**context)]
'''
def module(name):
    made = types.ModuleType(name)
    exec(source, made.__dict__)
    return made

before = module("mlx_vlm.models.before")
from mlx_backends.core.library_isolation import contained
for _ in range(2):
    with contained(): pass
after = module("mlx_vlm.models.after")
evil = "{{ cycler.__init__.__globals__.os.mkdir(x) }}"
def attempt():
    for render in (before.late, before.early, after.late, after.early):
        assert render("{{ x[0] }} {{ 1 + 1 }}", x=[5]) == ["5 2", "5 2"]
        try: render(evil, x=sys.argv[1])
        except ValueError as error: sys.stdout.write("refused\\n")  # whole, also from two threads
thread = threading.Thread(target=attempt)
thread.start()
attempt()
thread.join()

import jinja2
from jinja2.sandbox import SandboxedEnvironment
other = module("some.other.library")
assert other.late("{{ (1).__class__ }}") == ["<class 'int'>"] * 2
assert type(jinja2.Template("x")) is jinja2.Template
assert isinstance(SandboxedEnvironment(), jinja2.Environment)
assert jinja2.Environment(loader=jinja2.DictLoader({"a": "{{ x }}"})).get_template("a").render(x=3) == "3"
"""


def test_a_template_runs_no_code_in_a_processor_without_a_sandbox(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _UNSANDBOXED, str(tmp_path / "made")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * 8
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_folder_with_a_pattern_in_its_name_loads(home: Path, tmp_path: Path) -> None:
    for source in ("vlm", "lm"):
        folder = make(home / source, tmp_path / f"{source} [4-bit] *", lambda folder: None)
        data = picture(3)
        image = tmp_path / f"{hashlib.sha256(data).hexdigest()}.png"
        image.write_bytes(data)
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.load_apart"],
            input=json.dumps([str(folder), str(image)]),
            capture_output=True,
            text=True,
            check=True,
        )
        outcome = json.loads(done.stdout)["said"]
        assert outcome.startswith("answered: "), outcome
        assert "error" not in outcome


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_first_signal_ends_any_load(home: Path, tmp_path: Path, number: signal.Signals) -> None:
    loading = tmp_path / "loading"
    rashomon = Rashomon(home).ordered(load_holds=str(loading))
    name = f"held-{number}"
    process = rashomon.start("--batch", *OPTIONS, "--model", str(home / "lm"), "--name", name)
    wait_until(loading.exists)
    began = time.monotonic()
    process.send_signal(number)
    assert process.wait(20) == 130
    assert time.monotonic() - began < 5
    assert states(Rashomon(home))[name][0] == "interrupted"


def test_code_in_the_current_folder_is_never_executed(home: Path, tmp_path: Path) -> None:
    for name in ("json", "signal", "numpy", "app", "mlx_backends"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\nraise SystemExit(9)\n")
    rashomon = Rashomon(home)
    arguments = (
        "--batch",
        "--benchmark",
        "cmc-bench",
        "--model",
        "policy:uniform",
        "--name",
        "elsewhere",
        "--limit",
        "1",
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "app.main", "--workspace", str(rashomon.workspace), *arguments],
        cwd=tmp_path,
        env=rashomon.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "executed").exists()
