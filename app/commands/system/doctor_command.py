"""``rashomon doctor``: problems of this machine or of a run, and their fixes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.doctor import CheckResult, examine
from app.exit_codes import DONE, FAILURES, EndedError
from app.json_output.catalog_json import MachineCheck
from app.json_output.json_envelope import print_json
from app.report.runs.portable_facts import portable_message
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from app.text.plural import count_of
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import typed_path
from mlx_backends import stored_checks
from mlx_backends.mlx.vision import feature_folder

REPORT_FILE = "rashomon-report.txt"
_NARROWEST, _WIDEST = 12, 40  # columns for the names of checks


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Options of ``rashomon doctor``; ``full`` measures everything, with ``model`` or one from the cache."""

    as_json: bool = False
    report: str | None = None
    """The name of a file for a report on this machine."""
    read: str | None = None
    """The name of a report to check for edits."""
    full: bool = False
    model: str | None = None
    forget_checks: bool = False
    """Flag to forget the stored checks of models first."""
    forget_features: bool = False
    """Flag to remove the vision features on disk first."""


def doctor(workspace: Workspace, run: str | None, options: DoctorOptions) -> int:
    """Check this machine, one run or a report, and print the results; return 0.

    Raises EndedError if something does not work, or was edited; SpecError, StoreError.
    """
    _check_options(run, options)
    if options.forget_checks:
        count = stored_checks.forget_checks()
        print(f"forgot {count} stored checks; the next run of each model repeats them.", file=sys.stderr)
    if options.forget_features:
        count, size = feature_folder.forget_features()
        print(f"removed {count} files of vision features, {size / 1e9:.1f} GB.", file=sys.stderr)
    if options.full:
        from app.commands.system.doctor_full_command import doctor_full

        return doctor_full(workspace, model=options.model, file=typed_path(options.report or REPORT_FILE))
    file = None if options.report is None else typed_path(options.report)
    if file is not None:
        from app.doctor.machine_report import check_file

        check_file(file)
    results = list(_results(workspace, run, options.read))
    _print(workspace, results, as_json=options.as_json)
    if file is not None:
        from app.doctor.machine_report import measurements, report, write_report

        print("measuring with the demo's model ...", file=sys.stderr, flush=True)
        write_report(file, report(workspace, results, measurements()))
        print(
            clean(f"wrote {file}; it names no user, machine, folder or run. Read it before you pass it on."),
            file=sys.stderr,
        )
    if failed := [result.check for result in results if not result.ok]:
        raise EndedError(
            FAILURES,
            f"{count_of(len(failed), 'check')} failed ({', '.join(dict.fromkeys(failed))}); each has its fix above.",
        )
    return DONE


def _check_options(run: str | None, options: DoctorOptions) -> None:
    """Raise SpecError if the options contradict each other."""
    if run is not None and (options.report is not None or options.full or options.read is not None):
        raise SpecError("a report is on the machine, not on a run; leave out the run's name, or the option.")
    if options.model is not None and not options.full:
        raise SpecError("--model names the model of --full; add --full.")
    if options.read is not None and (options.full or options.report is not None):
        raise SpecError("--read checks an existing report; leave out --full and --report.")
    if options.full and options.as_json:
        raise SpecError("--full prints no JSON; leave out --json.")


def _results(workspace: Workspace, run: str | None, report: str | None) -> Iterator[CheckResult]:
    """Return the results on a ``report``, a ``run`` or this machine."""
    if report is not None:
        from app.doctor.report_digests import check_report

        return check_report(typed_path(report))
    if run is not None:
        from app.doctor.damaged_run_check import check_run

        return check_run(workspace, run_folder(workspace, run))
    return examine(workspace)


def _print(workspace: Workspace, results: Sequence[CheckResult], *, as_json: bool) -> None:
    if as_json:
        checks = [
            MachineCheck(
                check=result.check,
                ok=result.ok,
                message=portable_message(result.message, workspace.path),
                fix=portable_message(result.fix, workspace.path),
            )
            for result in results
        ]
        print_json("doctor", checks)
        return
    width = max((len(result.check) for result in results), default=0)
    width = min(max(width, _NARROWEST), _WIDEST)
    for result in results:
        print(clean(f"{result.state:<4}  {result.check:<{width}} {result.message}"))
        if result.fix:
            print(clean(f"      {'':<{width}} -> {result.fix}"))
