"""Plugins in quarantine: installed packages that are broken in every way, beside one that works."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import ROOT, Rashomon

GOOD = """
from judges.base import FunctionJudge
from benchmarks.vocabulary import Verdict

class Good(FunctionJudge):
    name, version, description, benchmarks = "{name}", "1", "labels nothing", ("pope",)

    def judge(self, record):
        return Verdict(self.id, "undecided")
"""

BAD = {
    "missing-library": ("import a_library_that_is_not_here", "a_library_that_is_not_here"),
    "syntax": ("def broken(:", "SyntaxError"),
    "exits": ("import sys; sys.exit(0)", "it raised SystemExit"),
    "exits-with-text": ("raise SystemExit('bye')", "it raised SystemExit"),
    "interrupts": ("raise KeyboardInterrupt", "it raised KeyboardInterrupt"),
    "ends-the-process": ("import os; os._exit(0)", "its import ends the process with 0"),
    "crashes": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "its import ends the process by SIGSEGV"),
    "thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(10**6,)).start()",
        "its import starts a thread",
    ),
    "no-such-class": ("", "has no attribute 'Good'"),
    "wrong-type": ("class Good: pass", "lacks name, version, benchmarks, label"),
    "no-class": ("Good = 3", "not callable"),
    "another-name": (GOOD.format(name="other"), "Good.name is 'other', not the name of its entry point"),
    "lacking": ("from judges.base import FunctionJudge\nclass Good(FunctionJudge): pass", "abstract"),
    "base-exception": ("class Odd(BaseException): pass\nraise Odd", "it raised Odd"),
    "hostile": (r"raise ValueError('\x1b[2J' + 'x' * 5000 + '\nrashomon: all is well')", "ValueError: ?[2Jxxx"),
    "hostile-text": ("class Odd(Exception):\n    def __str__(self): raise SystemExit\nraise Odd", "Odd"),
}


def install(place: Path, package: str, code: str, group: str = "rashomon.judges", name: str = "") -> None:
    """Install a distribution of one module with one entry point, named like its package unless ``name`` is given."""
    module = package.replace("-", "_")
    (place / f"{module}.py").write_text(code)
    metadata(place, package, f"[{group}]\n{name or package} = {module}:Good\n")


def metadata(place: Path, package: str, entry_points: str | bytes) -> None:
    info = place / f"{package.replace('-', '_')}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    content = entry_points.encode() if isinstance(entry_points, str) else entry_points
    (info / "entry_points.txt").write_bytes(content)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, "good", GOOD.format(name="good"))
    return folder


def rashomon(site: Path) -> Rashomon:
    return Rashomon(site.parent, variables={"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"})


def listed(site: Path) -> tuple[list[str], str]:
    """Return the judges that ``rashomon judges`` lists, and what it prints on standard error."""
    done = rashomon(site).process("judges", "--json")
    return [rule["name"] for rule in json.loads(done.stdout)["result"]["rules"]], done.stderr


@pytest.mark.parametrize(
    "kinds", [("syntax", "exits", "ends-the-process", "hostile"), pytest.param(tuple(BAD), marks=pytest.mark.slow)]
)
def test_every_broken_plugin_gets_a_line_and_hides_no_other(site: Path, kinds: tuple[str, ...]) -> None:
    bad = {name: BAD[name] for name in kinds}
    for name, (code, _) in bad.items():
        install(site, name, code)
    names, errors = listed(site)
    assert {"match", "good"} < set(names)
    assert not set(names) & bad.keys()
    lines = errors.splitlines()
    assert len(lines) == len(bad)
    for name, (_, reason) in bad.items():
        (line,) = [line for line in lines if line.startswith(f"warning: judges: '{name}' of the package {name}: ")]
        assert reason in line
        assert len(line) < 350
        assert line.isprintable()


@pytest.mark.slow
def test_a_broken_plugin_named_by_a_command_gets_its_own_sentence(site: Path) -> None:
    group = "rashomon.benchmarks"
    install(site, "broken", "import nothing_like_this", group)
    install(site, "quits", "import os; os._exit(0)", group)
    install(site, "mumbles", "import nothing_like_this", "rashomon.engines")
    (site.parent / "spec.toml").write_text('benchmark = "broken"\nmodel = "policy:always-text"\n')
    for arguments, name in (
        (("build", "broken", "--source", "x=y"), "broken"),
        (("batch", "spec.toml"), "broken"),
        (("benchmarks", "quits"), "quits"),
        (("batch", "--benchmark", "pope", "--model", "mumbles:x"), "mumbles"),
    ):
        error = rashomon(site).process(*arguments, code=2).stderr
        assert f"'{name}' of the package {name} cannot be used: " in error
    assert "cmc-bench" in rashomon(site).process("benchmarks").stdout


@pytest.mark.slow
def test_doctor_names_broken_plugins_and_tries_them_again(site: Path) -> None:
    install(site, "quits", "import os; os._exit(7)")
    install(site, "second", "import nothing_like_this")
    result = json.loads(rashomon(site).process("doctor", "--json", code=1).stdout)["result"]
    working, *broken = [check for check in result if check["check"] == "plugins"]
    assert (working["ok"], working["message"]) == (True, "registered by other packages: good")
    assert [check["ok"] for check in broken] == [False, False]
    assert "'quits' of the package quits: its import ends the process with 7" in broken[1]["message"]
    assert "'second' of the package second: ModuleNotFoundError" in broken[0]["message"]
    (site / "quits.py").write_text(GOOD.format(name="quits"))
    assert "quits" in listed(site)[0]


def test_a_name_counts_for_the_first_package_and_never_for_one_of_our_own(site: Path) -> None:
    install(site, "shadow", GOOD.format(name="match"), name="match")
    install(site, "second", GOOD.format(name="good"), name="good")
    names, errors = listed(site)
    assert names.count("match") == names.count("good") == 1
    lines = sorted(errors.splitlines())
    assert len(lines) == 2
    assert "'good' of the package" in lines[0]
    assert "has that name too" in lines[0]
    assert lines[1].endswith("'match' of the package shadow: Rashomon's own has that name")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[rashomon.judges\nx", b"[rashomon.judges]\nx = !!\n"])
def test_unreadable_metadata_of_one_package_hides_no_other(site: Path, content: bytes) -> None:
    metadata(site, "unreadable", content)
    names, errors = listed(site)
    assert "good" in names
    assert all(line.startswith("warning: judges: ") for line in errors.splitlines())
    assert "unreadable" in errors or b"!!" not in content
    stderr = rashomon(site).process("batch", "--benchmark", "pope", "--model", "policy:random", code=2).stderr
    assert "pope is not built" in stderr
    assert "Traceback" not in stderr


def test_a_plugin_that_prints_and_changes_the_process_changes_nothing_else(site: Path) -> None:
    code = "import os, signal\nprint('{}')\nos.chdir('/')\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    install(site, "meddler", code + GOOD.format(name="meddler"))
    script = (
        "import os, signal, sys\nfrom judges.judge_registry import get_judge\n"
        "before = os.getcwd(), signal.getsignal(signal.SIGINT)\nget_judge('meddler')\n"
        "assert before == (os.getcwd(), signal.getsignal(signal.SIGINT)), 'changed'"
    )
    done = run_python(site, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "{}\n")


@pytest.mark.slow
def test_a_crashing_plugin_is_tried_once_and_again_when_its_files_change(site: Path) -> None:
    mark = site.parent / "tries"
    note = f"open({str(mark)!r}, 'a').write('x')\n"
    install(site, "quits", note + "import os; os._exit(0)")
    for _ in range(2):
        assert "quits" not in listed(site)[0]
    assert mark.read_text() == "x"
    (site / "quits.py").write_text(note + GOOD.format(name="quits"))
    assert "quits" in listed(site)[0]


def test_an_endless_import_ends(site: Path) -> None:
    install(site, "endless", "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)")
    script = (
        "from benchmarks.plugins import plugin_trial\nplugin_trial.SECONDS = 1.0\n"
        "from judges.judge_registry import REGISTRY\nprint(*REGISTRY.broken())"
    )
    start = time.monotonic()
    done = run_python(site, script)
    assert "its import takes more than 1 seconds" in done.stdout
    assert time.monotonic() - start < 30


def test_an_interruption_by_the_user_is_no_fault_of_the_plugin(site: Path) -> None:
    install(site, "slow", f"import pathlib, time\npathlib.Path({str(site / 'begun')!r}).touch()\ntime.sleep(60)")
    script = (
        "from benchmarks.plugins import plugin_trial\nplugin_trial._try = lambda module: ''\n"
        "from judges.judge_registry import get_judge\nget_judge('slow')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env=rashomon(site).environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not (site / "begun").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


FAULTY = """
import os, sys
from benchmarks.pope import Pope

