"""A paper's rows beside ours: the difference, whether our interval holds the paper's figure, and how comparable they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import NormalDist

from app.compare.run_view import RunView, RunViews
from app.report.published import published_cells, published_rows
from benchmarks.base import Cell, Decoding, Estimate, Table, did_you_mean
from benchmarks.errors import SpecError
from benchmarks.stats.intervals import difference_of, wilson, wilson_of_groups
from benchmarks.stats.paired_tests import share_of
from mlx_backends.registry import IMPORTED

PUBLISHED = "published:"
"""What a row of the paper's begins with where runs are named."""

_COLUMNS = ("ours", "the paper's", "difference", "inside ours", "n, ours", "n, the paper's")
_PART = " / "


def published_table(ours: Sequence[Table], sides: RunViews, rows: Sequence[str], columns: Sequence[str] = ()) -> Table:
    """Each run beside each of the paper's ``rows`` (a model's name), in every table of the paper that both have.

    ``ours`` are the runs' own tables. A model is the same however its name is spelled (``plain``): CLASH's tables have
    InternVL 1.5 and InternVL1.5. ``columns`` are the only ones that are wanted; all if empty, or where the paper has none of
    them. Raises SpecError where the paper has no such row.
    """
    theirs = {table.name: published_rows(table, sides.benchmark.name) for table in ours}
    cells = published_cells(sides.benchmark.name)
    known = dict.fromkeys(_split(cell["row"])[0] for cell in cells if "ours" in cell)
    if not known:
        raise SpecError(f"the paper of {sides.benchmark.name} has no row to compare with.")
    chosen = [_known(row, list(known)) for row in rows]
    wanted = set(columns) & {column for table in ours for column in table.columns}
    made: list[tuple[str, tuple[Cell, ...]]] = []
    for table in ours:
        for row in chosen:
            for side in sides.sides:
                groups = len({said.group for said in side.said.values()})
                made += [
                    (label, _cells(cell, paper, groups, is_share=_is_share(column, sides)))
                    for label, column, cell, paper in _beside(table, side.label, row, theirs[table.name], wanted)
                ]
    told = [] if made else [f"Nothing here stands in a table where the paper has {', '.join(chosen)}."]
    notes = (
        *told,
        "difference: ours less the paper's, of all answers of each, with the 95% interval for independent samples (Newcombe "
        "1998), made of our interval and of the paper's: the score interval by its n, as if its answers were independent, or its "
        "printed deviation. There is none where the paper gives neither (n is then empty), or the figure is no share of "
        "answers. inside ours: whether our 95% interval holds the paper's figure, which says nothing of the paper's own spread.",
        *comparability(sides, chosen),
    )
    return Table("published", f"Beside {sides.benchmark.paper}", _COLUMNS, tuple(made), notes)


def paper_models(ours: Sequence[Table], benchmark: str) -> list[str]:
    """The models of the paper's rows in those of its tables that are among ``ours``."""
    found = (row for table in ours for row, _ in published_rows(table, benchmark))
    return list(dict.fromkeys(_split(row)[0] for row in found))


def paper_columns(ours: Sequence[Table], sides: RunViews, rows: Sequence[str]) -> Table:
    """The same as :func:`published_table`, turned: a column for each run and for each of the paper's ``rows``.

    In percent where the tables are, without the differences.
    """
    chosen = [_known(row, paper_models(ours, sides.benchmark.name)) for row in rows]
    runs = [side.label for side in sides.sides]
    made: dict[str, dict[str, Cell]] = {}
    for table in ours:
        own = dict(table.rows)
        for name, cells in published_rows(table, sides.benchmark.name):
            spelled, rest = _split(name)
            model = next((each for each in chosen if plain(each) == plain(spelled)), None)
            for i, column in enumerate(table.columns):
                if model is not None and cells[i] is not None:
                    row = made.setdefault(_PART.join(part for part in (table.name, rest, column) if part), {})
                    row[model] = cells[i]
                    for run in runs:
                        label = f"{run}{_PART}{rest}" if rest else run
                        row[run] = own[label][i] if label in own else None
    columns = (*runs, *(f"{row} (paper)" for row in chosen))
    filled = tuple((label, tuple(row.get(each) for each in (*runs, *chosen))) for label, row in made.items())
    percent = bool(ours) and all(table.percent for table in ours if published_rows(table, sides.benchmark.name))
    return Table(
        "paper", f"Beside {sides.benchmark.paper}", columns, filled, tuple(comparability(sides, chosen)), percent
    )


