"""The table of phases in docs/failures.md: each command is ended in each phase by each signal, and repeated."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.kills.cases import Case, cases, contents, hear_hangups, make_home, names
from tests.kills.check import export, phase_of, untrue
from tests.support.command import ROOT, Rashomon, children_of, kill_all
from tests.support.fake_hub import FakeHub
from tests.support.upload_hub import UploadHub

SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP)
FAST = {("bundle", "packing", "SIGKILL"), ("view --save", "writing", "SIGHUP"), ("import", "reading", "SIGTERM")}
"""The cells of the fast suite."""

_HELD: Mapping[tuple[str, str], str] = {
    ("build", "reading"): "benchmarks.build:BuildWriter.add_row",
    ("build", "putting in place"): "benchmarks.build:BuildWriter._put_in_place",
    ("build --from", "reading"): "benchmarks.build:BuildWriter.finish",
    ("build --from", "recording the version"): "app.commands.building.sets_command:record_version",
    ("import", "reading"): "app.commands.running.import_command:_read_jsonl",
    ("import", "storing"): "app.commands.running.import_command:_fill",
    ("import", "stored"): "app.commands.running.import_command:judge_run",
    ("batch", "planning"): "app.store.run_store:RunStore._fill",
    ("try", "planning"): "app.store.run_store:RunStore._fill",
    ("bundle", "copying"): "app.exports.bundle_export:_Writer._add_media",
    ("bundle", "packing"): "app.exports.bundle_export:_Writer._zip",
    ("view --save", "writing"): "app.view.saved.saved_page:_Saver.media",
    ("export", "writing"): "app.exports.export_writer:_Encoded.__iter__",
    ("report", "writing"): "app.exports.export_writer:_Encoded.__iter__",
    ("training", "writing"): "benchmarks.training.write_training_set:_Rows.split",
    ("training", "comparing"): "app.commands.training.training_command:check_leaks",
    ("push", "sending"): "huggingface_hub:HfApi.create_commit",
    ("push --out", "writing"): "app.exports.export_writer:_Encoded.__iter__",
    ("models fuse", "writing"): "app.commands.data_and_models.fuse_command:fuse",
    ("models fuse", "written"): "app.commands.data_and_models.fuse_command:_print_fused",
}
"""The function that is held as it begins in a phase; a phase that is missing here is met while it works slowly."""
_SEEN: Mapping[tuple[str, str], str] = {
    ("import", "judging"): "judging",
    ("judge", "judging"): "judging",
    ("batch", "answering"): "answering",
    ("models get", "fetching"): "writing",
    ("train", "training"): "training",
}
"""For those phases, what :func:`tests.kills.check.phase_of` says."""


def _rows() -> Iterator[tuple[str, str]]:
    """Yield command and phase of each row of the table."""
    text = (ROOT / "docs" / "failures.md").read_text()
    table = text.partition("| command | phase |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        command, phase, *_ = (cell.strip() for cell in line.strip("|").split("|"))
        yield command.strip("`"), phase


def _cells() -> Iterator[object]:
    for command, phase in _rows():
        for number in SIGNALS:
            marks = () if (command, phase, number.name) in FAST else pytest.mark.slow
            yield pytest.param(command, phase, number, marks=marks, id=f"{command}, {phase}, {number.name}")


@dataclass
class Homes:
    """Homes to begin in, and what commands leave that nothing disturbs."""

    template: Path
    cases: Mapping[str, Case]
    hub: FakeHub
    undisturbed: dict[str, tuple[set[str], dict[str, str], dict[str, str]]] = field(default_factory=dict)

    def home(self, case: Case, folder: Path) -> Rashomon:
        """A home of its own, in which the command has not run."""
        shutil.copytree(self.template, folder, symlinks=True)
        case.prepare(folder)
        return Rashomon(folder, variables={**case.variables, "TMPDIR": str(folder / "tmp")})

    def expected(self, case: Case) -> tuple[set[str], dict[str, str], dict[str, str]]:
        """What an undisturbed command leaves."""
        if case.name not in self.undisturbed:
            with tempfile.TemporaryDirectory() as folder:
                rashomon = self.home(case, Path(folder) / "home")
                rashomon.process(*case.words, code=case.codes)
                self.undisturbed[case.name] = left(case, rashomon)
        return self.undisturbed[case.name]


def left(case: Case, rashomon: Rashomon) -> tuple[set[str], dict[str, str], dict[str, str]]:
    """The names in a home, the files of a command's target, and the canonical export of its run."""
    files = contents(rashomon.home / case.target) if case.target and case.same_bytes else {}
    return names(rashomon.home), files, export(rashomon, case.run) if case.run else {}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    template = tmp_path_factory.mktemp("phases") / "template"
    make_home(template)
    with ExitStack() as stack:
        hub, uploads = FakeHub(), UploadHub()
        stack.enter_context(hub.running())
        stack.enter_context(uploads.running())
        yield Homes(template, {case.name: case for case in cases(hub, uploads)}, hub)


def test_every_phase_of_the_table_is_walked_and_no_other() -> None:
    assert sorted(_rows()) == sorted([*_HELD, *_SEEN])
    assert len(FAST) == sum((command, phase) in set(_rows()) for command, phase, _ in FAST)


@pytest.mark.parametrize(("command", "phase", "number"), [*_cells()])
def test_a_command_resumes_in_every_phase(
    homes: Homes, tmp_path: Path, command: str, phase: str, number: signal.Signals
) -> None:
    case = homes.cases[command]
    expected = homes.expected(case)
    rashomon = homes.home(case, tmp_path / "home")
    reached = tmp_path / "reached"
    if (command, phase) in _HELD:
        orders = {"holds": {"function": _HELD[command, phase], "file": str(reached)}}
        process = replace(rashomon, orders=orders).start(*case.words, preexec_fn=hear_hangups)
        _wait(process, reached.exists)
    else:
        homes.hub.faults["model.safetensors"] = ["wait 700000!"]
        homes.hub.released.clear()
        process = replace(rashomon, orders=case.orders).start(*case.words, preexec_fn=hear_hangups)
        _wait(process, lambda: phase_of(case, rashomon.home) == _SEEN[command, phase])
    _end(process, number)
    homes.hub.released.set()
    homes.hub.faults.clear()
    assert [*untrue(case, rashomon, expected[1])] == []
    rashomon.process(*case.words, code=case.codes)
    assert left(case, rashomon) == expected
    assert [*untrue(case, rashomon, expected[1])] == []


def _wait(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.005)


def _end(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send the signal, and check how the command and its workers end."""
    if number == signal.SIGKILL:
        kill_all(process)
        return
    workers = children_of(process.pid)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=90)
    assert process.returncode == 130, stderr
    (line,) = [line for line in stderr.splitlines() if line.startswith("rashomon: ")]
    assert re.search("same command|resume", line), line
    assert "Traceback" not in stderr
    end = time.monotonic() + 20
    while any(Path(f"/proc/{worker}/cmdline").exists() for worker in workers) and time.monotonic() < end:
        time.sleep(0.01)