class Good(Pope):
    name = "faulty"

    def build(self, sources, out, options):
        print("printed")
        os.write(1, b"written\\n")
        os.system("echo by a child")
        {build}

    def instances(self, build, prompt_set):
        {instances}
"""
"""A benchmark that loads, and whose own methods fail."""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("return len(None)", "failed in build (faulty.py, line 12): TypeError: object of type 'NoneType' has no len()"),
        ("sys.exit(0)", "failed in build (faulty.py, line 12): SystemExit: 0"),
        ("raise ValueError('\\x1b[2J')", "failed in build (faulty.py, line 12): ValueError: ?[2J"),
    ],
)
def test_a_failure_of_a_plugins_method_is_its_packages(site: Path, code: str, reason: str) -> None:
    install(site, "faulty", FAULTY.format(build=code, instances="pass"), "rashomon.benchmarks")
    done = rashomon(site).process("build", "faulty", "--source", "pope=.", "--json", code=3)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        *("printed", "written", "by a child"),
        f"rashomon: the package faulty {reason}; repair, update or uninstall it.",
    ]


def test_a_wrong_value_of_a_plugins_method_names_its_package_too(site: Path) -> None:
    install(site, "faulty", FAULTY.format(build="return 3", instances="pass"), "rashomon.benchmarks")
    installed = rashomon(site)
    command = installed.command("build", "faulty", "--source", "pope=.")
    done = subprocess.run(command, env=installed.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    *_, line = done.stderr.splitlines()
    assert line.startswith(
        "rashomon: a bug in Rashomon, or in a package that adds to it (faulty), ended this command ("
    )


ENGINE = """
import os, sys
from mlx_backends.base import Engine, EngineInfo

