"""Every branch of the product on macOS, with recorded outputs of the system's tools, and with tools that fail."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT
from tests.support.simulated_mac import SimulatedMac
from tests.support.simulated_mac.recorded import GARBLED, MACHINES, SILENT

STATE = """
from pathlib import Path
from app.doctor import workspace_and_network_checks as access, machine_checks as machine, machine_report as report
from app.new_run.mac_warnings import mac_warnings
from app.system import mac_state as mac
from app.system.requirements import machine_problem
from benchmarks.untrusted import bounded_process, system_tools
from mlx_backends.models import free_memory, host_machine as host, memory_and_cache_sizes as memory_estimate
from mlx_backends.models import metal_working_set as metal
from mlx_backends.remote import api_keys

system_tools.SECONDS = 0.2
metal._ask = lambda: None
fit = memory_estimate.memory_fit(0)
answer = {
    "warnings": mac.load_warnings(),
    "load": [machine.load(None).message, *report._state()],
    "before a run": mac_warnings([("none.gguf", None)]),
    "free": free_memory.free_memory(),
    "chip": host.host_info().chip,
    "system": host.host_info().system,
    "memory": host.host_info().memory,
    "source": fit.source,
    "problem": machine_problem(),
    "disk": access.network_filesystem(Path("/Volumes/my share/runs")),
    "keys": api_keys.keychain_entries(),
    "resident": bounded_process._resident(1),
}
"""
STATE_BRANCHES = {
    "app/doctor/workspace_and_network_checks.py:_mounts",
    "app/new_run/mac_warnings.py:mac_warnings",
    "app/system/mac_state.py:load_state",
    "app/system/requirements.py:machine_problem",
    "mlx_backends/models/free_memory.py:free_memory",
    "mlx_backends/models/host_machine.py:_chip",
    "mlx_backends/models/host_machine.py:_system",
    "mlx_backends/models/memory_and_cache_sizes.py:_available",
    "mlx_backends/models/memory_and_cache_sizes.py:_total",
    "mlx_backends/models/metal_working_set.py:metal_working_set",
    "mlx_backends/remote/api_keys.py:keychain_entries",
}
PRESSED = [
    "8.3 GB of memory is swapped to disk; close other programs, or a run is slow.",
    "memory pressure is high (macOS warns); close other programs, or macOS may kill a run's worker.",
    "Ollama and LM Studio may hold a model in memory; quit them, or unload their models "
    "(`ollama stop MODEL`, `lms unload --all`).",
    "low power mode is on, which slows a run; `sudo pmset -a lowpowermode 0` ends it.",
]
CRITICAL = [
    "memory pressure is critical; close other programs, or macOS may kill a run's worker.",
    "low power mode is on, which slows a run; `sudo pmset -a powermode 0` ends it.",
]
NO_PANICS = "kernel panics in 30 days: none"
GERMAN = ["1.6 GB of memory is swapped to disk; close other programs, or a run is slow."]


@pytest.mark.parametrize(
    ("name", "warnings", "free", "system", "source", "problem"),
    [
        ("M1, macOS 14", [], 16384 * (5474 + 222514 + 4712), "macOS 14.6.1", "with 16 GB", ""),
        ("M3 Pro under pressure, macOS 15", PRESSED, 16384 * (3021 + 41022 + 118), "macOS 15.5", "with 36 GB", ""),
        ("M4 Max, macOS 26", CRITICAL, 16384 * (5474 + 222514 + 4712), "macOS 26.1", "with 128 GB", ""),
        ("Intel, macOS 14", [], 4096 * (90211 + 402133 + 20480), "macOS 14.7.1", "with 32 GB", "Intel Mac"),
        ("Rosetta, macOS 15", [], 16384 * (5474 + 222514 + 4712), "macOS 15.5", "with 24 GB", "Rosetta"),
        ("German, macOS 15", GERMAN, 16384 * (5474 + 222514 + 4712), "macOS 15.5", "with 24 GB", ""),
    ],
)
def test_state_of_a_mac(
    name: str, warnings: list[str], free: int, system: str, source: str, problem: str, tmp_path: Path
) -> None:
    mac = SimulatedMac(tmp_path / "mac", MACHINES[name])
    state = mac.evaluate(STATE)
    assert state["warnings"] == state["before a run"] == warnings
    assert state["load"][1:] == [*(warnings or ["nothing that slows a run was found"]), NO_PANICS]
    assert (state["free"], state["system"]) == (free, system)
    assert f"{state['chip']}\n" == MACHINES[name].outputs["sysctl -n machdep.cpu.brand_string"]
    assert f"{state['memory']}\n" == MACHINES[name].outputs["sysctl -n hw.memsize"]
    assert f"estimated for a Mac {source}" in state["source"]
    assert bool(problem) == bool(state["problem"])
    assert problem in state["problem"]
    assert (state["disk"], state["keys"], state["resident"]) == ("smbfs", ["OPENAI_API_KEY"], 204_800 * 1024)
    assert mac.branches >= STATE_BRANCHES
    assert not [call for call in mac.calls if call.startswith("security") and {"-g", "-w"} & set(call.split())]


@pytest.mark.parametrize(
    ("machine", "tools"), [(SILENT, "work"), (SILENT, "missing"), (SILENT, "hang"), (GARBLED, "work")]
)
def test_a_mac_whose_tools_tell_nothing_is_used_all_the_same(machine: Any, tools: str, tmp_path: Path) -> None:
    mac = SimulatedMac(tmp_path / "mac", machine, tools)
    state = mac.evaluate(STATE)
    assert state["warnings"] == state["before a run"] == []
    assert state["free"] is None
    assert state["memory"] > 0, "Python tells it too"
    assert (state["problem"], state["disk"], state["keys"], state["resident"]) == ("", None, [], 0)
    assert state["chip"]
    if machine is SILENT:
        unknown = "macOS did not tell: swap, memory pressure, other models in memory, low power mode"
        assert state["load"] == [unknown, unknown, NO_PANICS]
    assert mac.branches >= STATE_BRANCHES


DOCTOR = """
import sys
from pathlib import Path
from types import SimpleNamespace
from app import main
from app.commands.system import doctor_full_command as doctor_full; from app.commands.results import view_command as view
from app.doctor import examine, machine_checks as machine, machine_report as report
from app.store.workspace import Workspace
from app.system import parallel_processes as parallel
from benchmarks.untrusted import bounded_process
from mlx_backends.mlx import mlx_engine as engine
from mlx_backends.models import metal_working_set as metal
from mlx_backends.pytorch import torch_batch as batch, torch_names_and_devices as spec

