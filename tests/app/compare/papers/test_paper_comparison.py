"""A row of each paper compared with a run of its benchmark: difference, coverage by the interval, and comparability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from app.compare.comparison_tables import compare
from app.compare.papers.paper_comparison import normalised_name
from app.engine.answer_loop import AnswerLoop
from app.engine.run_plan import check_spec, plan_run
from app.papers.published_results import published_cells
from app.report.tables.run_tables import tables_of
from app.run_spec import BatchSpec
from app.store.run_references import PublishedRow
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Cell, Estimate, Table
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.models.host_machine import host_info
from mlx_backends.policy_engine import PolicyBackend
from tests.support.command import ROOT
from tests.support.data.clash import published_folder, published_row
from tests.support.data.pope import small_pope
from tests.support.data.small import original_chartqa

HELD_OUT = ROOT / "assets" / "demo" / "held_out"
SOURCES = {
    "mmkc-bench": ("published", HELD_OUT / "mmkc-bench"),
    "crosscheck-bench": ("products", ROOT / "assets" / "products"),
}
WRITTEN: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "cmc-bench": ("chartqa", original_chartqa),
    "clash": ("published", lambda place: published_folder(place, [published_row(n) for n in range(1, 15)])),
    "pope": ("pope", small_pope),
}
ANSWERS = {"pope": "policy:always-yes", "crosscheck-bench": "policy:always-yes"}
"""The policy that has something to say; elsewhere always-image."""
DECODED = {"crosscheck-bench": "Decoding: ours temperature 0.7, top_p 0.9, 512 tokens; the paper's temperature 0.7"}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {"": tmp_path_factory.mktemp("beside")}


def run_of(benchmark: str, homes: dict[str, Path], *conditions: str) -> Path:
    """Return a run of a policy on a small build of ``benchmark``, answered and judged in this process."""
    if benchmark in homes:
        return homes[benchmark]
    home = Workspace(homes[""] / benchmark)
    about = get_benchmark(benchmark)
    if benchmark in WRITTEN:
        name, write = WRITTEN[benchmark]
        source: tuple[str, Path] = (name, write(homes[""] / f"{benchmark}-source"))
    else:
        source = SOURCES[benchmark]
    about.build([(source[0], str(source[1]))], home.build_folder(benchmark), BuildOptions())
    model = ANSWERS.get(benchmark, "policy:always-image")
    (spec,) = BatchSpec(benchmark=benchmark, model=(model,), name="r", limit=12, conditions=conditions).runs()
    judge, backend = get_judge(about.judges[0]), PolicyBackend(model)
    assert isinstance(judge, FunctionJudge)
    with RunStore.open(plan_run(home, check_spec(home, spec)).folder) as store:
        store.use_engine({**asdict(backend.info), "machine": asdict(host_info())})
        AnswerLoop(store, backend, about.protocol(spec.to_decoding()), [judge], about).run()
        store.set_meta("state", {"state": "done"})
        homes[benchmark] = store.folder
    return homes[benchmark]


def beside(folder: Path, row: str) -> Table:
    (table,) = [table for table in compare([folder, PublishedRow(row)]).tables if table.name == "published"]
    return table


def printed(benchmark: str, table: str, row: str, column: str) -> float:
    (cell,) = [c for c in published_cells(benchmark) if (c["table"], c["row"], c["column"]) == (table, row, column)]
    return float(cell["value"])


def checked(cells: tuple[Cell, ...]) -> float:
    """Return the paper's value of a row, after checking that the row is consistent."""
    ours, paper, difference, inside = cells[:4]
    assert isinstance(ours, Estimate)
    assert isinstance(paper, Estimate)
    assert isinstance(difference, Estimate)
    assert paper.value is not None
    if ours.value is None:
        assert (difference.value, inside) == (None, "n/a")
    else:
        assert difference.value == pytest.approx(ours.value - paper.value)
        if ours.low is not None and ours.high is not None:
            assert inside == ("yes" if ours.low <= paper.value <= ours.high else "no")
    return paper.value


