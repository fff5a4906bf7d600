"""Runs that different versions of a judge have labelled: not compared until they are labelled alike, and the message says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.vocabulary import Verdict
from tests.app.engine.test_judge_faults import make_run
from tests.support.command import Rashomon

OLD = "match@3"


def differences(compared: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for table in compared["tables"] if table["name"] == "differences" for row in table["rows"]]


def test_runs_of_two_versions_are_not_compared_until_judged_alike(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    workspace = Workspace(rashomon.workspace)
    old = make_run(workspace, 40, lambda n: f"{1950 + n % 50}")
    with RunStore.open(old) as store:
        rows = [(n, record.instance.condition) for n, record in enumerate(store.records(), 1)]
        store.add_verdicts([(n, condition, Verdict(OLD, "labelled", "IMAGE", "rule 3")) for n, condition in rows])
    old.rename(old.with_name("old"))
    make_run(workspace, 40, lambda n: f"{2001 + n % 20}")
    rashomon.run("judge", "r", "--judge", "match")

    labels = rashomon.run("show", "old", "--json", "--table", "labels").stdout
    assert OLD in labels, "labels of an earlier version stay"
    compared = rashomon.json("compare", "old", "r")
    assert any("rashomon judge old --judge match" in warning for warning in compared["warnings"])
    assert {row["cells"]["difference"]["value"] for row in differences(compared)} == {None}
    rashomon.run("recommend", "old", "r", code=2)

    rashomon.run("judge", "old", "--judge", "match")
    compared = rashomon.json("compare", "old", "r")
    assert not any("rashomon judge" in warning for warning in compared["warnings"])
    assert {row["cells"]["difference"]["value"] for row in differences(compared)} != {None}
    shown = rashomon.run("show", "old", "--judge", OLD, "--json", "--table", "labels").stdout
    assert OLD in shown