metal._ask = lambda: 12_713_115_648
workspace = Workspace(Path("workspace"))
main._warn_of_machine()
answer = {
    "checks": sum(1 for _ in examine(workspace).gi_frame.f_locals[".0"]),
    "machine": machine.machine(workspace).message,
    "memory": machine.memory(workspace).message,
    "devices": [engine._device(), spec.default_device()],
    "report": [*report._machine(), *report._memory({}), *report._state()],
    "sync": report._disk_sync(workspace),
    "cores": parallel._cores(),
    "mlx": [],
}
for message in ("Device(gpu, 0) Metal 12713115648", "Device(cpu, 0) no Metal 0"):
    machine._run_python = lambda code: (True, message)
    answer["mlx"].append([machine.mlx(workspace).message, machine.mlx(workspace).fix])
sys.modules["torch"] = SimpleNamespace()
import resource
resource.getrusage = lambda who: SimpleNamespace(ru_maxrss=7_000_000)
answer["peak"] = batch.peak_memory("cpu")
check = doctor_full.FullCheck(workspace, None)
answer["metal"] = []
for device in ("Device(gpu, 0)", "Device(cpu, 0)"):
    check._measured = {"device": device, "facts": {"device_name": "Apple M1"}}
    outcome = check._metal(print)
    answer["metal"].append([outcome.state, outcome.message])
stream, sys.stdout = sys.stdout, SimpleNamespace(isatty=lambda: True)
answer["browser"] = view._has_browser()
sys.stdout = stream
process = SimpleNamespace(_child=SimpleNamespace(pid=1), _limits={"memory": 400 * 10**6})
try:
    bounded_process.BoundedProcess._check(process, float("inf"))
    answer["limit"] = ""
except bounded_process.LimitError as error:
    answer["limit"] = error.limit
