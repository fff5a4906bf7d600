"""Names of likelihood runs in a comparison: the likeliest option where options are scored, else generated."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from app.compare.comparison_headline import headlines
from app.compare.comparison_tables import Comparison, compare
from app.engine.answer_loop import AnswerLoop
from app.engine.run_plan import check_spec, plan_run
from app.json_output.comparison_json import compare_result
from app.report.tables.table_rendering import to_markdown
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.models.host_machine import host_info
from mlx_backends.policy_engine import PolicyBackend
from tests.support.command import ROOT
from tests.support.data.clash import published_folder, published_row

LIKELIEST = "the likeliest option"
CHOICES, OPEN = ("mc-conflicting", "mc-original"), ("open-conflicting", "open-original")


def answered(home: Workspace, benchmark: str, name: str, model: str = "policy:always-image", **more: object) -> Path:
    """Return the folder of an answered run of a policy."""
    (spec,) = BatchSpec.model_validate({"benchmark": benchmark, "model": (model,), "name": name, **more}).runs()
    judge, backend = get_judge(get_benchmark(benchmark).judges[0]), PolicyBackend(model)
    assert isinstance(judge, FunctionJudge)
    folder = plan_run(home, check_spec(home, spec)).folder
    with RunStore.open(folder) as store:
        store.use_engine({**asdict(backend.info), "machine": asdict(host_info())})
        AnswerLoop(store, backend, spec.to_protocol(), [judge], get_benchmark(benchmark)).run()
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace with builds of CMC-Bench, which has open questions, and of CLASH, which has options, too."""
    home = Workspace(tmp_path_factory.mktemp("scored") / "workspace")
    rows = str(ROOT / "assets" / "demo" / "rows.csv")
    get_benchmark("cmc-bench").build([("rows", rows)], home.build_folder("cmc-bench"), BuildOptions())
    source = published_folder(home.path / "source", [published_row(number) for number in range(1, 5)])
    get_benchmark("clash").build([("published", str(source))], home.build_folder("clash"), BuildOptions())
    return home


def everything(comparison: Comparison) -> str:
    """Return all that a comparison prints."""
    return "\n".join([*headlines(comparison), *comparison.warnings, *map(to_markdown, comparison.tables)])


def protocols(comparison: Comparison) -> list[object]:
    """Return the protocols beside their gain and cost."""
    (table,) = [table for table in comparison.tables if table.name == "remedies"]
    return [cells[table.columns.index("protocol")] for _, cells in table.rows]


def test_generated_answers_are_not_the_likeliest_option(home: Workspace) -> None:
    plain = answered(home, "cmc-bench", "plain", limit=4)
    scored = answered(home, "cmc-bench", "scored", "policy:always-text", limit=4, score="likelihood")
    comparison = compare([plain, scored], resamples=50)
    assert any("protocol" in warning for warning in comparison.warnings)
    assert LIKELIEST not in everything(comparison)
    first, second = protocols(comparison)
    assert (first, second) == ("direct", "direct, generated with likelihoods")
    assert [run.protocol for run in compare_result(comparison, (), ()).runs] == [first, second]


def test_scored_options_are_the_likeliest_ones(home: Workspace) -> None:
    plain = answered(home, "clash", "mc-plain", conditions=CHOICES)
    scored = answered(home, "clash", "mc-scored", "policy:always-text", conditions=CHOICES, score="likelihood")
    comparison = compare([plain, scored], resamples=50)
    assert any(LIKELIEST in warning for warning in comparison.warnings)
    assert protocols(comparison) == ["direct", f"direct, {LIKELIEST}"]


def test_a_run_of_both_kinds_of_questions_is_called_both(home: Workspace) -> None:
    plain = answered(home, "clash", "all-plain")
    scored = answered(home, "clash", "all-scored", score="likelihood")
    open_scored = answered(home, "clash", "open-scored", conditions=OPEN, score="likelihood")
    comparison = compare([plain, scored], resamples=50)
    _, name = protocols(comparison)
    assert LIKELIEST in str(name)
    assert "generated" in str(name)
    # Runs of one protocol are of one protocol, whichever of its questions they have.
    same = compare([scored, open_scored], resamples=50)
    assert not [table for table in same.tables if table.name == "remedies"]
    assert not [warning for warning in same.warnings if "protocol" in warning]
