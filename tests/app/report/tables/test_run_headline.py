"""The numbers of headlines and the accuracy of a run so far are those of the benchmark's own tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from app.annotation.human_baseline import read_people
from app.cli import run_cli
from app.compare.runs.cost_tables import accuracy as compared_accuracy
from app.compare.runs.view_reader import load_views
from app.engine.run_plan import create_run
from app.exports.export_input import score_of
from app.report.progress.running_accuracy import accuracy, overall_accuracy
from app.report.tables.run_headline import headline
from app.run_spec import BatchSpec
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.sample_lists import SampleFilter
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from benchmarks.answers import Answers, kind_of
from benchmarks.base import Benchmark
from benchmarks.plain import DATA_SETS
from benchmarks.registry import BUILT_IN, get_benchmark
from benchmarks.vocabulary import Estimate, Generation, Instance, Record, Verdict
from judges.judge_registry import get_judge
from tests.benchmarks.mmkc_bench.test_mmkc_tables import answer, joined
from tests.support.command import Rashomon
from tests.support.runs import Answering, instances, make_run, says

OFFICIAL = Path(__file__).resolve().parents[5] / "shared" / "data" / "clash" / "official"
OPEN_ENDED = OFFICIAL / "open_ended__llm_as_judge__internvl_chatv1.5_predictions.json"


@dataclass(frozen=True)
class Place:
    """A condition, the cell that has its share of right answers, and the instances that this cell counts."""

    benchmark: str
    condition: str
    table: str
    column: str
    strata: Mapping[str, str] = field(default_factory=dict)
    row: str = ""
    labels: tuple[str, ...] = ()
    """The labels that a judge gives there; empty for all."""

    def __str__(self) -> str:
        return f"{self.benchmark}, {self.condition}"


_CMC = {"aligned": "Aligned", "image-correct": "Img-Cor", "text-correct": "Txt-Cor", "both-wrong": "Both-Wr"}
_PASSAGES = {"passages": "3", "wrong": "2", "place": "first", "images": "0", "words": "0"}
_TYPE, _ER = {"type": "factual"}, {"type": "ER", "dataset": "ER"}
PLACES = [
    *(
        Place(name, condition, "main", column, _TYPE)
        for name in ("cmc-bench", "retrieval")
        for condition, column in _CMC.items()
    ),
    Place("clash", "mc-conflicting", "main", "Conflict"),
    Place("clash", "mc-original", "no-conflict", "No conflict", row=" / strict"),
    Place("clash", "open-conflicting", "open-ended", "Conflict"),
    Place("clash", "open-original", "no-conflict-open", "No conflict"),
    Place("mmkc-bench", "coarse-conflict", "detection", "ER Conflict", _ER, labels=("CORRECT", "WRONG")),
    Place("pope", "popular", "main", "Popular"),
    Place("okvqa", "image", "main", "OKVQA", {"type": "Other"}),
    Place("gqa", "image", "main", "GQA", {"type": "verify"}),
    Place("crosscheck-bench", "vanilla", "main", "BR", {"task": "BR", "form": "closed"}),
    Place("contra4", "media", "main", "All / All", {"kind": "2-random", "modalities": "audio+image"}),
    Place("k-passages", "no-conflict", "main", "No conflict", _PASSAGES),
    Place("k-passages", "majority-wrong", "main", "Majority wrong", _PASSAGES),
    *(Place(name, "conflict", "main", "Right", {"type": "object"}) for name in DATA_SETS),
]
every_place = pytest.mark.parametrize("place", PLACES, ids=str)


def judge_of(benchmark: Benchmark) -> str:
    return get_judge(benchmark.judges[0]).id


def records_of(place: Place, benchmark: Benchmark) -> list[Record]:
    """Return answers with every label, several of them where the tables count all, and with every other outcome."""
    judge = judge_of(benchmark)
    labelled = [Verdict(judge, "labelled", label) for label in (place.labels or benchmark.labels)]
    labelled += labelled[:1] * 2
    if benchmark.counts_flags:
        labelled += [Verdict(judge, "labelled", "CONFLICT", flags=("CONFLICT", "IMAGE"))] * 3
        labelled += [Verdict(judge, "labelled", "IMAGE", flags=("IMAGE", "TEXT"))]
    unlabelled = [*[Verdict(judge, "unparsed")] * 4, *[Verdict(judge, "undecided")] * 2, Verdict(judge, "judge-failed")]
    verdicts = [*labelled, *unlabelled, None, None, None]
    records = []
    for number, verdict in enumerate(verdicts):
        strata = {**place.strata, "instance": f"e{number}"}
        references = {"answer": ("yes",), "gold": ("A",), "options": ("A", "B")}
        name = f"{number}/{place.condition}"
        instance = Instance(name, str(number), place.condition, "Is it?", (), references, strata)
        generation = Generation(f"{name}#0", "an answer", "stop")
        if verdict is not None and verdict.status == "unparsed":
            generation = Generation(f"{name}#0", "", "stop")
        if number == len(verdicts) - 1:
            generation = Generation(f"{name}#0", "", "error", error="it broke")
        answers = () if number == len(verdicts) - 2 else (generation,)
        records.append(Record(instance, answers, {} if verdict is None else {judge: verdict}))
    return records


def table_cell(place: Place, benchmark: Benchmark, records: list[Record]) -> Estimate:
    """Return the cell of the benchmark's own tables."""
    tables = benchmark.tables({"m": Answers.of(records, benchmark)}, judge_of(benchmark), resamples=20, seed=0)
    (table,) = (table for table in tables if table.name == place.table)
    cell = dict(zip(table.columns, dict(table.rows)[f"m{place.row}"], strict=True))[place.column]
    assert isinstance(cell, Estimate)
    return cell


