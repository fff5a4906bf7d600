"""``rashomon doctor``: problems of this machine or of a run, and their fixes."""

from __future__ import annotations

import sys

from app.doctor import examine
from app.exit_codes import DONE, FAILURES, EndedError
from app.json_output.catalog import MachineCheck
from app.json_output.envelope import print_json
from app.report.portable import portable_message
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from app.text.escape import clean
from app.text.plural import count_of
from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import typed_path
from mlx_backends import stored_checks
from mlx_backends.mlx import feature_folder


def doctor(
    workspace: Workspace,
    run: str | None = None,
    *,
    as_json: bool,
    report: str | None = None,
    forget_checks: bool = False,
    forget_features: bool = False,
) -> int:
    """Check this machine, or one run, and print the results; return 0. Raises EndedError if something does not work.

    ``report`` is the name of a file for a report on this machine. With ``forget_checks``, the stored checks of models
    are forgotten first, and with ``forget_features`` the vision features on disk. Raises SpecError, StoreError.
    """
    if report is not None and run is not None:
        raise SpecError("a report is on the machine, not on a run; leave out the run's name, or --report.")
    if forget_checks:
        count = stored_checks.forget_checks()
        print(f"forgot {count} stored checks; the next run of each model repeats them.", file=sys.stderr)
    if forget_features:
        count, size = feature_folder.forget_features()
        print(f"removed {count} files of vision features, {size / 1e9:.1f} GB.", file=sys.stderr)
    if run is None:
        results = list(examine(workspace))
    else:
        from app.doctor.run import check_run

        results = list(check_run(workspace, run_folder(workspace, run)))
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
    else:
        for result in results:
            state = "FAIL" if not result.ok else "see " if result.fix else "ok  "
            print(clean(f"{state}  {result.check:<12} {result.message}"))
            if result.fix:
                print(clean(f"      {'':<12} -> {result.fix}"))
    if report is not None:
        from app.doctor.report import write_report

        file = typed_path(report)
        print("measuring with the demo's model ...", file=sys.stderr, flush=True)
        write_report(workspace, results, file)
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
