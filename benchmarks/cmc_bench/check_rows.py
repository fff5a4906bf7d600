"""A user's own rows checked: what each becomes, or what is wrong with it and how to mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.base import Media
from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.constants import PAPER_CONDITIONS
from benchmarks.cmc_bench.construction.candidates import (
    AMID,
    REPEATED,
    SAME_CONFLICT,
    UNSTATED,
    Candidate,
    candidates,
)
from benchmarks.cmc_bench.construction.pipeline import NO_VALUE, NO_WRONG_IMAGE, ConstructedExample, construct
from benchmarks.cmc_bench.instances import drafts, from_row
from benchmarks.cmc_bench.sources import SourceRow, read
from benchmarks.cmc_bench.sources.mmmu import NO_OPTION
from benchmarks.cmc_bench.sources.own_rows import unused_columns
from benchmarks.rows.files import MISSING_IMAGE, NO_IMAGE, NOT_JSON, Loader, SkippedRow
from benchmarks.rows.near_files import NearFiles
from benchmarks.rows.own_rows import RowCheck, TableCheck

_MENDS = {
    "the row has no question": "write a question in its question column",
    "the row has no answer": "write the right answer, in few words, in its answer column",
    "the answer is unknown": "write the right answer in the place of the question mark",
    NO_IMAGE: "write the image's file, relative to the table's folder, in its image column",
    NO_OPTION: "write one of the options, or its letter, as the answer",
    NOT_JSON: "write one JSON object a line",
    UNSTATED: "write the answer as the passage spells it, or leave the passage empty and one is written",
    SAME_CONFLICT: "write another, wrong value in its conflict column, or leave it empty",
    AMID: "write a value the passage does not hold in its conflict column, or leave it empty",
    NO_VALUE: "write a wrong value in its conflict column, or add rows whose answers are of its type",
    NO_WRONG_IMAGE: "add a row with another picture and another answer of its type",
    REPEATED: "remove the row",
}
"""How to mend a row, by the reason why it is left out; a reason that is not here says it itself."""


def check(file: Path, options: BuildOptions) -> TableCheck:
    """What ``file``'s rows become with these ``options``. Raises SourceError for a file that cannot be read."""
    order: list[str] = []
    left_out: dict[str, SkippedRow] = {}
    usable: list[Candidate] = []
    for found in candidates(_noted(file, order)):
        if isinstance(found, SkippedRow):
            left_out[found.row] = found
        else:
            usable.append(found)
    made = construct(usable, seed=options.seed, per_type=options.per_stratum)
    left_out |= {skipped.row: skipped for skipped in made.left_out}
    examples = {example.right.row.row: example for example in made.all}
    media: dict[Media, Loader] = {}
    near = NearFiles(file.parent)
    rows = [_row(where, left_out.get(where), examples.get(where), media, options, near) for where in order]
    unused = unused_columns(file)
    remarks = [f"nothing is read from the column{'s'[: len(unused) > 1]} {', '.join(unused)}"] if unused else []
    kinds = Counter(example.right.type for example in examples.values())
    remarks += [f"{count} {kind} example{'s'[: count > 1]}" for kind, count in kinds.items()]
    return TableCheck(rows, remarks, media)


def _fix(fix: str, left_out: SkippedRow, near: NearFiles) -> str:
    """Return how to fix a row, with the file it names, relative to the table's folder, and the one that it may mean."""
    if not left_out.place:
        return fix
    place = near.relative(left_out.place)
    if left_out.reason == MISSING_IMAGE and (match := near.nearest(place)):
        return f"did you mean {match}? The table names {place}"
    return f"{fix}: {place}"


def _noted(file: Path, order: list[str]) -> Iterator[SourceRow | SkippedRow]:
    for found in read("rows", str(file)):
        order.append(found.row)
        yield found


def _row(
    where: str,
    left_out: SkippedRow | None,
    example: ConstructedExample | None,
    media: dict[Media, Loader],
    options: BuildOptions,
    near: NearFiles,
) -> RowCheck:
    if left_out is not None:
        # A reason that names its mending holds it after a semicolon.
        wrong, _, mend = left_out.reason.partition("; ")
        return RowCheck(where, False, wrong, _fix(_MENDS.get(left_out.reason, mend), left_out, near))
    if example is None:
        enough = f"not needed: its type has {options.per_stratum} examples already"
        return RowCheck(where, True, enough, "add --per-stratum with a larger number to use it")
    right, wrong_image = (Media(c.sha256, c.suffix) for c in (example.right, example.donor))
    media |= {right: example.right.row.image, wrong_image: example.donor.row.image}
    told = f"{example.right.type}: {example.right.row.answer} against {example.value}; wrong image of {example.donor.row.row}"
    shown = (draft for draft in drafts(example, right, wrong_image) if draft.condition in PAPER_CONDITIONS)
    asked = tuple(from_row(draft.to_row(), "paper") for draft in shown)
    return RowCheck(where, True, " ".join(told.split()), "", asked)
