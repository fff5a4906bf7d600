"""A check of the user's own rows: the example each row becomes, or its problem and the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.constants import PAPER_CONDITIONS
from benchmarks.cmc_bench.construction.candidates import (
    ANSWER_NOT_STATED,
    CONFLICT_IS_ANSWER,
    CONFLICT_STATED,
    REPEATED,
    Candidate,
    candidates,
)
from benchmarks.cmc_bench.construction.pipeline import NO_VALUE, NO_WRONG_IMAGE, ConstructedExample, construct
from benchmarks.cmc_bench.instances import draft_instances, instance_from_row
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.base import SourceRow
from benchmarks.cmc_bench.sources.mmmu import NO_OPTION
from benchmarks.cmc_bench.sources.own_rows import unused_columns
from benchmarks.rows.closest_file import NearFiles
from benchmarks.rows.files import MISSING_IMAGE, NO_IMAGE, NOT_JSON, Loader, SkippedRow
from benchmarks.rows.row_checks import RowCheck, TableCheck
from benchmarks.vocabulary import Media

_FIXES = {
    "the row has no question": "write a question in its question column",
    "the row has no answer": "write the right answer, in few words, in its answer column",
    "the answer is unknown": "write the right answer in the place of the question mark",
    NO_IMAGE: "write the image's file, relative to the table's folder, in its image column",
    NO_OPTION: "write one of the options, or its letter, as the answer",
    NOT_JSON: "write one JSON object a line",
    ANSWER_NOT_STATED: "write the answer as the passage spells it, or leave the passage empty and one is written",
    CONFLICT_IS_ANSWER: "write another, wrong value in its conflict column, or leave it empty",
    CONFLICT_STATED: "write a value the passage does not hold in its conflict column, or leave it empty",
    NO_VALUE: "write a wrong value in its conflict column, or add rows whose answers are of its type",
    NO_WRONG_IMAGE: "add a row with another picture and another answer of its type",
    REPEATED: "remove the row",
}
"""The fix for each reason why a row is left out; a reason that is not here contains its own fix."""


def check_rows(file: Path, options: BuildOptions) -> TableCheck:
    """Return the result of each row of ``file`` under ``options``. Raises SourceError for an unreadable file."""
    order: list[str] = []
    left_out: dict[str, SkippedRow] = {}
    usable: list[Candidate] = []
    for candidate in candidates(_noted(file, order)):
        if isinstance(candidate, SkippedRow):
            left_out[candidate.row] = candidate
        else:
            usable.append(candidate)
    constructed = construct(usable, seed=options.seed, per_type=options.per_stratum)
    left_out |= {skipped.row: skipped for skipped in constructed.left_out}
    examples = {example.right.row.row: example for example in constructed.all}
    media: dict[Media, Loader] = {}
    near_files = NearFiles(file.parent)
    rows = [_row(where, left_out.get(where), examples.get(where), media, options, near_files) for where in order]
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
    for row in read_source("rows", str(file)):
        order.append(row.row)
        yield row


def _row(
    where: str,
    left_out: SkippedRow | None,
    example: ConstructedExample | None,
    media: dict[Media, Loader],
    options: BuildOptions,
    near: NearFiles,
) -> RowCheck:
    if left_out is not None:
        # A reason that names its own fix has it after a semicolon.
        problem, _, fix = left_out.reason.partition("; ")
        return RowCheck(where, False, problem, _fix(_FIXES.get(left_out.reason, fix), left_out, near))
    if example is None:
        quota_message = f"not needed: its type has {options.per_stratum} examples already"
        return RowCheck(where, True, quota_message, "add --per-stratum with a larger number to use it")
    right_image, wrong_image = (Media(c.sha256, c.suffix) for c in (example.right, example.donor))
    media |= {right_image: example.right.row.image, wrong_image: example.donor.row.image}
    summary = f"{example.right.type}: {example.right.row.answer} against {example.value}; wrong image of {example.donor.row.row}"
    paper_drafts = (
        draft for draft in draft_instances(example, right_image, wrong_image) if draft.condition in PAPER_CONDITIONS
    )
    previews = tuple(instance_from_row(draft.to_row(), "paper") for draft in paper_drafts)
    return RowCheck(where, True, " ".join(summary.split()), "", previews)