bounded_process._limit_memory(10**6)
"""
DOCTOR_BRANCHES = {
    "app/commands/system/doctor_full_command.py:FullCheck._metal",
    "app/commands/results/view_command.py:_has_browser",
    "app/doctor/__init__.py:examine",
    "app/doctor/machine_checks.py:machine",
    "app/doctor/machine_checks.py:memory",
    "app/doctor/machine_checks.py:mlx",
    "app/doctor/machine_report.py:_disk_sync",
    "app/doctor/machine_report.py:_machine",
    "app/doctor/machine_report.py:_memory",
    "app/doctor/machine_report.py:_state",
    "app/main.py:_warn_of_machine",
    "app/system/parallel_processes.py:_cores",
    "benchmarks/untrusted/bounded_process.py:BoundedProcess._check",
    "benchmarks/untrusted/bounded_process.py:_limit_memory",
    "mlx_backends/mlx/mlx_engine.py:_device",
    "mlx_backends/pytorch/torch_batch.py:peak_memory",
    "mlx_backends/pytorch/torch_names_and_devices.py:default_device",
}


@pytest.mark.parametrize(("resident", "limit"), [(" 204800\n", ""), (" 1048576\n", "memory")])
def test_checks_of_a_mac(resident: str, limit: str, tmp_path: Path) -> None:
    mac = SimulatedMac(tmp_path / "mac", MACHINES["M1, macOS 14"])
    (mac.folder / "outputs" / "ps").write_text(resident)
    state = mac.evaluate(DOCTOR)
    assert state["machine"].startswith("macOS 14.6.1 arm64, Python 3.")
    assert state["memory"].startswith("12.7 GB for models (Metal's recommended working set)")
    assert state["devices"] == ["metal", "mps"]
    assert "estimated from the memory alone: 12.71 GB" in state["report"]
    assert "nothing that slows a run was found" in state["report"]
    assert "F_FULLFSYNC" in state["sync"]
    assert state["cores"] == os.cpu_count()
    assert state["metal"] == [
        ["ok", "MLX computed on Apple M1"],
        ["failed", "MLX computed on Device(cpu, 0); nothing here shows what Metal does"],
    ]
    with_metal, without = state["mlx"]
    assert with_metal == ["Device(gpu, 0) Metal, working set 12.7 GB", ""]
    assert "Metal is missing" in without[1]
    assert (state["peak"], state["browser"], state["limit"]) == (7_000_000, True, limit)
    assert mac.branches >= DOCTOR_BRANCHES


DESKTOP = """
from pathlib import Path
from app.engine.workers.keep_awake import keep_awake
from app.tui import open_external
from benchmarks.errors import RashomonError

open_external._COPY_SECONDS = 0.2
open_external.copy_on_mac("a text")
with keep_awake():
    pass
answer = {"link": open_external.open_in_browser("http://127.0.0.1:8124/")}
try:
    open_external.open_in_viewer(Path("figure.png"))
    answer["viewer"] = ""
except RashomonError as error:
    answer["viewer"] = str(error)
import time
time.sleep(0.2)
"""
DESKTOP_BRANCHES = {
    "app/engine/workers/keep_awake.py:keep_awake",
    "app/tui/open_external.py:_program",
    "app/tui/open_external.py:copy_on_mac",
    "app/tui/open_external.py:open_in_browser",
}


@pytest.mark.parametrize("tools", ["work", "missing", "hang"])
def test_programs_of_the_desktop(tools: str, tmp_path: Path) -> None:
    mac = SimulatedMac(tmp_path / "mac", MACHINES["M1, macOS 14"], tools)
    state = mac.evaluate(DESKTOP)
    assert state["link"] is (tools != "missing")
    assert bool(state["viewer"]) is (tools == "missing")
    if tools == "work":
        started = {call.split()[0] for call in mac.calls}
        assert started >= {"open", "pbcopy"}, "caffeinate may be ended before it has written"
        assert "open http://127.0.0.1:8124/" in mac.calls
    assert mac.branches >= DESKTOP_BRANCHES


def test_no_browser_is_opened_beside_another_machine(tmp_path: Path) -> None:
    mac = SimulatedMac(tmp_path / "mac", MACHINES["M1, macOS 14"])
    code = "from app.tui.open_external import open_in_browser; answer = open_in_browser('http://127.0.0.1:8124/')"
    assert mac.evaluate(code, SSH_CONNECTION="10.0.0.2 50000 10.0.0.3 22") is False
    assert mac.calls == []


def functions_asking(file: Path) -> Iterator[str]:
    """The functions of a module in which ``sys.platform`` is read."""

    def visit(node: ast.AST, name: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from visit(child, f"{name}.{child.name}".removeprefix("."))
            else:
                if ast.unparse(child) == "sys.platform" if isinstance(child, ast.Attribute) else False:
                    yield name
                yield from visit(child, name)

    yield from visit(ast.parse(file.read_text("utf-8")), "")


def test_every_branch_is_run() -> None:
    packages = ("app", "benchmarks", "judges", "mlx_backends", "rashomon")
    files = [
        file for package in packages for file in (ROOT / package).rglob("*.py") if "sys.platform" in file.read_text()
    ]
    asking = {f"{file.relative_to(ROOT)}:{name}" for file in files for name in functions_asking(file)}
    assert asking == STATE_BRANCHES | DOCTOR_BRANCHES | DESKTOP_BRANCHES
