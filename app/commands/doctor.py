"""``rashomon doctor``: why something does not work, and how to mend it."""

from __future__ import annotations

import json
from dataclasses import asdict

from app.doctor import examine
from app.store.workspace import Workspace
from app.text.escape import clean


def doctor(workspace: Workspace, run: str | None = None, *, as_json: bool) -> int:
    """Examine this machine, or one run, and print what was found; 1 where something does not work, 0 also where there is
    advice."""
    if run is None:
        findings = list(examine(workspace))
    else:
        from app.doctor.run import examine_run

        findings = list(examine_run(workspace, workspace.run_folder(run)))
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            state = "FAIL" if not finding.ok else "see " if finding.mend else "ok  "
            print(clean(f"{state}  {finding.what:<12} {finding.told}"))
            if finding.mend:
                print(clean(f"      {'':<12} -> {finding.mend}"))
    return 0 if all(finding.ok for finding in findings) else 1
