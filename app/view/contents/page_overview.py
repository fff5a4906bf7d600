"""Results above the answers: the sentences and tables of ``show``, ``compare`` and ``recommend``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.compare.comparison_headline import pair_headlines, shared_headlines
from app.compare.comparison_tables import Comparison
from app.compare.differences.instance_comparison import Change
from app.compare.differences.label_flips import used_labels
from app.compare.differences.lost_and_gained import GAINED, LOSSES, LOST
from app.compare.fine_tuning.fine_tuning_verdict import MARGIN
from app.compare.pair_overview import PairOverview, pair_overviews
from app.compare.recommend.recommendation import Recommendation
from app.compare.result_cache import ResultCache
from app.json_output.tables_json import estimate_json
from app.report.runs.portable_facts import portable_message
from app.report.tables.remedy_advice import remedies_title
from app.report.tables.run_overview import lead_table, run_headlines, run_remedies
from app.report.tables.table_rendering import cell_text, missing_value_notes, points, points_interval
from app.text.text_escaping import clean
from app.view.contents.page_types import ConditionRow, Overview, Pair, PrintedCell, PrintedRow, PrintedTable, Section
from benchmarks.answer_behaviour import names_sources
from benchmarks.base import Benchmark
from benchmarks.errors import RashomonError
from benchmarks.vocabulary import Cell, Estimate, Table

_TURNS = {LOST: "right to wrong", GAINED: "wrong to right"}
"""The words for lost and gained where labels name no source."""
_PENDING = "pending"
_EXAMPLES = "How many examples decide"


def read_overview(
    cache: ResultCache,
    folders: Sequence[Path],
    judge: str | None,
    rule: str | None,
    numbers: Callable[[str], int],
    revision: int,
    *,
    margin: float = MARGIN,
    whole: bool = True,
) -> Overview:
    """Return the results of the runs in ``folders``, the first of which is the baseline; unless ``whole``, not the comparison.

    ``rule`` is what should win where sources disagree; ``margin`` is that of verdicts on fine-tuned models; ``numbers`` has the
    number of an instance on the page by its id. What cannot be computed is a problem or a warning in words.
    """
    try:
        overview = _of_runs(cache, folders, judge, rule, revision)
    except RashomonError as error:
        return Overview(revision=revision, problem=_message(error, folders))
    if len(folders) < 2:
        return overview
    if not whole:
        return replace(overview, complete=False)
    try:
        return _compared(overview, cache, folders, judge, rule, numbers, margin)
    except RashomonError as error:
        return replace(overview, warnings=(*overview.warnings, _message(error, folders)))


def _of_runs(
    cache: ResultCache, folders: Sequence[Path], judge: str | None, rule: str | None, revision: int
) -> Overview:
    """Return what ``show`` prints of the runs, and for a single one what would tell more."""
    inputs = cache.inputs(folders, judge)
    inputs = replace(inputs, trust=rule if names_sources(inputs.benchmark) else None)
    tables = cache.tables(folders, judge, inputs.trust)
    lead = lead_table(inputs, tables)
    if lead is not None:
        tables = sorted(tables, key=lambda table: table is not lead)
    following: dict[str, Sequence[str]] = {}
    if len(folders) == 1:
        following = {
            _EXAMPLES: _planned(cache, folders, judge, rule),
            remedies_title(): [*map(str, run_remedies(folders[0], inputs))],
        }
    return Overview(
        revision=revision,
        headlines=_cleaned(run_headlines(inputs, tables)),
        lead=tables[0].name if tables else None,
        tables=tuple(map(printed_table, tables)),
        next=_sections(following),
    )


def _compared(
    overview: Overview,
    cache: ResultCache,
    folders: Sequence[Path],
    judge: str | None,
    rule: str | None,
    numbers: Callable[[str], int],
    margin: float,
) -> Overview:
    """Return an overview with what ``compare`` and ``recommend`` print."""
    comparison = cache.comparison(folders, judge)
    tables = [*comparison.tables]
    recommendation: Recommendation | str
    try:
        recommendation = cache.recommendation(folders, judge, rule=rule)
        of_recommendation = (recommendation.table, recommendation.single_sources, recommendation.cost_ratios)
        tables += filter(None, of_recommendation)
        advice: dict[str, Sequence[str]] = {"": (recommendation.summary,), **recommendation.reasons}
        following: dict[str, Sequence[str]] = {**recommendation.open_questions}
    except RashomonError as error:
        recommendation = _message(error, folders)
        advice, following = {"": (recommendation,)}, {}
    overviews = pair_overviews(comparison, recommendation, margin)
    remarks = _cleaned(shared_headlines(comparison))
    return replace(
        overview,
        warnings=_cleaned(comparison.warnings),
        pairs=tuple(_pair(pair, comparison, numbers) for pair in overviews),
        remarks=tuple(line for line in remarks if line not in overview.headlines),
        comparison=tuple(map(printed_table, tables)),
        recommendation=_sections(advice),
        next=_sections({_EXAMPLES: _planned(cache, folders, judge, rule), **following}),
    )


def _planned(cache: ResultCache, folders: Sequence[Path], judge: str | None, rule: str | None) -> Sequence[str]:
    try:
        return (cache.planned_examples(folders, judge, rule),)
    except RashomonError:  # no answer counts, which other sentences say
        return ()


def _pair(overview: PairOverview, comparison: Comparison, numbers: Callable[[str], int]) -> Pair:
    benchmark = comparison.views.benchmark
    counts = {cell: count for cell, count in overview.label_counts.items() if _PENDING not in cell}
    labels = used_labels([counts], benchmark)
    tuning = filter(None, [overview.tuning_verdict])
    return Pair(
        run=comparison.views.runs.index(overview.pair.second),
        verdict=_cleaned([*tuning, *pair_headlines(overview.pair, comparison)]),
        conditions=tuple(
            ConditionRow(
                condition=clean(row.condition),
                difference=estimate_json(row.difference),
                points=points(row.difference.value),
                interval=points_interval(row.difference),
            )
            for row in overview.differences
        ),
        outcomes=_cleaned(labels),
        label_counts=tuple(tuple(counts.get((was, now), 0) for now in labels) for was in labels),
        changes={
            name: tuple(dict.fromkeys(numbers(change.instance) for change in changes))
            for name, changes in _changes(overview, benchmark).items()
        },
        meaning=LOSSES if overview.effects else "",
        lost=LOST if overview.effects else _TURNS[LOST],
        gained=GAINED if overview.effects else _TURNS[GAINED],
    )


def _changes(overview: PairOverview, benchmark: Benchmark) -> Mapping[str, Sequence[Change]]:
    """Return the answers lost, gained, and with another label; where labels name no source, a lost one was right."""
    flips = _answered(overview.flips)
    changes: dict[str, list[Change]] = {}
    for change in flips:
        changes.setdefault(clean(f"{change.was}>{change.now}"), []).append(change)
    effects = {name: _answered(lost_or_gained) for name, lost_or_gained in overview.effects.items()}
    return {**(effects or _turns(flips, benchmark)), "differs": flips, **changes}


def _answered(changes: Iterable[Change]) -> list[Change]:
    """Return those of the changes that both runs have answered."""
    return [change for change in changes if _PENDING not in (change.was, change.now)]


def _turns(flips: Sequence[Change], benchmark: Benchmark) -> Mapping[str, Sequence[Change]]:
    """Return the answers of which one label is right and the other wrong."""
    turns: dict[str, list[Change]] = {LOST: [], GAINED: []}
    for change in flips:
        if {change.was, change.now} <= set(benchmark.labels):
            was_right, is_right = (benchmark.correct(change.condition, label) for label in (change.was, change.now))
            if was_right != is_right:
                turns[GAINED if is_right else LOST].append(change)
    return turns


def printed_table(table: Table) -> PrintedTable:
    """Return a table as text."""
    return PrintedTable(
        name=table.name,
        title=clean(table.title),
        columns=_cleaned(table.columns),
        rows=tuple(
            PrintedRow(label=clean(label), cells=tuple(_printed_cell(cell, table.percent) for cell in cells))
            for label, cells in table.rows
        ),
        notes=_cleaned((*table.notes, *missing_value_notes(table))),
    )


def _printed_cell(cell: Cell, percent: bool) -> PrintedCell:
    text = clean(cell_text(cell, percent), newlines=True)
    return PrintedCell(text=text, estimate=estimate_json(cell) if isinstance(cell, Estimate) else None)


def _sections(sections: Mapping[str, Sequence[str]]) -> tuple[Section, ...]:
    return tuple(Section(title=clean(title), lines=_cleaned(lines)) for title, lines in sections.items() if lines)


def _cleaned(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(clean, lines))


def _message(error: RashomonError, folders: Sequence[Path]) -> str:
    """Return an error in words, without folders of this machine."""
    text = str(error)
    for folder in folders:
        text = text.replace(str(folder), folder.name)
    return clean(portable_message(text, folders[0].parent.parent))
