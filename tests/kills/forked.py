"""Commands as processes that are forked from this one, in which their modules are loaded: at most a tenth of a start's time."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from subprocess import TimeoutExpired
from typing import IO

from benchmarks.untrusted import own_files
from tests.support import orders as ordering

_MODULES = (
    "building.build_command",
    "running.import_command",
    "running.judge_command",
    "running.batch_command",
    "results.try_command",
    "sharing.bundle_command",
    "results.save_page",
    "results.export_command",
    "results.report_command",
    "training.training_command",
    "sharing.push_command",
    "data_and_models.models_command",
    "training.train_command",
    "data_and_models.new_folder",
    "building.sets_command",
)


def load() -> None:
    """Import what commands import, but for MLX, which does not outlive a fork."""
    for name in _MODULES:
        import_module(f"app.commands.{name}")
    for name in (
        "app.cli",
        "app.exports.bundle_export",
        "app.exports.hub_data_set",
        "app.exports.report.report_export",
        "app.view.saved.saved_page",
    ):
        import_module(name)
    for name in ("matplotlib.figure", "pyarrow.parquet", "huggingface_hub", "huggingface_hub.hf_api", "httpx2"):
        import_module(name)
    gc.freeze()


class Forked:
    """A command in a process and session of its own, whose output goes to a file."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        orders: Mapping[str, object],
        home: Path,
        output: IO[str],
    ) -> None:
        self.returncode: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            _become(words, environment, orders, home, output)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Return the exit code as :mod:`subprocess` has it; None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return the exit code. Raises TimeoutExpired."""
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise TimeoutExpired("rashomon", timeout)
            time.sleep(0.002)
        return code


def _become(
    words: Sequence[str], environment: Mapping[str, str], orders: Mapping[str, object], home: Path, output: IO[str]
) -> None:
    """Be the command, and end with it."""
    code = 1
    try:
        os.setsid()
        os.chdir(home)
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(environment)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        sys.argv = ["rashomon", *words]
        own_files._SWEPT.clear()
        if orders:
            ordering.apply(dict(orders))
        from app.main import main

        main(words)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
