"""The metrics that exports hand to other tools are those of the tables, for every benchmark and every part of it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.commands.results.export_command import ExportArguments, export
from app.engine.run_plan import create_run
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.crosscheck_bench.crosscheck_constants import TASKS
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Record
from judges.judge_registry import get_judge
from tests.benchmarks.contra4.test_contra4_tables import record
from tests.support.data.clash import published_folder, published_row
from tests.support.data.crosscheck_bench import row, write_rows
from tests.support.data.mmkc_bench import whole_folder
from tests.support.data.pope import small_pope
from tests.support.json_output import cells_of, json_result
from tests.support.runs import instances as cmc_instances

BUILDS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "clash": ("published", lambda place: published_folder(place, [published_row(n) for n in range(1, 7)])),
    "mmkc-bench": ("published", lambda place: whole_folder(place, 4)),
    "pope": ("pope", lambda place: small_pope(place, 3)),
    "crosscheck-bench": (
        "rows",
        lambda place: write_rows(place, [row(t, n) for t in tuple(TASKS)[:6] for n in range(3)]),
    ),
}


def asked(benchmark: str, folder: Path) -> list[Instance]:
    """Return the instances of a small build."""
    if benchmark == "cmc-bench":
        return cmc_instances(8)
    if benchmark == "contra4":
        return [record(number, "").instance for number in range(30)]
    source, write = BUILDS[benchmark]
    result = get_benchmark(benchmark)
    build = result.build([(source, str(write(folder / "source")))], folder / "built", BuildOptions())
    return list(result.instances(build, next(iter(result.prompt_sets))))


def answer(instance: Instance) -> str:
    """Return one of the answers that are known, a letter, nonsense or nothing, by the instance's id."""
    known = sorted({value for values in instance.references.values() for value in values})
    items = [*known, *known, "A", "B", "yes", "no", "", "I do not know."]
    return items[hashlib.sha256(instance.id.encode()).digest()[0] % len(items)]


def make_run(workspace: Workspace, benchmark: str, chosen: Sequence[Instance]) -> None:
    result = get_benchmark(benchmark)
    judge = get_judge(result.judges[0])
    (spec,) = BatchSpec(benchmark=benchmark, model=("policy:always-image",), name=benchmark).runs()
    message = {i.id: Generation(f"{i.id}#0", answer(i), "stop") for i in chosen}
    own = {(i.group, i.condition): message[i.id] for i in chosen}

    def fill(store: RunStore) -> None:
        store.use_engine({"engine": "policy", "model": "m", "versions": {}})
        answers = []
        for ordinal, instance in enumerate(chosen):
            basis = own.get((instance.group, result.basis(instance.condition) or ""))
            verdict = judge.judge(Record(instance, (message[instance.id],), basis=basis))
            answers.append(NewAnswer(ordinal, instance.condition, 0, "d", message[instance.id], True, (verdict,)))
        store.commit(answers)

    workspace.make()
    identity = {**spec.identity(), "data digest": "d" * 64, "engine": "policy", "device": "cpu"}
    create_run(workspace, spec, workspace.runs_folder / benchmark, identity, chosen, data=None, fill=fill)


Exported = tuple[dict[str, Any], dict[str, Any], dict[str, float]]
"""lm-eval's results, the header of Inspect's log, and the tables' cells by the name that other tools know them by."""


def exported(tmp_path: Path, benchmark: str, conditions: Callable[[str], bool]) -> Exported:
    chosen = [i for i in asked(benchmark, tmp_path) if conditions(i.condition)]
    workspace = Workspace(tmp_path / "workspace")
    make_run(workspace, benchmark, chosen)
    formats, out = ["lm-eval", "inspect", "json"], tmp_path / "out"
    export(
        workspace,
        [benchmark],
        ExportArguments(formats=formats, out=out, judge=None, canonical=True, width="column", metric=None),
    )
    (results,) = out.glob("lm-eval/*/results_*.json")
    with zipfile.ZipFile(out / f"{benchmark}.eval") as log:
        header = json.loads(log.read("header.json"))
    cells = {}
    for table in json_result((out / "results.json").read_text("utf-8"))["tables"]:
        for number, item in enumerate(table["rows"]):
            name, *rest = item["label"].split(" / ")
            if name == "policy:always-image":
                place = () if table["name"] == "main" else (table["name"],)
                for column, cell in cells_of(table, number).items():
                    value = cell["value"] if isinstance(cell, dict) else cell
                    cells[" / ".join((*place, *rest, column))] = value
    return json.loads(results.read_text("utf-8")), header, cells


PARTS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "cmc-bench": ("cmc-bench", lambda condition: True),
    "clash": ("clash", lambda condition: True),
    "clash, open alone": ("clash", lambda condition: "open" in condition),
    "mmkc-bench": ("mmkc-bench", lambda condition: True),
    "mmkc-bench, open alone": ("mmkc-bench", lambda condition: condition.endswith("-open")),
    "mmkc-bench, detection alone": ("mmkc-bench", lambda condition: condition.endswith("conflict")),
    "pope": ("pope", lambda condition: True),
    "crosscheck-bench": ("crosscheck-bench", lambda condition: True),
    "contra4": ("contra4", lambda condition: True),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_every_metric_is_the_tables_cell_that_it_names(tmp_path: Path, part: str) -> None:
    benchmark, conditions = PARTS[part]
    results, header, cells = exported(tmp_path, benchmark, conditions)
    metrics = {
        key.removesuffix(",none"): value
        for key, value in results["results"][benchmark].items()
        if key.endswith(",none") and not key.endswith("_stderr,none")
    }
    assert metrics, "a run has at least one metric"
    assert metrics == {name: cells[name] for name in metrics}
    (score,) = header["results"]["scores"]
    assert {name: metric["value"] for name, metric in score["metrics"].items()} == metrics
    assert not any("," in name for name in metrics), "lm-eval parts a metric from its filter at a comma"


ACCURACIES = {
    "cmc-bench": {"aligned": "Aligned"},
    "pope": {"random": "Random", "popular": "Popular", "adversarial": "Adversarial"},
    "contra4": {"media": "2 Modalities / Rand."},
}
"""The tasks whose accuracy is a cell of the main table."""


@pytest.mark.parametrize("benchmark", ACCURACIES)
def test_the_accuracy_of_a_task_is_the_tables_with_the_answers_that_those_count(tmp_path: Path, benchmark: str) -> None:
    results, header, cells = exported(tmp_path, benchmark, lambda condition: True)
    outcomes = results["rashomon"]["outcomes"]
    assert outcomes["unparsed"] > 0
    for condition, cell in ACCURACIES[benchmark].items():
        assert results["results"][f"{benchmark}_{condition}"]["acc,none"] == pytest.approx(cells[cell])
    counted = outcomes["labelled"] + (outcomes["unparsed"] if benchmark != "cmc-bench" else 0)
    assert sum(task["effective"] for task in results["n-samples"].values()) == counted
    (score,) = header["results"]["scores"]
    assert (score["scored_samples"], score["unscored_samples"]) == (counted, sum(outcomes.values()) - counted)
