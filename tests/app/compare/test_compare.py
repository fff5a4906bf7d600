"""Comparisons of runs: differences, flips, agreement, cost, the paper's rows, and warnings where runs do not match."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from app.compare.comparison_tables import Comparison, compare, coverage_warnings
from app.compare.differences.label_flips import changes_table, flipped_table, flips_table
from app.compare.differences.metric_differences import differences_table
from app.compare.runs.run_cost import RunCost
from app.compare.runs.run_pairs import RunPair
from app.compare.runs.run_view import RunView
from app.compare.runs.spec_diff import difference_warnings, unquantised_model
from app.figures.comparison_figures import comparison_figures
from app.json_output.comparison_json import compare_result
from app.json_output.json_envelope import plain
from app.report.tables.latex_tables import to_latex
from app.report.tables.run_tables import tables_of
from app.report.tables.table_rendering import print_table, to_csv, to_markdown
from app.store.run_references import PublishedRow
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from assets.demo.recipe.quantise import quantise
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.stats.paired_tests import holm
from benchmarks.vocabulary import Cell, Estimate, Generation, Instance, Table
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import CONDITIONS, RIGHT, WRONG, answered, side, sides
from tests.support.old_runs import sealed
from tests.support.runs import instances, make_run, says
from tests.support.saved_page import read_saved_page

POLICIES = ("always-image", "always-text", "random")
EXAMPLES = 12
PREDICTIONS = ROOT.parent / "shared/data/clash/official/multiple_choice__gemini-2.5-flash-lite_predictions.json"


@pytest.fixture(scope="module")
def demo_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a run of each policy on the demo's charts, and one of fewer examples."""
    home = Workspace(tmp_path_factory.mktemp("compared") / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    for policy in POLICIES:
        answered(home, policy, f"policy:{policy}", EXAMPLES)
    answered(home, "few", "policy:random", 4)
    return home.path


@pytest.fixture
def workspace(demo_runs: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may change."""
    shutil.copytree(demo_runs, tmp_path / "workspace")
    return tmp_path / "workspace"


def named(comparison: Comparison, name: str) -> Table:
    (table,) = [table for table in comparison.tables if table.name == name]
    return table


def row(table: Table, label: str) -> dict[str, Cell]:
    return dict(zip(table.columns, dict(table.rows)[label], strict=True))


def value(cell: Cell) -> float | None:
    assert isinstance(cell, Estimate)
    return cell.value


def runs(workspace: Path, *names: str) -> list[Path]:
    return [workspace / "runs" / name for name in names]


def labels(**by_example: str) -> dict[tuple[str, str], str]:
    """``a="IMAGE TEXT"``: example a's labels under image-correct and text-correct; - is an instance that is not there."""
    conditions = ("image-correct", "text-correct")
    return {
        (example, condition): label
        for example, outcomes in by_example.items()
        for condition, label in zip(conditions, outcomes.split(), strict=True)
        if label != "-"
    }


def pair(first: RunView, second: RunView) -> RunPair:
    return RunPair(first, second, sides(first).label_metrics, 200, 0)


# --- figures and differences ---------------------------------------------------------------------


@pytest.mark.slow
def test_each_runs_figures_are_those_that_show_prints(demo_runs: Path) -> None:
    comparison = compare(runs(demo_runs, *POLICIES))
    (main,) = tables_of(runs(demo_runs, *POLICIES), only="main", published=False)
    ours = named(comparison, "values")
    assert ours.columns == main.columns
    for (label, cells), (shown, expected) in zip(ours.rows, main.rows, strict=True):
        assert label == shown
        for cell, other in zip(cells, expected, strict=True):
            assert isinstance(cell, Estimate)
            assert isinstance(other, Estimate)
            assert (cell.value, cell.low, cell.high, cell.n) == (other.value, other.low, other.high, other.n)


def test_differences_are_over_pairs_and_tested(demo_runs: Path) -> None:
    comparison = compare(runs(demo_runs, "always-image", "always-text"))
    differences = named(comparison, "differences")
    cells = row(differences, "policy:always-text / Img-Cor")
    n = cells["n"]
    assert isinstance(n, int)
    assert (value(cells["baseline"]), value(cells["run"]), value(cells["difference"])) == (1, 0, -1)
    assert (cells["only baseline"], cells["only run"]) == (n, 0)
    assert value(cells["p"]) == pytest.approx(2 * 0.5**n)  # McNemar: all of n pairs to one side
    # MPB Txt is 1 - MPB Img: one hypothesis, so one test less, and one corrected p.
    names = [label.rpartition(" / ")[2] for label, _ in differences.rows]
    columns = {
        name: [value(cells[i]) for i in (6, 7)] for name, (_, cells) in zip(names, differences.rows, strict=True)
    }
    assert columns["MPB Img"] == columns.pop("MPB Txt")
    assert holm([p for p, _ in columns.values()]) == [corrected for _, corrected in columns.values()]
    mfr = row(differences, "policy:always-text / MFR")
    assert (value(mfr["difference"]), value(mfr["p"])) == (0, 1)
    assert mfr["only baseline"] == mfr["only run"] == n
    preference = row(differences, "policy:always-text / MPB Img")
    assert preference["only baseline"] is None
    assert value(preference["difference"]) == -1
    assert 0 < (value(preference["p"]) or 1) < 0.002  # by the interval, since the examples borrow pictures of others


def test_a_difference_beyond_one_has_an_interval_on_both_sides() -> None:
    """ΔAcc goes from -1 to 1, and its difference from -2 to 2."""
    answers = [(n, c) for n in range(60) for c in CONDITIONS]
    # The first is right on nine of ten without a conflict, and on one of ten with one; the second the other way round.
    first, second = (
        {
            (f"e{n}", c): (RIGHT if ((n * 7 + i) % 10 > 0) == ((c == "aligned") == (i == 0)) else WRONG)[c]
            for n, c in answers
        }
        for i in range(2)
    )
    both = pair(side("a", first), side("b", second))
    difference = both.compare(both.label_metrics.of["ΔAcc"]).difference
    assert difference.value is not None
    assert difference.low is not None
    assert difference.high is not None
    assert abs(difference.value) == pytest.approx(1.6)
    assert difference.low < difference.value - 0.05
    assert difference.value + 0.05 < difference.high


def test_naming_figures_makes_the_family_smaller(demo_runs: Path) -> None:
    comparison = compare(runs(demo_runs, "always-image", "random", "always-text"), metrics=["mfr", "Img-Cor"])
    assert named(comparison, "values").columns == ("MFR", "Img-Cor")
    assert len(named(comparison, "differences").rows) == 4
    assert any("corrected for 4 comparisons of all runs" in note for note in named(comparison, "differences").notes)
    with pytest.raises(SpecError, match="did you mean 'MFR'"):
        compare(runs(demo_runs, "always-image", "random"), metrics=["MFRR"])


def test_the_baseline_can_be_another_than_the_first(demo_runs: Path) -> None:
    (baseline,) = runs(demo_runs, "always-text")
    comparison = compare(runs(demo_runs, "always-image", "random"), baseline=baseline)
    assert [side.name for side in comparison.views.runs] == ["always-text", "always-image", "random"]
    assert {pair.first.name for pair in comparison.pairs} == {"always-text"}


def test_more_than_one_run_or_row_is_needed(demo_runs: Path) -> None:
    with pytest.raises(SpecError, match="one run cannot be compared"):
        compare(runs(demo_runs, "random"))
    with pytest.raises(SpecError, match="no run of yours"):
        compare([PublishedRow("Qwen3-VL-4B")])
    with pytest.raises(StoreError, match="is not a run"):
        compare(runs(demo_runs, "random", "nowhere"))


# --- flips and agreement -------------------------------------------------------------------------


def test_flips_sum_up_and_every_instance_behind_them_is_named(demo_runs: Path) -> None:
    comparison = compare(runs(demo_runs, "always-image", "random", "always-text"), instances=True)
    flips, flipped = named(comparison, "flips"), named(comparison, "flipped")
    flips_json = plain(compare_result(comparison, (), ()))["flips"]
    shared = {len(pair.shared) for pair in comparison.pairs}
    for entry in flips_json:
        label = f"policy:{entry['run']}"
        of_run = {
            name.removeprefix(f"{label} / "): row(flips, name)
            for name, _ in flips.rows
            if name.startswith(f"{label} /")
        }
        for was, cells in of_run.items():
            counts = [count for now, count in cells.items() if now != "all"]
            assert sum(int(str(count)) for count in counts) == cells["all"], was
        for column in flips.columns:
            each_row = [int(str(cells[column])) for was, cells in of_run.items() if was != "all"]
            assert sum(each_row) == of_run["all"][column]
        assert {of_run["all"]["all"]} == shared
        for cell in entry["cells"]:
            assert len(cell["instances"]) == cell["count"] == of_run[cell["before"]][cell["after"]]
            assert cell["before"] != cell["after"]
        assert sum(cell["count"] for cell in entry["cells"]) == sum(cells[0] == label for _, cells in flipped.rows)
    assert named(comparison, "flips").rows[-1][1][-1] == 1 * shared.pop()


def test_what_has_no_label_flips_too_and_is_never_counted_as_one() -> None:
    first = side("a", labels(x="IMAGE TEXT", y="IMAGE error", z="TEXT IMAGE"))
    second = side("b", labels(x="TEXT unparsed", y="IMAGE TEXT", z="- IMAGE"))
    both = pair(first, second)
    table = flips_table([both], sides(first, second))
    assert table.columns == ("IMAGE", "TEXT", "unparsed", "error", "all")
    assert row(table, "b / TEXT") == {"IMAGE": 0, "TEXT": 0, "unparsed": 1, "error": 0, "all": 1}
    assert row(table, "b / error") == {"IMAGE": 0, "TEXT": 1, "unparsed": 0, "error": 0, "all": 1}
    assert row(table, "b / all")["all"] == 5
    flipped = flipped_table([both])
    assert [(label, cells[2:4]) for label, cells in flipped.rows] == [
        ("x/image-correct", ("IMAGE", "TEXT")),
        ("x/text-correct", ("TEXT", "unparsed")),
        ("y/text-correct", ("error", "TEXT")),
    ]
    changes = changes_table([both], sides(first, second))
    cells = row(changes, "b / all")
    assert (cells["shared"], cells["both labelled"], cells["right to wrong"], cells["wrong to right"]) == (5, 3, 1, 0)
    assert value(cells["same label"]) == pytest.approx(2 / 3)


def test_kappa_is_cohens() -> None:
    # statsmodels 0.15.0: cohens_kappa([[20, 5], [10, 15]]).kappa
    cells = [("IMAGE", "IMAGE", 20), ("IMAGE", "TEXT", 5), ("TEXT", "IMAGE", 10), ("TEXT", "TEXT", 15)]
    was = [first for first, _, count in cells for _ in range(count)]
    now = [second for _, second, count in cells for _ in range(count)]
    first = side("a", {(str(i), "image-correct"): label for i, label in enumerate(was)})
    second = side("b", {(str(i), "image-correct"): label for i, label in enumerate(now)})
    changes = row(changes_table([pair(first, second)], sides(first, second)), "b / image-correct")
    assert value(changes["kappa"]) == pytest.approx(0.4)
    assert value(changes["same label"]) == pytest.approx(0.7)


def test_one_cell_of_the_flips_is_listed_by_its_name() -> None:
    first = side("a", labels(x="IMAGE TEXT", y="IMAGE error", z="TEXT IMAGE"))
    second = side("b", labels(x="TEXT unparsed", y="IMAGE TEXT", z="- IMAGE"))
    both = pair(first, second)

    def listed(*cells: tuple[str, str]) -> list[str]:
        return [instance for instance, _ in flipped_table([both], cells).rows]

    assert listed(("IMAGE", "TEXT")) == ["x/image-correct"]
    assert listed(("", "TEXT")) == ["x/image-correct", "y/text-correct"]
    assert listed(("TEXT", ""), ("error", "TEXT")) == ["x/text-correct", "y/text-correct"]
    assert listed(("IMAGE", "IMAGE")) == [], "what is the same has not flipped"
    assert flipped_table([both]).notes == ("3 of 5 shared instances.",)


def test_a_cell_is_named_by_labels_in_any_case_and_misspelt_ones_are_told(demo_runs: Path) -> None:
    folders = runs(demo_runs, "always-image", "random")
    count = row(named(compare(folders), "flips"), "policy:random / IMAGE")["TEXT"]
    assert len(named(compare(folders, cells=["image:text"]), "flipped").rows) == count
    with pytest.raises(SpecError, match="has no label 'IMAG'; did you mean 'IMAGE'"):
        compare(folders, cells=["IMAG:TEXT"])
    for cell in ("IMAGE", ":", ""):
        with pytest.raises(SpecError, match="is no cell; name two labels as in IMAGE:TEXT"):
            compare(folders, cells=[cell])


def test_a_run_is_not_compared_with_itself(demo_runs: Path) -> None:
    (folder,) = runs(demo_runs, "random")
    for twice in (
        [folder, folder],
        [folder, *runs(demo_runs, "always-text"), folder.parent / ".." / "runs" / "random"],
    ):
        with pytest.raises(SpecError, match="random is named twice"):
            compare(twice)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_comparison_is_written_as_tables_figures_and_a_page(demo_runs: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(demo_runs.parent)
    formats = ("--format", "csv,md,latex,html,svg", "--out", str(tmp_path))
    output = rashomon.run("compare", "always-image", "random", "few", *formats).stdout
    assert output.startswith(f"wrote {tmp_path}: ")
    with (tmp_path / "differences.csv").open(newline="") as lines:
        rows = {line["row"]: line for line in csv.DictReader(lines)}
    comparison = compare(runs(demo_runs, "always-image", "random", "few"))
    for label, cells in named(comparison, "differences").rows:
        assert float(rows[label]["difference"] or "nan") == pytest.approx(value(cells[2]) or 0.0, nan_ok=True)
    warning = next(warning for warning in comparison.warnings if "differences rest on those" in warning)
    overview = read_saved_page((tmp_path / "comparison.html").read_text("utf-8")).overview
    document = (tmp_path / "comparison.tex").read_text("utf-8")
    assert warning in overview["warnings"]
    assert r"\item " in document
    for words in ("Differences", "Which label became which", "What was run"):
        assert any(table["title"].startswith(words) for table in overview["comparison"])
        assert words in document
        assert words in (tmp_path / "comparison.md").read_text("utf-8")
    assert len(overview["pairs"]) == 2 == len(list(tmp_path.glob("flips-*.svg"))), "a matrix for each pair"
    assert not list(tmp_path.glob("memory.*")), "no policy tells its memory"
    assert "there is no format 'htm'" in rashomon.run("compare", "random", "few", "--format", "htm", code=2).stderr


def test_quality_is_drawn_against_memory_and_time(demo_runs: Path) -> None:
    costly = [
        replace(run, cost=RunCost(10, 10, seconds, peak_memory=size))
        for run, seconds, size in zip(
            compare(runs(demo_runs, "always-image", "random")).views.runs,
            (5.0, 2.0),
            (9 * 10**9, 3 * 10**9),
            strict=True,
        )
    ]
    comparison = compare(runs(demo_runs, "always-image", "random"), metrics=["MFR"])
    comparison = replace(comparison, views=replace(comparison.views, runs=tuple(costly)))
    drawn = {name: figure for name, _, figure in comparison_figures(comparison, width="column")}
    assert list(drawn) == ["flips", "memory", "speed"]
    for name, axis, places in (("memory", "peak memory, GB", [9.0, 3.0]), ("speed", "seconds per answer", [0.5, 0.2])):
        axes: Any = drawn[name].axes[0]
        assert (axes.get_xlabel(), axes.get_ylabel()) == (axis, "MFR")
        marks = [line for line in axes.lines if line.get_marker() not in ("None", "")]
        assert [float(line.get_xdata()[0]) for line in marks] == places


# --- what does not match -------------------------------------------------------------------------


def test_runs_without_a_shared_instance_are_shown_and_nothing_is_tested() -> None:
    first, second = side("a", labels(x="IMAGE TEXT")), side("b", labels(y="IMAGE TEXT"))
    table = differences_table([pair(first, second)], ["Img-Cor", "MPB Img"])
    for _, cells in table.rows:
        assert cells[3] == 0
        for cell in (*cells[:3], *cells[6:]):
            assert isinstance(cell, Estimate)
            assert (cell.value, cell.reason) == (None, "the two runs share no instance")
    assert any(
        "share no instance, so no difference can be tested" in warning
        for warning in coverage_warnings(sides(first, second))
    )
    assert [cells[-1] for label, cells in flips_table([pair(first, second)], sides(first, second)).rows] == [0]


def test_a_run_of_few_of_the_instances_is_compared_on_those(demo_runs: Path) -> None:
    comparison = compare(runs(demo_runs, "always-image", "few"))
    assert any("share" in warning and "differences rest on those" in warning for warning in comparison.warnings)
    assert any("choice" not in warning and "limit" in warning for warning in comparison.warnings)
    n = row(
        named(comparison, "differences"),
        "policy:random / Img-Cor",
    )["n"]
    assert n == 4


def test_a_run_that_the_judge_has_not_labelled_is_named_with_what_to_type(workspace: Path) -> None:
    with sealed(workspace / "runs" / "random") as database:
        database.execute("DELETE FROM verdict")
        database.execute("DELETE FROM judged")
    comparison = compare(runs(workspace, "always-image", "random"))
    assert any(
        "match@4 has not labelled policy:random" in warning and "judge random --judge match" in warning
        for warning in comparison.warnings
    )
    cells = row(named(comparison, "differences"), "policy:random / Img-Cor")
    assert value(cells["difference"]) is None
    with pytest.raises(SpecError, match="no judge 'somebody' has labelled here"):
        compare(runs(workspace, "always-image", "random"), judge="somebody")


def test_errors_and_what_is_pending_are_counted_by_run(workspace: Path) -> None:
    with sealed(workspace / "runs" / "random") as database:
        database.execute("UPDATE generation SET finish_reason = 'error', error = 'told to' WHERE instance < 3")
        database.execute(
            "DELETE FROM verdict WHERE generation IN (SELECT id FROM generation WHERE instance BETWEEN 3 AND 6)"
        )
    comparison = compare(runs(workspace, "always-image", "random"))
    assert any("7 of its" in warning and "3 error, 4 pending" in warning for warning in comparison.warnings)
    flips = named(comparison, "flips")
    assert (row(flips, "policy:random / all")["error"], row(flips, "policy:random / all")["pending"]) == (3, 4)


def test_runs_of_several_benchmarks_are_refused(workspace: Path) -> None:
    change_spec(workspace / "runs" / "random", benchmark="clash")
    with pytest.raises(SpecError, match="several benchmarks"):
        compare(runs(workspace, "always-image", "random"))


def change_spec(run: Path, **changes: Any) -> None:
    with RunStore.open(run) as store:
        store.set_meta("spec", {**store.meta("spec"), **changes})


def test_hostile_names_and_answers_stay_text(workspace: Path) -> None:
    evil = "policy:\x1b[31m[red]<td><script>alert(1)\u202e=1+1"
    change_spec(workspace / "runs" / "random", model=evil)
    with sealed(workspace / "runs" / "random") as database:
        database.execute("UPDATE generation SET text = ?", ("\x1b]52;c;x\x07 <b>\u202e $x$ \\input{/etc/passwd}",))
    comparison = compare(runs(workspace, "always-image", "random"), instances=True)
    out = io.StringIO()
    for table in comparison.tables:
        print_table(table, Console(file=out, width=200, force_terminal=False))
        latex, text = to_latex(table), to_markdown(table) + to_csv(table)
        assert not {"\x1b", "\x07", "\u202e"} & set(latex + text)
        assert "<script>" not in to_markdown(table)
        assert "\\input{" not in latex
    output = out.getvalue()
    assert not {"\x1b", "\x07", "\u202e"} & set(output)
    assert "\\x1b[31m[red]" in "".join(output.split())


# --- what is being compared ----------------------------------------------------------------------

IDENTITY = {
    "model": "m",
    "weights digest": "a" * 64,
    "quantisation": "bf16",
    "prompt set": "paper",
    "max tokens": 256,
    "temperature": 0.0,
    "device": "metal",
    "version of mlx": "0.32",
    "data digest": "d" * 64,
    "limit": None,
}


def run(name: str, **identity: Any) -> RunView:
    view = side(name, labels(x="IMAGE TEXT"), identity={**IDENTITY, "model": name, **identity})
    return replace(view, spec={**view.spec, "prompt_set": identity.get("prompt set", "paper")})


def test_what_is_compared_is_no_warning_and_everything_else_is_named() -> None:
    assert (
        difference_warnings([run("X-bf16"), run("X-4bit", **{"weights digest": "b" * 64, "quantisation": "4-bit g64"})])
        == []
    )
    assert difference_warnings([run("X"), run("X", **{"prompt set": "conflict-aware"})]) == []
    warnings = difference_warnings([run("X"), run("Y", **{"max tokens": 64, "version of mlx": "0.33", "limit": 50})])
    assert warnings == [
        "The runs differ in more than the model: max tokens (256: X; 64: Y).",
        "The runs differ in more than the model: version of mlx (0.32: X; 0.33: Y).",
        "The runs differ in more than the model: limit (none: X; 50: Y).",
    ]
    other = replace(run("X", **{"prompt set": "b", "temperature": 1.0}), label="X (b)")
    assert difference_warnings([run("X"), other]) == [
        "The runs differ in more than the prompt set: temperature (0.0: X; 1.0: X (b))."
    ]
    assert difference_warnings([run("X"), run("X")]) == []


def test_another_model_in_another_quantisation_is_two_differences() -> None:
    warnings = difference_warnings([run("X-bf16"), run("Y-4bit", quantisation="4-bit g64")])
    assert warnings == ["Both the models and their quantisations differ: bf16: X-bf16; 4-bit g64: Y-4bit."]


def test_prompts_that_differ_under_one_name_and_speeds_of_two_machines_are_said() -> None:
    first, second = run("X"), run("Y")
    other = replace(second, answers={key: answer._replace(prompt=1) for key, answer in second.answers.items()})
    assert difference_warnings([first, other]) == [
        "2 of the 2 instances that X and Y share have different prompts or pictures."
    ]
    chips = [({"needs_device": True, "machine": {"chip": chip}},) for chip in ("Apple M2", "Apple M4")]
    warnings = difference_warnings([replace(first, engines=chips[0]), replace(second, engines=chips[1])])
    assert warnings == ["Speeds were measured on different machines: Apple M2: X; Apple M4: Y."]


@pytest.mark.parametrize(
    ("model", "called"),
    [
        ("mlx-community/Qwen3-VL-4B-Instruct-4bit", "Qwen3-VL-4B-Instruct"),
        ("/models/Qwen3-VL-4B-Instruct-bf16", "Qwen3-VL-4B-Instruct"),
        ("org/gemma-3n-E2B-it-mxfp4", "gemma-3n-E2B-it"),
        ("org/LFM2.5-VL-1.6B-6bit-DWQ", "LFM2.5-VL-1.6B"),
        ("org/Qwen2.5-VL-7B", "Qwen2.5-VL-7B"),
        ("4bit", "4bit"),
    ],
)
def test_a_model_is_called_the_same_in_every_quantisation(model: str, called: str) -> None:
    demo_runs = side("x", {})
    assert unquantised_model(replace(demo_runs, spec={**demo_runs.spec, "model": model})) == called


def test_quantisations_are_grouped_by_model_and_compared_with_the_largest(workspace: Path) -> None:
    names = {"always-image": "org/A-4bit", "always-text": "org/A-bf16", "random": "org/B-8bit"}
    for name, model in names.items():
        change_spec(workspace / "runs" / name, model=model)
        with RunStore.open(workspace / "runs" / name) as store:
            bits = model.rpartition("-")[2]
            store.set_meta("identity", {**store.meta("identity"), "model": model, "quantisation": bits})
            store.use_engine({"engine": "mlx-vlm", "weights_bytes": {"4bit": 1, "8bit": 2, "bf16": 4}[bits] * 10**9})
    comparison = compare(runs(workspace, *names), group_by="quantization")
    assert [(pair.first.label, pair.second.label) for pair in comparison.pairs] == [("A-bf16", "A-4bit")]
    table = named(comparison, "tradeoff")
    assert [label for label, _ in table.rows] == ["A / bf16", "A / 4bit", "B / 8bit"]
    assert [value(row(table, label)["size on disk, GB"]) for label, _ in table.rows] == [4, 1, 2]
    assert row(table, "A / bf16")["difference"] is None
    assert value(row(table, "A / 4bit")["difference"]) == 0  # always-image and always-text are as often right
    with pytest.raises(SpecError, match="grouped by 'colour'"):
        compare(runs(workspace, *names), group_by="colour")


def test_costs_leave_out_what_no_engine_told() -> None:
    cost = RunCost(answers=4, timed=2, seconds=3.0, decode_s=2.0, decoded=50, peak_memory=3 * 10**9)
    assert (cost.seconds_per_answer, cost.tokens_per_second) == (1.5, 25)
    assert (RunCost(answers=3).seconds_per_answer, RunCost(answers=3).tokens_per_second) == (None, None)


# --- the paper's rows ----------------------------------------------------------------------------


def of_charts(folder: Path) -> Path:
    """Return a run of the policy always-image over ChartQA's charts, which a paper's rows are about, too."""

    def answer(instance: Instance) -> Generation:
        return says(next(iter(instance.references.values()))[0])(instance)

    return make_run(Workspace(folder), "charts", instances(EXAMPLES), answer)


def test_a_row_of_the_papers_stands_beside_with_how_comparable_it_is(tmp_path: Path) -> None:
    comparison = compare([of_charts(tmp_path), PublishedRow("qwen3-vl-4b")])
    assert not comparison.pairs
    table = named(comparison, "published")
    cells = row(table, "policy:always-image / main / Img-Cor / Qwen3-VL-4B")
    assert (value(cells["ours"]), value(cells["the paper's"]), cells["inside ours"]) == (1, 0.409, "no")
    assert value(cells["difference"]) == pytest.approx(1 - 0.409)
    assert cells["n, the paper's"] == 942
    assert "policy:always-image / labels / both-wrong / ABSTAIN / Qwen3-VL-4B" in dict(table.rows)
    notes = "\n".join(table.notes)
    for word in (
        "Model: ours",
        "Rows: ours",
        f"{EXAMPLES} examples",
        "942 examples",
        "Prompt: ours paper",
        "gpt-5-mini",
        "match@4",
    ):
        assert word in notes
    with pytest.raises(SpecError, match="did you mean 'Qwen3-VL-4B'"):
        compare([of_charts(tmp_path / "again"), PublishedRow("Qwen3-VL-4")])


def test_published_rows_can_be_narrowed_to_a_figure(tmp_path: Path) -> None:
    comparison = compare([of_charts(tmp_path), PublishedRow("Qwen3-VL-4B")], metrics=["MFR"])
    assert [label for label, _ in named(comparison, "published").rows] == [
        "policy:always-image / main / MFR / Qwen3-VL-4B"
    ]


@pytest.mark.skipif(not PREDICTIONS.is_file(), reason="the published predictions are not beside the project")
def test_published_predictions_stand_beside_their_own_row(tmp_path: Path) -> None:
    rashomon, model = Rashomon(tmp_path), "Gemini 2.5 Flash Lite"
    rashomon.run(
        *("import", PREDICTIONS, "--benchmark", "clash", "--format", "published", "--model", model, "--name", "theirs")
    )
    comparison = compare([*runs(rashomon.workspace, "theirs"), PublishedRow(model)])
    main = [cells for label, cells in named(comparison, "published").rows if " / main / " in label]
    assert len(main) == 5
    assert {cells[3] for cells in main} == {"yes"}  # their own answers, read by the same rule
    assert any(note.startswith("Prompt: ours official") for note in named(comparison, "published").notes)


# --- the command ---------------------------------------------------------------------------------


def test_the_command_tells_it_in_words_and_as_json(demo_runs: Path) -> None:
    rashomon = Rashomon(demo_runs.parent)
    output = rashomon.run("compare", "always-image", "few", "--metric", "MFR", "--flips", "--all").stdout
    for word in (
        "! ",
        "Differences",
        "Which label became which",
        "Instances whose label is another",
        "Memory and speed",
    ):
        assert word in output
    parsed = rashomon.json("compare", "always-image", "random")
    assert [table["name"] for table in parsed["tables"]] == [
        *("values", "transitions", "differences", "changes", "flips", "abstention-differences", "cost")
    ]
    assert parsed["flips"][0]["cells"]
    words = " ".join(rashomon.run("compare", "always-image", "random").stdout.split())
    assert parsed["headlines"]
    assert all(" ".join(line.split()) in words for line in (*parsed["headlines"], *parsed["warnings"]))
    assert "did you mean" in rashomon.run("compare", "always-image", "randon", code=2).stderr
    assert "one run cannot be compared" in rashomon.run("compare", "random", code=2).stderr


# --- a real model in three quantisations ---------------------------------------------------------


@pytest.mark.slow
def test_the_demos_model_in_three_quantisations(tmp_path: Path) -> None:
    demo = ROOT / "assets" / "demo"
    quantise(demo / "model-bf16", tmp_path / "model-8bit", bits=8)
    models = (demo / "model-4bit", tmp_path / "model-8bit", demo / "model-bf16")
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--source", f"rows={demo / 'held_out' / 'cmc-bench'}")
    for model in models:
        rashomon.run(
            *("--batch", "--benchmark", "cmc-bench", "--model", model, "--name", model.name),
            *("--limit", "12", "--max-tokens", "24"),
        )
    comparison = compare(runs(rashomon.workspace, *(model.name for model in models)), group_by="quantization")
    assert comparison.warnings == ()
    table = named(comparison, "tradeoff")
    assert [label for label, _ in table.rows] == ["model / bf16", "model / 8-bit g64", "model / 4-bit g64"]
    sizes = [value(row(table, label)["size on disk, GB"]) for label, _ in table.rows]
    assert sizes == sorted(sizes, key=lambda size: -(size or 0))
    for label, _ in table.rows:
        cells = row(table, label)
        for column in ("tokens per second", "seconds per answer", "peak memory, GB"):
            assert (value(cells[column]) or 0) > 0
    kappa = [value(cells[3]) for label, cells in named(comparison, "changes").rows if label.endswith("/ all")]
    assert all((agreement or 0) > 0.9 for agreement in kappa)  # the quantisations hardly change a label
    spec = rashomon.run("show", "model-4bit", "--spec").stdout
    assert "4-bit g64" in spec
    assert "machine:" in spec
