"""Kills at random moments: ``python -m tests.kills [--seed N] [--kills N] [--only NAME] [--log FILE]``.

A home gets one to four kills in a row of the same command, and then the command that nothing disturbs. Moments are spread over
the measured duration of an undisturbed command. Between two commands the home has to be true, and in the end it has to be
that of a command that nothing disturbed: the same files, no leftover.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from subprocess import TimeoutExpired
from typing import IO, Any

from tests.kills.cases import Case, cases, contents, hear_hangups, make_home, names
from tests.kills.check import export, phase_of, untrue
from tests.kills.forked import Forked, load
from tests.support.command import Rashomon, children_of
from tests.support.fake_hub import FakeHub
from tests.support.upload_hub import UploadHub

SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP)
_LONGEST = 90
_CHAIN = 4


@dataclass
class Undisturbed:
    """A command that nothing disturbs: how long it takes, and what it leaves."""

    seconds: float
    names: set[str]
    target: dict[str, str]
    export: dict[str, str]


@dataclass
class Kills:
    """The kills of one command, and what they broke."""

    case: Case
    template: Path
    chance: random.Random
    log: IO[str]
    phases: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def run(self, count: int) -> None:
        """Kill the command ``count`` times."""
        undisturbed = self._undisturbed()
        done = 0
        while done < count:
            chain = min(self.chance.randint(1, _CHAIN), count - done)
            done += chain
            with tempfile.TemporaryDirectory(prefix="kills-") as folder:
                self._chain(self._home(Path(folder) / "home"), chain, undisturbed)

    def _home(self, home: Path) -> Rashomon:
        shutil.copytree(self.template, home, symlinks=True)
        self.case.prepare(home)
        return Rashomon(home, self.case.orders, {**self.case.variables, "TMPDIR": str(home / "tmp")})

    def _undisturbed(self) -> Undisturbed:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            rashomon = self._home(Path(folder) / "home")
            start = time.monotonic()
            self._end(rashomon)
            seconds = time.monotonic() - start
            return Undisturbed(seconds, *self._left(rashomon))

    def _left(self, rashomon: Rashomon) -> tuple[set[str], dict[str, str], dict[str, str]]:
        files = names(rashomon.home)
        exported = export(rashomon, self.case.run) if self.case.run else {}
        return files, contents(rashomon.home / self.case.target) if self.case.target else {}, exported

    def _end(self, rashomon: Rashomon) -> None:
        """Run the command to its end."""
        with tempfile.TemporaryFile("w+") as output:
            code = self._start(rashomon, output).wait(600)
            if code not in self.case.codes:
                output.seek(0)
                self._violation(rashomon, "end", f"the repeated command ends with {code}: {output.read()[-600:]}")

    def _start(self, rashomon: Rashomon, output: IO[str]) -> Forked | subprocess.Popen[str]:
        if not self.case.forked:
            return subprocess.Popen(
                rashomon.command(*self.case.words),
                env=rashomon.environment,
                cwd=rashomon.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=hear_hangups,
                text=True,
            )
        return Forked(self.case.words, rashomon.environment, self.case.orders, rashomon.home, output)

    def _chain(self, rashomon: Rashomon, kills: int, undisturbed: Undisturbed) -> None:
        for _ in range(kills):
            self._kill(rashomon, undisturbed)
        self._end(rashomon)
        files, target, exported = self._left(rashomon)
        if files != undisturbed.names:
            self._violation(
                rashomon, "files", f"only after kills or only without: {sorted(files ^ undisturbed.names)[:12]}"
            )
        if self.case.same_bytes and target != undisturbed.target:
            self._violation(rashomon, "target", f"{sorted(target.items() ^ undisturbed.target.items())[:6]}")
        if exported != undisturbed.export:
            self._violation(rashomon, "export", f"{sorted(exported.items() ^ undisturbed.export.items())[:6]}")

    def _kill(self, rashomon: Rashomon, undisturbed: Undisturbed) -> None:
        number, delay = self.chance.choice(SIGNALS), self.chance.uniform(0, 1.02 * undisturbed.seconds)
        with tempfile.TemporaryFile("w+") as output:
            process = self._start(rashomon, output)
            try:
                process.wait(delay)
            except TimeoutExpired:
                phase = phase_of(self.case, rashomon.home)
            else:
                phase = "after its end"
            children = [] if process.returncode is not None else children_of(process.pid)
            process.send_signal(number)
            start = time.monotonic()
            try:
                process.wait(_LONGEST)
            except TimeoutExpired:
                self._violation(rashomon, phase, f"{number.name}: it has not ended after {_LONGEST} s")
                process.send_signal(signal.SIGKILL)
            seconds = time.monotonic() - start
            output.seek(0)
            text = output.read()
        code = process.wait(_LONGEST)
        self.phases[f"{phase} {number.name}"] += 1
        record: dict[str, Any] = {
            "case": self.case.name,
            "signal": number.name,
            "delay": delay,
            "phase": phase,
            "code": code,
        }
        print(json.dumps(record | {"seconds": seconds}), file=self.log, flush=True)
        for problem in self._wrong_end(number, code, phase, text):
            self._violation(rashomon, f"{phase} {number.name} after {delay:.2f} s", problem)
        if self.chance.random() < 0.3 and number == signal.SIGKILL:
            return  # the same command follows at once, while a worker may still be ending
        self._wait_for(rashomon, children, f"{phase} {number.name}")
        for problem in untrue(self.case, rashomon, undisturbed.target):
            self._violation(rashomon, f"{phase} {number.name} after {delay:.2f} s", problem)

    def _wrong_end(self, number: signal.Signals, code: int, phase: str, text: str) -> Iterator[str]:
        if (
            number == signal.SIGINT
            and phase == "before writing"
            and text.endswith("KeyboardInterrupt\n")
            and "/app/" not in text
        ):
            return  # while Python itself begins
        if "Traceback" in text:
            yield f"a traceback: {text[-1500:]}"
        if code in self.case.codes or (number == signal.SIGKILL and code == -signal.SIGKILL):
            return
        if code == -number and phase == "before writing":
            return  # while Python itself begins
        lines = [line for line in text.splitlines() if line.startswith("rashomon: ")]
        if code != 130 or len(lines) != 1:
            yield f"it ends with {code} and {len(lines)} lines: {text[-600:]}"

    def _wait_for(self, rashomon: Rashomon, pids: list[int], phase: str) -> None:
        end = time.monotonic() + 20
        while any(map(_runs, pids)):
            if time.monotonic() > end:
                self._violation(rashomon, phase, "its worker has not ended after 20 s")
                return
            time.sleep(0.01)

    def _violation(self, rashomon: Rashomon, where: str, problem: str) -> None:
        line = f"{self.case.name}: {where}: {problem.replace(str(rashomon.home), 'HOME')}"
        self.violations.append(line)
        print(json.dumps({"violation": line}), file=self.log, flush=True)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def main() -> None:
    """Kill all commands, each as often as its weight says, and print how many kills met which phase, and what they broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--only", action="append")
    parser.add_argument("--log", type=Path, default=Path(os.devnull))
    options = parser.parse_args()
    violations = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-")))
        log = stack.enter_context(options.log.open("a"))
        with get_context("spawn").Pool(1) as pool:  # in a process of its own, because MLX does not outlive a fork
            pool.apply(make_home, (folder / "template",))
        hub, uploads = FakeHub(), UploadHub()
        stack.enter_context(hub.running())
        stack.enter_context(uploads.running())
        load()
        every = [case for case in cases(hub, uploads) if options.only is None or case.name in options.only]
        total = sum(case.weight for case in every)
        left = options.kills
        for case in every:
            count = round(left * case.weight / total)
            left, total = left - count, total - case.weight
            kills = Kills(case, folder / "template", random.Random(f"{options.seed} {case.name}"), log)
            kills.run(count)
            print(f"{case.name}: {count} kills: {dict(sorted(kills.phases.items()))}", flush=True)
            violations += kills.violations
            for line in kills.violations:
                print(f"  VIOLATION {line}", flush=True)
    print(f"{len(violations)} violations")
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
