"""Headlines of a comparison: what differs, and whether by more than chance, in a sentence or two a pair of runs."""

from __future__ import annotations

from app.compare.cost import accuracy_difference, right
from app.compare.non_inferiority import ERROR, points
from app.compare.pairs import RunPair
from app.compare.tables import Comparison
from app.report.competence import listed
from benchmarks.base import Cell, Estimate, Table

_NAMED = 4
"""The most figures of a pair that are named."""


def headlines(comparison: Comparison) -> list[str]:
    """Say for each pair how far its accuracies are apart and which figures differ, and how the paper's rows compare."""
    tables = {table.name: table for table in comparison.tables}
    sentences = (
        [_of_pair(pair, comparison, tables["differences"]) for pair in comparison.pairs]
        if "differences" in tables
        else []
    )
    if "tradeoff" in tables and not comparison.pairs:
        sentences.append("No two of these runs are quantisations of one model, so none is compared with another.")
    if "published" in tables:
        sentences.append(_beside_paper(tables["published"]))
    return [line for line in sentences if line]


def _of_pair(pair: RunPair, comparison: Comparison, differences: Table) -> str:
    first, second = pair.first.label, pair.second.label
    sentence = ""
    apart = accuracy_difference(pair, comparison.sides)
    if not comparison.metrics and apart.value is not None and apart.low is not None and apart.high is not None:
        shares = (pair.counts * right(comparison.sides)).sum((0, 2, 3)) / apart.n
        sure = "" if apart.low > 0 or apart.high < 0 else ", which chance may bring"
        sentence = (
            f"{second} is right on {shares[1]:.1%} of the {apart.n} answers that both have labelled, {first} on {shares[0]:.1%}: "
            f"{points(apart.value, sign=True)} points ({points(apart.low, sign=True)} to {points(apart.high, sign=True)} at "
            f"95%){sure}. "
        )
    rows = [(label.removeprefix(f"{second} / "), cells) for label, cells in differences.rows if _is(label, second)]
    p, size = differences.columns.index("p (Holm)"), differences.columns.index("difference")
    tested = [(name, cells) for name, cells in rows if _value(cells[p]) is not None]
    differ = [(name, _value(cells[size]) or 0.0) for name, cells in tested if (_value(cells[p]) or 0.0) <= ERROR]
    if not tested:
        return sentence or f"Nothing between {first} and {second} can be tested: no answer is labelled in both."
    if not differ:
        none = "The figure does not differ" if len(tested) == 1 else f"None of the {len(tested)} figures differs"
        return f"{sentence}{none} by more than chance may bring (Holm)."
    differ.sort(key=lambda pair: -abs(pair[1]))
    named = [f"{name} ({value:+.3f})" for name, value in differ[:_NAMED]]
    more = [f"{len(differ) - _NAMED} more"] if len(differ) > _NAMED else []
    verb = "differs" if len(differ) == 1 else "differ"
    which = listed([*named, *more])
    return f"{sentence}Of {len(tested)} figures {len(differ)} {verb} by more than chance may bring (Holm): {which}."


def _is(row: str, run: str) -> bool:
    return row.startswith(f"{run} / ")


def _beside_paper(table: Table) -> str:
    """Count the paper's figures that ours differ from by more than chance may bring."""
    place = table.columns.index("difference")
    apart = [cells[place] for _, cells in table.rows if _value(cells[place]) is not None]
    known = [cell for cell in apart if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None]
    differ = sum((cell.low or 0) > 0 or (cell.high or 0) < 0 for cell in known)
    if not apart:
        return ""
    rest = len(apart) - len(known)
    unknown = f" For {rest} more the paper gives no n or deviation to make an interval of." if rest and known else ""
    if not known:
        return "The paper gives no n or deviation, so whether a difference to it is more than chance cannot be said."
    return (
        f"The 95% interval of the difference to the paper is clear of 0 for {differ} of {len(known)} figures.{unknown}"
    )


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell, Estimate) else None