CASES = [
    ("clash", "InternVL 1.5", "main / Conflict / InternVL 1.5", ("Table 1", "InternVL 1.5", "Conflict")),
    ("clash", "internvl1.5", "open-ended-all / Text / InternVL1.5", ("Table 10", "InternVL1.5", "Text")),
    ("clash", "InternVL 1.5", "no-conflict / strict / Overall / InternVL1.5", ("Table 6", "InternVL1.5 / strict", "Overall")),
    ("mmkc-bench", "GPT-4o mini", "main / Context-Memory / OAR / EK / GPT-4o mini",
     ("Table 2", "GPT-4o mini / Context-Memory / OAR", "EK")),
    ("crosscheck-bench", "Human", "main / LD / Human", ("Table 1", "Human", "LD")),
    ("crosscheck-bench", "Qwen2.5VL-72B", "composition / BR drop / Qwen2.5-VL-72B", ()),
    ("pope", "mplug-owl-1-FT", "main / Popular / mPLUG-Owl-1-ft", ("Table 14", "mPLUG-Owl-1-ft", "Popular")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("benchmark", "row", "where", "cell"), CASES)
def test_each_benchmarks_run_stands_beside_its_papers_row(
    benchmark: str, row: str, where: str, cell: tuple[str, ...], homes: dict[str, Path]
) -> None:
    table = beside(run_of(benchmark, homes), row)
    rows = dict(table.rows)
    label = f"{ANSWERS.get(benchmark, 'policy:always-image')} / {where}"
    figures = {name: checked(cells) for name, cells in rows.items()}
    if cell:
        assert figures[label] == printed(benchmark, *cell)
    else:
        assert any(name.endswith(where.rsplit(" / ", 1)[1]) and " / composition / " in name for name in rows)
    for word in (
        "Model: ours",
        "Rows: ours",
        "Prompt: ours",
        "Judge: ours",
        DECODED.get(benchmark, "Decoding: ours greedy, 256 tokens"),
    ):
        assert any(note.startswith(word) for note in table.notes), word
    about = get_benchmark(benchmark)
    notes = "\n".join(table.notes)
    for theirs in (about.paper_rows, about.paper_prompts, about.paper_judge, about.paper_decoding):
        assert theirs in notes


def test_a_difference_has_an_interval_where_the_paper_tells_its_n_or_its_deviation(homes: dict[str, Path]) -> None:
    table = beside(run_of("cmc-bench", homes), "Qwen3-VL-4B")
    rows = {label.split(" / ")[2]: cells for label, cells in table.rows if " / main / " in label}
    for column, (ours, paper, difference, _, _, n) in rows.items():
        assert isinstance(ours, Estimate)
        assert isinstance(paper, Estimate)
        assert isinstance(difference, Estimate)
        if column in ("MPB Img", "MPB Txt", "ΔAcc"):  # no n, or no share of answers
            assert (difference.low, difference.high) == (None, None)
            continue
        assert n in (942, 2826)
        assert difference.value is not None
        assert difference.low is not None
        assert difference.high is not None
        assert difference.low < difference.value < difference.high, "also where all of our answers agree"
    clash = beside(run_of("clash", homes), "InternVL 1.5")
    (conflict,) = [cells for label, cells in clash.rows if " / main / Conflict / " in label]
    ours, paper, difference = conflict[:3]
    assert isinstance(difference, Estimate)
    assert isinstance(paper, Estimate)
    assert paper.sd is not None
    assert difference.low is not None
    assert any("independent samples (Newcombe 1998)" in note for note in clash.notes)


def test_a_printed_count_stands_beside_our_share(homes: dict[str, Path]) -> None:
    rows = dict(beside(run_of("cmc-bench", homes), "Qwen3-VL-4B").rows)
    paper, n = (rows["policy:always-image / labels / image-correct / TEXT / Qwen3-VL-4B"][i] for i in (1, 5))
    assert isinstance(paper, Estimate)
    assert (paper.value, n) == (350 / 942, 942)
    gap = rows["policy:always-image / gap / Txt-Cor less Img-Cor / Qwen3-VL-4B"]
    assert checked(gap) == -0.034


def test_a_row_of_a_strategy_stands_beside_each_of_the_runs_strategies(homes: dict[str, Path]) -> None:
    folder = run_of("crosscheck-bench", {"": homes[""] / "strategies"}, "vanilla", "cot")
    names = [label for label, _ in beside(folder, "CoT Prompting").rows]
    assert "policy:always-yes / interventions / cot / A7: Logic / CoT Prompting" in names
    assert "policy:always-yes / interventions / vanilla / A7: Logic / CoT Prompting" in names


def test_a_row_that_is_in_none_of_our_tables_is_said_so(homes: dict[str, Path]) -> None:
    table = beside(run_of("crosscheck-bench", homes), "CoT Prompting")
    assert table.rows == ()
    assert table.notes[0] == "No value of these runs is in a table where the paper has CoT Prompting."


def test_a_row_that_is_not_there_is_refused_with_the_nearest(homes: dict[str, Path]) -> None:
    with pytest.raises(SpecError, match="did you mean 'GPT-4o mini'"):
        beside(run_of("mmkc-bench", homes), "GPT-4o")


@pytest.mark.parametrize("benchmark", ["clash", "mmkc-bench", "crosscheck-bench", "pope"])
def test_shown_rows_of_the_paper_name_what_they_rest_on(benchmark: str, homes: dict[str, Path]) -> None:
    about = get_benchmark(benchmark)
    (main,) = tables_of([run_of(benchmark, homes)], only="main")
    assert any(label.endswith(" (paper)") for label, _ in main.rows)
    notes = "\n".join(main.notes)
    for theirs in (about.paper_rows, about.paper_prompts, about.paper_judge, "`rashomon compare RUN published:ROW`"):
        assert theirs in notes


def test_names_are_the_same_however_they_are_spelled() -> None:
    assert normalised_name("InternVL 1.5") == normalised_name("internvl-1.5") == normalised_name("InternVL1.5")
    assert normalised_name("Qwen2.5-VL-72B") == normalised_name("Qwen2.5VL-72B") != normalised_name("Qwen25VL-72B")
    assert normalised_name("BR*") != normalised_name("BR")