def comparability(sides: RunViews, rows: Sequence[str]) -> list[str]:
    """How comparable runs and the paper's rows are: model, rows of data, prompt, judge and decoding, each named for both."""
    about = sides.benchmark
    models = ", ".join(
        f"{side.label} ({side.quantisation})" if side.quantisation else side.label for side in sides.sides
    )
    prompts = Counter(str(side.spec["prompt_set"]) for side in sides.sides)
    examples = "; ".join(f"{side.label}: {_examples(side)}" for side in sides.sides)
    return [
        f"Model: ours {models}; the paper's {', '.join(rows)}.",
        f"Rows: ours {examples}; the paper's rest on {about.paper_rows}.",
        f"Prompt: ours {', '.join(prompts)}; the paper's {about.paper_prompts}.",
        f"Judge: ours {sides.judge}; the paper's {about.paper_judge}.",
        f"Decoding: ours {', '.join(dict.fromkeys(_decoding(side) for side in sides.sides))}; the paper's "
        f"{about.paper_decoding}.",
    ]


def _examples(side: RunView) -> str:
    groups = len({said.group for said in side.said.values()})
    return f"{groups} examples, {len(side.said)} instances"


def _decoding(side: RunView) -> str:
    if str(side.spec["model"]).startswith(IMPORTED):
        return "not told (imported)"
    decoding = Decoding(**side.spec["decoding"])
    way = f"temperature {decoding.temperature:g}, top_p {decoding.top_p:g}" if decoding.temperature else "greedy"
    return f"{way}, {decoding.max_tokens} tokens"


def plain(name: str) -> str:
    """A name without what papers spell differently: capitals, spaces, hyphens."""
    return "".join(c for c in name.casefold() if c.isalnum() or c in ".*")


def _known(row: str, known: Sequence[str]) -> str:
    for name in known:
        if plain(name) == plain(row):
            return name
    raise SpecError(f"the paper has no row {row!r}; {did_you_mean(row, known)}")


def _split(row: str) -> tuple[str, str]:
    """A row of the paper's as its model and what stands behind it, a condition say."""
    model, _, rest = row.removesuffix(" (paper)").partition(_PART)
    return model, rest


def _beside(
    table: Table, run: str, row: str, theirs: Sequence[tuple[str, tuple[Estimate | None, ...]]], wanted: Collection[str]
) -> list[tuple[str, str, Estimate, Estimate]]:
    """Each cell of ours that the paper has too: the row's label, its column, ours and the paper's."""
    ours = {plain(label): (label, cells) for label, cells in table.rows}
    made: list[tuple[str, str, Estimate, Estimate]] = []
    for name, cells in theirs:
        model, rest = _split(name)
        if plain(model) != plain(row):
            continue
        beside = [found] if (found := ours.get(plain(f"{run}{_PART}{rest}" if rest else run))) else []
        if not rest and not beside:  # a row a condition: each of the run's
            beside = [each for each in table.rows if each[0].startswith(run + _PART)]
        for label, own in beside:
            for column, cell, paper in zip(table.columns, own, cells, strict=True):
                if wanted and column not in wanted:
                    continue
                if isinstance(cell, Estimate) and paper is not None and paper.value is not None:
                    parts = (run, table.name, label.removeprefix(run).removeprefix(_PART), column, model)
                    made.append((_PART.join(part for part in parts if part), column, cell, paper))
    return made


def _is_share(column: str, sides: RunViews) -> bool:
    """Return whether a column is a share of all answers, as far as the benchmark's figures tell."""
    figure = sides.figures.of.get(column)
    return figure is None or share_of(figure, sides.figures) is not None


def _cells(ours: Estimate, paper: Estimate, groups: int, *, is_share: bool) -> tuple[Cell, ...]:
    assert paper.value is not None
    n = paper.n or None
    if ours.value is None:
        return (ours, paper, Estimate(None, n=ours.n, reason=ours.reason), "n/a", ours.n, n)
    inside: str = "no interval"
    if ours.low is not None and ours.high is not None:
        inside = "yes" if ours.low <= paper.value <= ours.high else "no"
    difference = difference_of(_our_interval(ours, groups), _paper_interval(paper, is_share=is_share))
    difference = replace(difference, value=ours.value - paper.value, n=ours.n)
    return (ours, paper, difference, inside, ours.n, n)


def _our_interval(ours: Estimate, groups: int) -> Estimate:
    """Our estimate with its own interval; where all examples are alike, so that it has no width, with their score interval."""
    if ours.value is None or ours.low != ours.high or not 0 <= ours.value <= 1 or not ours.n:
        return ours
    examples = min(ours.n, groups)
    return wilson_of_groups([ours.value] * examples, [1] * examples)


def _paper_interval(paper: Estimate, *, is_share: bool) -> Estimate:
    """The paper's estimate with an interval by its n, where it is a share, or else by its printed deviation."""
    assert paper.value is not None
    if paper.n and is_share and 0 <= paper.value <= 1:
        score = wilson(round(paper.value * paper.n), paper.n)
        return Estimate(paper.value, score.low, score.high, paper.n)
    if paper.sd is not None:
        half = NormalDist().inv_cdf(0.975) * paper.sd
        return Estimate(paper.value, paper.value - half, paper.value + half, paper.n)
    return paper
