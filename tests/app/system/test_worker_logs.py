"""A worker's log: a line a record, whatever outside text a worker, its libraries or its death write."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.system import worker_logs
from app.system.worker_logs import Log
from tests.support.command import ROOT

KEY = "ssh-ed25519 AAAA theirs"
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d worker: [^\x00-\x1f\x7f-\x9f\u2028\u2029]*")
HOSTILE = f"x\n{KEY}\n\x1b[2J\r{KEY}\u2028{KEY}\x85{KEY}"


def logged(folder: Path, program: str) -> list[str]:
    """The lines of a log of a process that runs ``program``, each of which is a record."""
    log = Log(folder, "worker.log")
    with log.pump("worker") as pump:
        process = subprocess.Popen([sys.executable, "-c", program], stderr=pump.fileno(), cwd=ROOT)
    process.wait(60)
    pump.finish()
    log.close()
    lines = (folder / "worker.log").read_text("utf-8").removesuffix("\n").split("\n")
    assert not [line for line in lines if not RECORD.fullmatch(line)]
    assert not [line for line in lines if line.startswith(KEY)]
    return lines


@pytest.mark.parametrize(
    "program",
    [
        "raise TypeError(HOSTILE)",
        "import threading; t = threading.Thread(target=lambda: int(HOSTILE)); t.start(); t.join()",
        "import warnings; warnings.warn(HOSTILE)",
        "import logging; logging.getLogger('a').warning(HOSTILE)",
        "exec('try:\\n  int(HOSTILE)\\nexcept ValueError as error:\\n  raise KeyError(HOSTILE) from error')",
        "error = ValueError('x'); error.add_note(HOSTILE); raise error",
        "raise ExceptionGroup(HOSTILE, [ValueError(HOSTILE)])",
    ],
)
def test_what_python_reports_is_one_record(tmp_path: Path, program: str) -> None:
    lines = logged(
        tmp_path,
        f"from app.system.worker_logs import write_single_lines; write_single_lines(); HOSTILE = {HOSTILE!r}; {program}",
    )
    assert len(lines) == 1
    assert KEY in lines[0]


def test_what_is_written_past_python_is_escaped_a_line_a_record(tmp_path: Path) -> None:
    lines = logged(tmp_path, f"import os; os.write(2, {HOSTILE!r}.encode() + b'\\xff' + b'y' * 200_000 + b'\\nlast')")
    assert lines[-1].endswith("worker: last")
    assert max(map(len, lines)) < 200_000
    assert r"\xff" in "".join(lines)


def test_the_dump_of_a_crash_is_there(tmp_path: Path) -> None:
    lines = logged(tmp_path, "import faulthandler, os; faulthandler.enable(); os.abort()")
    assert "Fatal Python error: Aborted" in lines[0]
    assert any("<string>" in line for line in lines)


def test_a_log_is_bounded_and_a_full_disk_does_not_stop_who_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_logs, "_LARGEST", 10_000)
    log = Log(tmp_path, "worker.log")
    for number in range(500):
        log.write("worker", f"{number} {'x' * 100}")
    assert (tmp_path / "worker.log").stat().st_size < 10_200
    assert "499 xxx" in (tmp_path / "worker.log").read_text().splitlines()[-1]
    log.close()
    log.write("worker", "too late, and no error")


def test_a_child_that_holds_the_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    begun = time.monotonic()
    program = "import subprocess; subprocess.Popen(['sleep', '30']); raise SystemExit(1)"
    log = Log(tmp_path, "worker.log")
    with log.pump("worker") as pump:
        process = subprocess.Popen([sys.executable, "-c", program], stderr=pump.fileno(), start_new_session=True)
    process.wait(20)
    pump.finish()
    log.close()
    os.killpg(process.pid, 9)
    assert time.monotonic() - begun < 20


WRITES_MUCH = """
import sys, time
from app.system import worker_logs as logs
logs._PATIENCE = {patience}
logs.write_single_lines()
for number in range({count}):
    print(number, "x" * 1000, file=sys.stderr)
print("at the end", file=sys.stdout, flush=True)
time.sleep(1)
print("and after it", file=sys.stderr, flush=True)
"""


def test_ten_megabytes_are_read_to_the_last_line(tmp_path: Path) -> None:
    lines = logged(tmp_path, WRITES_MUCH.format(patience=30, count=10_000))
    assert [line.split(" ")[3] for line in lines] == [*map(str, range(10_000)), "and"]


@pytest.mark.parametrize(("patience", "lost"), [(0.2, True), pytest.param(60.0, False, marks=pytest.mark.slow)])
def test_a_stopped_reader_holds_nobody_up_for_ever(tmp_path: Path, patience: float, lost: bool) -> None:
    """A worker continues while its parent is stopped, as by Ctrl-Z."""
    reader = f"""
import subprocess, sys
from pathlib import Path
from app.system.worker_logs import Log
log = Log(Path({str(tmp_path)!r}), "worker.log")
with log.pump("worker") as pump:
    worker = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stderr=pump.fileno())
print("ready", flush=True)
worker.wait()
pump.finish()
log.close()
"""
    # The worker begins to write when the reader has been stopped for a while.
    program = "import time; time.sleep(1.5)\n" + WRITES_MUCH.format(patience=patience, count=500)
    process = subprocess.Popen([sys.executable, "-c", reader, program], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGSTOP)
    if lost:
        assert process.stdout.readline() == b"at the end\n"
    else:
        time.sleep(3)
    process.send_signal(signal.SIGCONT)
    assert process.wait(60) == 0
    process.stdout.close()
    text = (tmp_path / "worker.log").read_text()
    assert ("were dropped" in text) == lost
    assert ("worker: 499 xxx" in text) != lost
    assert "and after it" in text
