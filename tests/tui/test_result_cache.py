"""Tables, comparisons and exports as screens ask for them: computed once, turned with every figure kept, written or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.compare.comparison_tables import compare
from app.compare.differences.condition_differences import accuracy_by_condition
from app.compare.differences.instance_comparison import compare_instance, flips, read_excerpts, text_changes
from app.compare.result_cache import ResultCache
from app.compare.runs.run_pairs import RunPair
from app.compare.side_by_side import side_by_side_table
from app.exports.export_formats import DEFAULT_FORMATS, FORMAT_DESCRIPTIONS, FORMATS, export_runs
from app.report.tables.paper_rows import without_published
from app.report.tables.run_tables import tables_of
from app.store.run_references import PublishedRow
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import SpecError, StoreError, StoreFullError
from benchmarks.vocabulary import Estimate, Generation, Instance, Table, Verdict
from tests.support.full_disk import no_room_above
from tests.support.runs import instances, make_run, says


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


def mostly_text(instance: Instance) -> Generation:
    """Return the passage's value for two thirds of the examples, the picture's for the others."""
    number = int(instance.group[-4:])
    source = "text" if number % 3 and "text" in instance.references else "image"
    references = instance.references.get(source) or instance.references["text"]
    return says(references[0])(instance)


@pytest.fixture
def runs(workspace: Workspace) -> list[Path]:
    asked = instances(12)
    return [
        make_run(workspace, "pictures", asked, says("12"), model="policy:always-image"),
        make_run(workspace, "passages", asked, mostly_text, model="policy:always-text"),
        make_run(workspace, "silent", asked, says("I cannot say."), model="policy:always-abstain"),
    ]


def named(tables: tuple[Table, ...], name: str) -> Table:
    return next(table for table in tables if table.name == name)


def test_results_are_cached_until_a_run_changes(runs: list[Path]) -> None:
    results = ResultCache()
    first = results.tables(runs[:1])
    assert results.tables(runs[:1]) is first
    assert results.comparison(runs) is results.comparison(runs)
    assert results.recommendation(runs, margin=0.03) is results.recommendation(runs, margin=0.03)
    assert results.recommendation(runs, margin=0.5).decision.margin == 0.5
    with RunStore.open(runs[0]) as store:
        stored = store.answer_of("factual-0000/aligned")
        assert stored is not None
        store.add_verdicts([(stored[0], stored[1], Verdict("match@4", "labelled", "NEITHER"))])
    changed = results.tables(runs[:1])
    assert changed is not first
    with RunStore.open(runs[0]) as store:
        store.retract("match@4", instance="factual-0000/aligned")
    again = results.tables(runs[:1])
    assert again is not changed
    with RunStore.open(runs[0]) as store:
        store.repeat(["both-wrong"])
    assert results.tables(runs[:1]) is not again


def test_side_by_side_shows_the_figures_of_the_comparisons_own_tables(runs: list[Path]) -> None:
    comparison = compare(runs)
    turned = side_by_side_table(comparison)
    values, differences = named(comparison.tables, "values"), dict(named(comparison.tables, "differences").rows)
    labels = [label for label, _ in values.rows]
    assert turned.columns == (labels[0], labels[1], "difference", "p (Holm)", labels[2], "difference", "p (Holm)")
    count = len(values.columns)
    assert tuple(figure for figure, _ in turned.rows[:count]) == values.columns
    for i, (figure, cells) in enumerate(turned.rows[:count]):
        assert cells[0] == values.rows[0][1][i]
        for number, (label, own) in enumerate(values.rows[1:]):
            compared = differences[f"{label} / {figure}"]
            assert cells[1 + 3 * number : 4 + 3 * number] == (own[i], compared[2], compared[7])
    abstention = dict(named(comparison.tables, "abstention-differences").rows)
    for figure, cells in turned.rows[count:]:
        for number, label in enumerate(labels[1:]):
            compared = abstention[f"{label} / {figure}"]
            assert cells[1 + 3 * number : 4 + 3 * number] == (compared[1], compared[2], compared[7])
    assert len(abstention) == 2 * (len(turned.rows) - count) > 0


def test_the_papers_rows_as_columns_are_its_published_figures(runs: list[Path]) -> None:
    results = ResultCache()
    models = results.paper_models(runs)
    assert "Qwen3-VL-4B" in models
    table = results.paper(runs, None, ["Qwen3-VL-4B", "LFM2.5-VL-1.6B"])
    assert table.columns[-2:] == ("Qwen3-VL-4B (paper)", "LFM2.5-VL-1.6B (paper)")
    published = named(compare([runs[0], PublishedRow("Qwen3-VL-4B")]).tables, "published")
    rows = dict(table.rows)
    assert len(published.rows) > 5
    for label, (ours, paper, *_) in published.rows:
        where = label.removesuffix(" / Qwen3-VL-4B").partition(" / ")[2]
        assert (rows[where][0], rows[where][3]) == (ours, paper)


def test_tables_with_and_without_the_papers_rows_are_the_same_otherwise(runs: list[Path]) -> None:
    assert [without_published(table) for table in tables_of(runs)] == tables_of(runs, published=False)


def test_an_export_says_what_it_does_and_what_it_wrote(workspace: Workspace, runs: list[Path], tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    export = export_runs(
        workspace, runs, formats=DEFAULT_FORMATS, out=tmp_path / "out", step=lambda *step: steps.append(step)
    )
    assert [what for what, _, _ in steps] == [
        "reading the runs", *(f"making {form}" for form in DEFAULT_FORMATS), "writing", "done",
    ]  # fmt: skip
    assert steps[-1][1:] == (6, 6)
    sizes = {str(p.relative_to(export.folder)): p.stat().st_size for p in export.folder.rglob("*") if p.is_file()}
    assert dict(export.files) == sizes
    assert export.size == sum(sizes.values())
    assert set(FORMAT_DESCRIPTIONS) == set(FORMATS)


def test_a_full_disk_is_one_sentence_and_leaves_no_parts(
    workspace: Workspace, runs: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with no_room_above(10), pytest.raises(StoreFullError, match=r"^cannot write in .*; free some space") as full:
        export_runs(workspace, runs, formats=["md"], out=out)
    assert full.value.exit_code == 3
    assert list(out.iterdir()) == []


def test_what_cannot_be_written_is_refused_in_a_sentence(
    workspace: Workspace, runs: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="Not a directory"):
        export_runs(workspace, runs, formats=["md"], out=Path("/dev/null/out"))
    with pytest.raises(SpecError):
        export_runs(workspace, runs, formats=["md"], out=tmp_path / "a\0b")
    with pytest.raises(SpecError, match="names no format"):
        export_runs(workspace, runs, formats=[], out=tmp_path)


def test_flips_name_what_changed_and_both_answers_are_read_with_their_labels(
    workspace: Workspace, runs: list[Path]
) -> None:
    comparison = ResultCache().comparison(runs)
    pair = comparison.pairs[0]
    changed = flips(pair)
    assert {flip.instance for flip in changed} == {i for i in pair.shared if i not in same(pair)}
    counts = pair.flips()
    for (was, now), count in counts.items():
        assert len(flips(pair, was, now)) == count
        assert len(flips(pair, was)) == sum(n for (was_label, other), n in counts.items() if was_label == was != other)
    changed_flip = next(flip for flip in changed if flip.condition == "image-correct")
    read = compare_instance(workspace, runs, changed_flip.instance, comparison.views.judge)
    assert [summary.answer for summary in read.answers if summary] == ["12", "15", "I cannot say."]
    assert [summary.label for summary in read.answers if summary] == [changed_flip.was, changed_flip.now, "ABSTAIN"]
    assert read.instance.id == changed_flip.instance
    assert read.media == ()
    with pytest.raises(SpecError, match="none of these runs"):
        compare_instance(workspace, runs, "no-such", comparison.views.judge)


def test_changes_of_text_are_answers_with_the_same_label_and_other_words(workspace: Workspace) -> None:
    items = instances(3)

    def wordy(instance: Instance) -> Generation:
        text = (
            "<think>a while</think>12"
            if instance.group.endswith("1")
            else "It is 12."
            if instance.group.endswith("2")
            else "12"
        )
        return says(text)(instance)

    folders = [
        make_run(workspace, "short", items, says("12")),
        make_run(workspace, "wordy", items, wordy, model="policy:always-text"),
    ]
    results = ResultCache()
    pair = results.comparison(folders).pairs[0]
    assert flips(pair) == []
    changes = text_changes(pair)
    assert {change.instance for change in changes} == {item.id for item in items if item.group.endswith("2")}
    assert not any(change.is_flip for change in changes)
    excerpts = read_excerpts(pair, changes[::-1])
    assert {(entry.question, entry.first, entry.second) for entry in excerpts} == {
        ("How many trams run?", "12", "It is 12.")
    }
    assert results.text_changes(folders, None, 0) == changes


def test_differences_by_condition_are_paired_and_agree_with_the_metrics(runs: list[Path]) -> None:
    comparison = ResultCache().comparison(runs)
    differences = {table.name: table for table in comparison.tables}["differences"]
    by_metric = {label: cells[2] for label, cells in differences.rows}
    pair = comparison.pairs[0]
    rows = {row.condition: row.difference for row in accuracy_by_condition(pair, comparison.views)}
    asked = {answer.condition for answer in pair.first.answers.values()}
    assert list(rows) == [name for name in comparison.views.benchmark.conditions if name in asked]
    for condition, metric in (("aligned", "Aligned"), ("image-correct", "Img-Cor"), ("text-correct", "Txt-Cor")):
        expected = by_metric[f"{pair.second.label} / {metric}"]
        assert isinstance(expected, Estimate)
        value = rows[condition]
        assert value.value == pytest.approx(expected.value)
        assert value.n == expected.n
        assert [value.low, value.high] == pytest.approx([expected.low, expected.high], abs=0.1)


def same(pair: RunPair) -> set[str]:
    return {i for i in pair.shared if pair.first.answers[i].outcome == pair.second.answers[i].outcome}