def stored_run(workspace: Workspace, benchmark: Benchmark, records: list[Record]) -> Path:
    """Return a run whose answers and verdicts are those of ``records``."""
    (spec,) = BatchSpec(benchmark=benchmark.name, model=("policy:always-image",), name="r").runs()

    def fill(store: RunStore) -> None:
        store.use_engine({"engine": "policy", "model": "m", "versions": {}})
        store.commit(
            [
                NewAnswer(ordinal, record.instance.condition, 0, "d", record.answer, True, (*record.verdicts.values(),))
                for ordinal, record in enumerate(records)
                if record.answer is not None
            ]
        )

    workspace.make()
    create_run(workspace, spec, workspace.runs_folder / "r", {}, [r.instance for r in records], data=None, fill=fill)
    return workspace.runs_folder / "r"


def test_every_benchmark_is_compared_with_its_tables() -> None:
    assert {place.benchmark for place in PLACES} == set(BUILT_IN)


@every_place
def test_a_headline_has_the_number_of_the_benchmarks_own_table(place: Place) -> None:
    benchmark = get_benchmark(place.benchmark)
    records = records_of(place, benchmark)
    cell = table_cell(place, benchmark, records)
    first, *_ = headline("m", Answers.of(records, benchmark), judge_of(benchmark), benchmark)
    assert 0 < (cell.value or 0) < 1
    assert f"of {cell.n} " in first
    assert f"({cell.value:.1%}, " in first


@every_place
def test_an_accuracy_so_far_is_that_of_the_benchmarks_own_table(tmp_path: Path, place: Place) -> None:
    benchmark = get_benchmark(place.benchmark)
    records = records_of(place, benchmark)
    cell = table_cell(place, benchmark, records)
    folder = stored_run(Workspace(tmp_path / "w"), benchmark, records)
    summary = read_summary(folder)
    (progress,) = (p for p in summary.progress if p.done)
    for so_far in (accuracy(progress, summary), overall_accuracy(summary)):
        assert so_far.n == cell.n
        assert so_far.value == pytest.approx(cell.value)
    with RunStore.open(folder) as store:
        assert store.counted()[1] == {
            (row["condition"], row["judge"]): row for row in store._counters().judged.values()
        }
        store.retract(judge_of(benchmark))
        assert not store.progress()[0].judged


@pytest.mark.parametrize(
    "place",
    # A comparison has one label an answer, and counts those that are wholly right.
    [place for place in PLACES if place.benchmark != "okvqa" and not place.condition.endswith("-original")],
    ids=str,
)
def test_a_comparison_has_the_accuracy_of_the_benchmarks_own_table(tmp_path: Path, place: Place) -> None:
    benchmark = get_benchmark(place.benchmark)
    records = records_of(place, benchmark)
    cell = table_cell(place, benchmark, records)
    views = load_views([stored_run(Workspace(tmp_path / "w"), benchmark, records)])
    compared = compared_accuracy(views.runs[0], views)
    assert compared.n == cell.n
    assert compared.value == pytest.approx(cell.value)


@every_place
def test_a_human_baseline_has_the_number_of_the_benchmarks_own_table(tmp_path: Path, place: Place) -> None:
    benchmark = get_benchmark(place.benchmark)
    if benchmark.has_partial_scores:
        pytest.skip("a person's answer is right or wrong")
    records = records_of(place, benchmark)
    cell = table_cell(place, benchmark, records)
    (person,) = read_people([stored_run(Workspace(tmp_path / "w"), benchmark, records)], benchmark, None)
    assert len(person.right) == cell.n
    assert sum(person.right.values()) / cell.n == pytest.approx(cell.value)


@every_place
def test_exported_scores_average_to_the_number_of_the_benchmarks_own_table(place: Place) -> None:
    benchmark = get_benchmark(place.benchmark)
    records = records_of(place, benchmark)
    cell = table_cell(place, benchmark, records)
    scores = [score for record in records if (score := score_of(benchmark, judge_of(benchmark), record)) is not None]
    assert len(scores) == cell.n
    assert sum(scores) / len(scores) == pytest.approx(cell.value)