class Good(Engine):
    def describe(self, model):
        return EngineInfo("faulty", model, needs_device=False)

    def load(self, model, media, options):
        print("printed")
        os.write(1, b"written\\n")
        sys.exit(0)
"""
EXITING = GOOD.format(name="exiting").replace('("pope",)', '("cmc-bench",)').replace("return", "raise SystemExit #")


@pytest.mark.slow
def test_a_failure_in_a_worker_is_its_packages(site: Path, built: Path) -> None:
    shutil.copytree(built, site.parent / "workspace" / "benchmarks")
    install(site, "faulty", ENGINE, "rashomon.engines")
    install(site, "exiting", EXITING)
    installed = rashomon(site)
    small = ("batch", "--benchmark", "cmc-bench", "--limit", "4")
    done = installed.process(*small, "--model", "faulty:x", "--display", "json", code=3)
    *_, line = done.stderr.splitlines()
    assert line.startswith("rashomon: the package faulty failed in load (faulty.py, line 12): SystemExit: 0; repair, ")
    assert all(json.loads(line) for line in done.stdout.splitlines())
    done = installed.process(*small, "--model", "policy:uniform", "--name", "x", "--judge", "exiting", code=1)
    assert "32 judgements failed in x" in done.stderr


def test_what_a_plugin_prints_is_not_in_the_json(site: Path) -> None:
    noise = (
        "import os\nprint('printed')\nos.write(1, b'written')\n"
        + GOOD.format(name="noisy")
        + "    @property\n    def caveat(self):\n        os.write(1, b'late')\n        print('late')\n        return ''\n"
        + "    def __getattribute__(self, name):\n        os.write(1, b'read')\n        print('read')\n"
        + "        return super().__getattribute__(name)\n"
    )
    install(site, "noisy", noise)
    names, errors = listed(site)
    assert "noisy" in names
    assert errors.count("read") > 4


def run_python(site: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], env=rashomon(site).environment, capture_output=True, text=True, check=False
    )
