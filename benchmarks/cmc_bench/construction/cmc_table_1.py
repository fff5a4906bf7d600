"""Table 1 of the paper, for a build: examples and instances under the paper's four conditions, by type and by source."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.cmc_bench.cmc_constants import PAPER_CONDITIONS, TYPES
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line

_PAPER = {"factual": 250, "temporal": 250, "entity": 250, "granularity": 192}
_PAPER_SOURCES = {"chartqa": 500, "mmmu": 442}
_PAPER_WORDS = "10.7 ± 5.6"


def table_1(
    examples: Mapping[str, int],
    instances: Mapping[tuple[str, str], int],
    sources: Mapping[str, int],
    length: tuple[float, float | None],
    checked: int,
) -> bytes:
    """Return Table 1 as a CSV file, beside the paper's values.

    ``instances`` has the number of each type and condition, ``sources`` the examples of each source, ``length`` the passages'
    mean length in words with its standard deviation, ``checked`` the instances reserved for manual checks, under the paper's
    conditions.
    """
    rows: list[tuple[object, ...]] = [("statistic", "value", "in the paper")]
    by_type = {kind: sum(instances.get((kind, condition), 0) for condition in PAPER_CONDITIONS) for kind in TYPES}
    total = sum(by_type.values())
    n_paper, n_conditions = sum(_PAPER.values()), len(PAPER_CONDITIONS)
    rows.append(("total examples", sum(examples.values()), n_paper))
    rows.append(("total instances", total, n_paper * n_conditions))
    for kind in TYPES:
        of_paper = _PAPER[kind]
        counts = f"{examples.get(kind, 0)} / {by_type[kind]}"
        rows.append((f"{kind} examples / instances", counts, f"{of_paper} / {of_paper * n_conditions}"))
    for source in dict.fromkeys((*_PAPER_SOURCES, *sorted(sources))):
        rows.append((f"source: {source} examples", sources.get(source, 0), _PAPER_SOURCES.get(source, "")))
    mean, deviation = length
    spread = "" if deviation is None else f" ± {deviation:.1f}"
    rows.append(("passage length (mean ± sd, words)", f"{mean:.1f}{spread}", _PAPER_WORDS))
    rows.append(("QC sample (share of instances)", f"{checked / total:.1%}" if total else "", "20%"))
    return "".join(map(csv_line, rows)).encode("utf-8")
