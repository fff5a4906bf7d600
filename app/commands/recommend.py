"""``rashomon recommend``: which run to take, or what it takes to know."""

from __future__ import annotations

import json
from collections.abc import Sequence

from app.commands.spinner import doing
from app.compare.recommend import recommend as decide
from app.compare.sample_size import plan as plan_runs
from app.report.render import print_table, to_json
from app.store.workspace import Workspace
from app.text.escape import clean


def recommend(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    judge: str | None,
    margin: float,
    metric: str | None,
    lower_is_better: bool,
    plan: bool,
    width: float,
    as_json: bool,
) -> None:
    """Print which of ``runs`` to take; with ``plan`` what an interval of ``width`` takes instead."""
    folders = [workspace.run_folder(run) for run in runs]
    if plan:
        with doing(f"reading {len(folders)} runs"):
            table = plan_runs(
                folders, judge=judge, width=width, margin=margin, metric=metric, lower_is_better=lower_is_better
            )
        if as_json:
            print(json.dumps(to_json(table), indent=2))
        else:
            print_table(table)
        return
    with doing(f"comparing {len(folders)} runs"):
        found = decide(folders, judge=judge, margin=margin, metric=metric, lower_is_better=lower_is_better)
    told = {"take": found.take, "does": found.does, "unknown": found.unknown}
    if as_json:
        decision = found.decision
        names = [side.name for side in decision.basis.sides.sides]
        chosen = {
            "margin": margin,
            "best": names[decision.basis.best],
            "holds": [names[i] for i in decision.holds],
            "smallest": None if decision.smallest is None else names[decision.smallest],
            "fastest": None if decision.fastest is None else names[decision.fastest],
        }
        alone = {} if found.alone is None else {"alone": to_json(found.alone)}
        print(json.dumps({**chosen, **told, "table": to_json(found.table), **alone}, indent=2))
        return
    print("\n".join(clean(line) for line in found.take))
    if any("ore examples would tell" in line for line in (*found.take, *found.unknown)):
        print("--plan says how many examples.")
    print()
    print_table(found.table)
    if found.alone is not None:
        print_table(found.alone)
    for title, lines in (("How they differ", found.does), ("What cannot be said", found.unknown)):
        if lines:
            print(title)
            print("\n".join(f"  {clean(line)}" for line in lines))
