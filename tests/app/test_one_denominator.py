"""Every surface counts the answers of a run as its benchmark declares, whatever came of them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.compare.decision.target_metric import target_metric
from app.compare.decision.target_shares import target_shares
from app.compare.recommend.recommendation import recommend
from app.compare.runs.cost_tables import accuracy as compared_accuracy
from app.compare.runs.decision_scores import decided_score
from app.compare.runs.view_reader import load_views
from app.exports.export_input import score_of
from app.report.progress.running_accuracy import overall_accuracy
from app.report.tables.run_headline import headline, score_under
from app.report.tables.run_tables import tables_of
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.sample_lists import SampleFilter, SampleOutcome
from app.store.stored_answers import read_answers
from app.store.workspace import Workspace
from benchmarks.answers import kind_of
from benchmarks.base import Benchmark
from benchmarks.failure_table import OUTCOMES
from benchmarks.registry import BUILT_IN, get_benchmark
from benchmarks.vocabulary import Estimate, Record, Table
from judges.judge_registry import get_judge
from tests.support.every_outcome import every_outcome_run

every_benchmark = pytest.mark.parametrize("name", BUILT_IN)


@dataclass(frozen=True)
class Counted:
    """The numbers that a person counts in a run by hand: the scores of the answers that count, and the outcomes of all."""

    scores: list[float]
    outcomes: Counter[str]
    decided_scores: list[float]
    """The scores in a decision of the answers whose score is known, under conditions that count."""
    decided: Mapping[str, float | None]
    """The score in a decision of each instance under a condition that counts; None where it is not known."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """Two runs of a benchmark with every outcome."""
    workspace = Workspace(tmp_path_factory.mktemp("every") / "w")
    made: dict[str, tuple[Path, Path]] = {}

    def of(name: str) -> tuple[Path, Path]:
        if name not in made:
            made[name] = (
                every_outcome_run(workspace, name, f"{name}-1", seed=1),
                every_outcome_run(workspace, name, f"{name}-2", seed=2),
            )
        return made[name]

    return of


def judge_of(benchmark: Benchmark) -> str:
    return get_judge(benchmark.judges[0]).id


def records_of(folder: Path) -> list[Record]:
    with RunStore.read(folder) as store:
        return list(store.records())


def outcome(record: Record, judge: str) -> str:
    """The outcome of a record, from what is stored alone."""
    if record.answer is None:
        return "pending"
    if record.answer.finish_reason == "error":
        return "error"
    return record.verdicts[judge].status if judge in record.verdicts else "pending"


def counted(folder: Path, benchmark: Benchmark) -> Counted:
    """Count the answers of a run one by one."""
    judge, conditions = judge_of(benchmark), benchmark.counted_conditions
    scores: list[float] = []
    decided_scores: list[float] = []
    decided: dict[str, float | None] = {}
    outcomes = Counter[str]()
    for record in records_of(folder):
        condition, came = record.instance.condition, outcome(record, judge)
        outcomes[came] += 1
        score: float | None = None
        single: float | None = None
        if came == "labelled":
            verdict = record.verdicts[judge]
            labels = (verdict.flags if benchmark.counts_flags else ()) or (str(verdict.label),)
            score = max(benchmark.score(condition, label) for label in labels)
            is_right = benchmark.correct(condition, str(verdict.label)) and verdict.label not in benchmark.inventions
            single = float(is_right or verdict.behaviour == "right")
        elif came == "unparsed" and benchmark.unparsed_label is not None:
            score = benchmark.score(condition, benchmark.unparsed_label)
        if condition in conditions and score is not None:
            scores.append(score)
        is_cut_off = record.answer is not None and record.answer.finish_reason == "length"
        no_answer = came == "unparsed" or (is_cut_off and came in ("labelled", "undecided", "judge-failed"))
        decided[record.instance.id] = 0.0 if no_answer else single
        if condition in conditions and (no_answer or score is not None):
            invents = came == "labelled" and record.verdicts[judge].label in benchmark.inventions
            is_right = invents and record.verdicts[judge].behaviour == "right"
            decided_scores.append(0.0 if no_answer or (invents and not is_right) else score or 0.0)
    return Counted(scores, outcomes, decided_scores, decided)


def tables_by_name(folder: Path) -> dict[str, Table]:
    return {table.name: table for table in tables_of([folder], published=False)}


def check_headline(folder: Path, benchmark: Benchmark) -> None:
    """The first sentence has the number of right answers, of those that count, and of those that do not."""
    with RunStore.read(folder) as store:
        answers = read_answers(store, benchmark)
    by_hand = counted(folder, benchmark)
    sentences = headline("m", answers, judge_of(benchmark), benchmark)
    numbers = re.search(r"(?:is right on|scores) ([\d.]+) of (\d+) (?:answers|points)", sentences[0])
    if by_hand.scores:
        assert numbers is not None
        assert float(numbers[1]) == pytest.approx(sum(by_hand.scores))
        assert int(numbers[2]) == len(by_hand.scores)
        overall = benchmark.overall(answers, judge_of(benchmark))
        assert all(f"{metric.value:.2%}" in sentences[0] for metric in overall.values() if metric.value is not None)
    missing = sum(int(n) for s in sentences for n in re.findall(r"(\d+) of \d+ answers do not count", s))
    missing += sum(int(n) for s in sentences for n in re.findall(r"(\d+) without an answer count as wrong", s))
    left_out = sum(bool(benchmark.left_out(kind_of(record, benchmark))) for record in records_of(folder))
    without_label = by_hand.outcomes.total() - by_hand.outcomes["labelled"]
    assert missing == without_label if not left_out else without_label <= missing <= without_label + left_out


@every_benchmark
def test_a_headline_counts_what_the_declaration_says(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    for folder in runs(name):
        check_headline(folder, get_benchmark(name))


@every_benchmark
def test_running_accuracy_and_exports_count_the_same(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    benchmark = get_benchmark(name)
    for folder in runs(name):
        by_hand, summary = counted(folder, benchmark), read_summary(folder)
        if by_hand.scores:
            so_far = overall_accuracy(summary)
            assert so_far.n == len(by_hand.scores)
            assert so_far.value == pytest.approx(sum(by_hand.scores) / len(by_hand.scores))
        exported = [
            score
            for record in records_of(folder)
            if record.instance.condition in benchmark.counted_conditions
            and (score := score_of(benchmark, judge_of(benchmark), record)) is not None
        ]
        assert exported == pytest.approx(by_hand.scores)


@every_benchmark
def test_samples_have_the_outcomes_of_the_failures_table(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    benchmark = get_benchmark(name)
    judge = judge_of(benchmark)
    for folder in runs(name):
        outcomes = counted(folder, benchmark).outcomes
        table = tables_by_name(folder)["failures"]
        for came in OUTCOMES:
            place = table.columns.index(came)
            assert sum(cells[place] for _, cells in table.rows) == outcomes[came]  # type: ignore[misc]
        with RunStore.read(folder) as store:
            unlabelled: tuple[SampleOutcome, ...] = ("unparsed", "undecided", "judge-failed", "error", "pending")
            for without in unlabelled:
                rows = store.sample_ordinals(SampleFilter(judges=(judge,), outcomes=(without,)))
                assert len(rows) == outcomes[without], without


@every_benchmark
def test_a_comparison_counts_what_the_declaration_says(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    benchmark = get_benchmark(name)
    if benchmark.has_partial_scores or benchmark.counts_flags:
        pytest.skip("a comparison has one label an answer, which is wholly right or wrong")
    folders = runs(name)
    views = load_views(folders)
    if set(views.label_metrics.conditions) != set(benchmark.counted_conditions):
        pytest.skip("it compares other conditions, too")
    for folder, view in zip(folders, views.runs, strict=True):
        by_hand, compared = counted(folder, benchmark), compared_accuracy(view, views)
        assert compared.n == len(by_hand.scores)
        assert compared.value == pytest.approx(sum(by_hand.scores) / len(by_hand.scores))


@every_benchmark
def test_a_decision_counts_no_answer_as_not_right(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    benchmark = get_benchmark(name)
    if not benchmark.counted_conditions:
        pytest.skip("no answer is right or wrong by itself")
    folders = runs(name)
    views = load_views(folders)
    shares = target_shares(views, target_metric(views, None))
    first, second = (counted(folder, benchmark).decided for folder in folders)
    used = {
        item
        for item, answer in views.runs[0].answers.items()
        if answer.condition in views.label_metrics.conditions
        and any(benchmark.correct(answer.condition, label) for label in benchmark.labels)
    }
    both = [(first[i], second[i]) for i in used if first[i] is not None and second[i] is not None]
    if benchmark.name == "mmkc-bench":
        pytest.skip("answers that are judged by others are left out, for reasons of their own")
    assert len(shares.group) == len(both)
    assert shares.shares.tolist() == pytest.approx([sum(column) / len(both) for column in zip(*both, strict=True)])
    text = " ".join(recommend(folders).advice[:1])
    assert "lacks" in text


@every_benchmark
def test_a_report_counts_as_its_decision_does(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    benchmark = get_benchmark(name)
    for folder in runs(name):
        with RunStore.read(folder) as store:
            answers = read_answers(store, benchmark)
        by_hand = counted(folder, benchmark).decided_scores
        share, total = score_under(benchmark.counted_conditions, answers, judge_of(benchmark), benchmark, decided_score)
        assert share.n == len(by_hand) > 0
        assert total == pytest.approx(sum(by_hand))


@every_benchmark
def test_values_lie_within_their_bounds(name: str, runs: Callable[[str], tuple[Path, Path]]) -> None:
    """The metrics of the answers that count, between their least and greatest values with the undecided ones."""
    benchmark = get_benchmark(name)
    metrics = benchmark.answer_metrics()
    if metrics is None:
        pytest.skip("it has no metrics of labels")
    compared = 0
    for folder in runs(name):
        bounds = tables_by_name(folder)["bounds"]
        values = {row: dict(zip(bounds.columns, cells, strict=True)) for row, cells in bounds.rows}
        least, greatest = (
            next(cells for row, cells in values.items() if row.endswith(end)) for end in ("least", "greatest")
        )
        main = tables_by_name(folder)["main"]
        for column, cell in zip(main.columns, main.rows[0][1], strict=True):
            if column in metrics.of and isinstance(cell, Estimate) and cell.value is not None:
                low, high = least[column], greatest[column]
                assert isinstance(low, Estimate)
                assert isinstance(high, Estimate)
                assert (low.value or 0) - 1e-9 <= cell.value <= (high.value or 0) + 1e-9, column
                compared += 1
    # The main tables of the others have columns of other names.
    assert compared or benchmark.name in ("clash", "crosscheck-bench", "contra4")


def test_the_check_finds_a_headline_that_counts_for_itself(
    runs: Callable[[str], tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = get_benchmark("crosscheck-bench")
    folder, _ = runs("crosscheck-bench")
    check_headline(folder, benchmark)

    def labelled_alone(*arguments: object) -> tuple[Estimate, float]:
        with monkeypatch.context() as patch:
            patch.setattr(type(benchmark), "unparsed_label", None)
            return score_under(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("app.report.tables.run_headline.score_under", labelled_alone)
    with pytest.raises(AssertionError):
        check_headline(folder, benchmark)


# --- no surface counts for itself ----------------------------------------------------------------

_APP = Path(__file__).resolve().parents[2] / "app"
_WITH_OUTCOMES = {
    "annotation/label_override.py": "stores a person's verdict",
    "annotation/human_baseline.py": "agreement between people, over the labels that both gave",
    "annotation/labelling_session.py": "stores a person's verdict",
    "commands/data_and_models/judges_check_command.py": "lists a judge's verdicts on the labelled set",
    "compare/runs/decision_scores.py": "declares how outcomes count in a decision",
    "compare/differences/label_flips.py": "pairs of labels",
    "compare/differences/instance_comparison.py": "displays a sample's label",
    "compare/runs/run_pairs.py": "declares which outcomes count as a label in a comparison",
    "compare/runs/view_reader.py": "names an answer's label or outcome",
    "compare/comparison_tables.py": "cells of flips that a user names",
    "engine/plugin_result_checks.py": "checks a plugin's verdict",
    "exports/report/report_limitations.py": "lists the outcomes that are no label",
    "exports/report/report_example_mistakes.py": "lists what answers do that are not right",
    "exports/inspect_export.py": "writes the number of each outcome",
    "parity/parity_tables.py": "the heading of a column",
    "report/tables/run_headline.py": "lists the outcomes that are no label",
    "store/integrity/row_digests.py": "the columns of a table",
    "store/integrity/stored_values.py": "checks a stored verdict",
    "store/judge_checks.py": "the verdicts of a judge that was examined",
    "store/sample_lists.py": "declares the outcomes that samples are filtered by",
    "store/stored_verdicts.py": "declares the counters of a run",
    "tui/theme.py": "the appearance of each outcome",
    "tui/widgets/answer_pair.py": "displays a sample's label",
    "view/contents/live_run.py": "names an answer's outcome",
}
"""The modules of ``app`` that may name the outcomes of answers, and for what."""
_OUTCOMES = ("labelled", "unparsed")
"""The outcomes of which a surface that counts for itself needs at least one."""


def _names_outcomes(source: str) -> bool:
    return any(isinstance(node, ast.Constant) and node.value in _OUTCOMES for node in ast.walk(ast.parse(source)))


def test_no_other_module_decides_which_answers_count() -> None:
    naming = {
        path.relative_to(_APP).as_posix() for path in _APP.rglob("*.py") if _names_outcomes(path.read_text("utf-8"))
    }
    assert naming == set(_WITH_OUTCOMES)


def test_the_search_finds_a_module_that_counts_labels() -> None:
    assert _names_outcomes('def share(kinds): return sum(kind.outcome("j") == "labelled" for kind in kinds)')
    assert not _names_outcomes('def share(kinds): return sum(benchmark.counted_score(kind, "j") for kind in kinds)')