def test_samples_that_are_right_are_those_that_the_tables_count_as_right(tmp_path: Path) -> None:
    (place,) = (place for place in PLACES if place.condition == "open-original")
    benchmark = get_benchmark("clash")
    records = records_of(place, benchmark)
    cell = table_cell(place, benchmark, records)
    with RunStore.read(stored_run(Workspace(tmp_path / "w"), benchmark, records)) as store:
        right = store.sample_ordinals(SampleFilter(judges=(judge_of(benchmark),), outcomes=("right",)))
    assert len(right) / cell.n == pytest.approx(cell.value)


def test_behaviour_under_conflict_is_counted_as_in_the_table() -> None:
    place, benchmark = Place("clash", "open-conflicting", "open-ended", "Incorrect"), get_benchmark("clash")
    wrong = [
        record
        for record in records_of(place, benchmark)
        if not benchmark.counted_score(kind_of(record, benchmark), judge_of(benchmark))
    ]
    cell = table_cell(place, benchmark, wrong)
    text = " ".join(headline("m", Answers.of(wrong, benchmark), judge_of(benchmark), benchmark))
    assert f"says what is none of these in {round((cell.value or 0) * cell.n)} of {cell.n} answers" in text


def test_an_answer_that_cannot_be_compared_with_the_models_own_is_in_no_number(tmp_path: Path) -> None:
    benchmark = get_benchmark("mmkc-bench")
    replies = {"a": ("A", "A"), "b": ("A", "A"), "c": ("A", "B"), "already": ("B", "B"), "unparsed": ("who knows", "A")}
    records = joined(
        answer("ER", name, condition, reply)
        for name, pair in replies.items()
        for condition, reply in zip(("original-mc", "context-memory-mc"), pair, strict=True)
    )
    answers = Answers.of(records, benchmark)
    main = benchmark.tables({"m": answers}, "own-answer@3", resamples=20, seed=0)[0]
    cell = dict(main.rows)["m / Context-Memory / OAR"][0]
    assert isinstance(cell, Estimate)
    assert cell.n == 3
    views = load_views([stored_run(Workspace(tmp_path / "w"), benchmark, records)])
    outcomes = [item.outcome for item in views.runs[0].answers.values() if item.condition == "context-memory-mc"]
    assert sorted(outcomes) == ["COUNTER", "ORIGINAL", "ORIGINAL", "already the counter answer", "own answer unparsed"]
    assert "keeps to its own answer in 2 of 3 answers (67%)" in " ".join(
        headline("m", answers, "own-answer@3", benchmark)
    )


@pytest.mark.skipif(not OPEN_ENDED.is_file(), reason="the published predictions are not beside the project")
def test_published_answers_have_the_numbers_of_their_table(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("import", OPEN_ENDED, "--benchmark", "clash", "--format", "published", "--model", "m", "--name", "m")
    shown = rashomon.run("show", "m", "--table", "open-ended-all").stdout
    (row,) = (line.split()[2:] for line in shown.splitlines() if line.startswith("m (imported)"))
    sentences = rashomon.run("show", "m").stdout.splitlines()[1]
    assert row[:3] == ["18.74", "22.64", "55.50"]
    assert "right on 240 of 1281 answers (18.7%" in sentences
    assert "follows the text in 711 of 1281 answers (56%)" in sentences


def test_the_first_line_of_show_names_what_does_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def first_line(name: str, answering: Answering, **options: Any) -> str:
        make_run(Workspace(tmp_path), name, instances(6), answering, **options)
        assert run_cli(["--workspace", str(tmp_path), "show", name]) == 0
        return capsys.readouterr().out.splitlines()[0]

    def fails(instance: Instance) -> Generation:
        return Generation(f"{instance.id}#0", "", "error", error="the server is gone")

    def long_winded(instance: Instance) -> Generation:
        return replace(says("The value may be 12, but")(instance), finish_reason="length", completion_tokens=64)

    def some(instance: Instance) -> Generation:
        return fails(instance) if instance.condition == "aligned" else says("")(instance)

    assert first_line("good", says("12")).endswith(", 36 of 36 answered")
    assert first_line("gone", fails).endswith(", 36 of 36 asked, 0 with an answer that counts: 36 in error")
    assert "0 with an answer that counts: 30 without an answer, 6 in error" in first_line("mixed", some)
    undecided = first_line("doubt", says("12"), undecided=lambda i: i.condition == "aligned")
    assert "30 with an answer that counts: 6 undecided by the judge" in undecided
    failed = first_line("failed", says("12"), failing=lambda i: i.condition == "aligned")
    assert "30 with an answer that counts: 6 not labelled by the judge" in failed
    assert "; 36 cut off at the limit of 256 tokens" in first_line("long", long_winded)
