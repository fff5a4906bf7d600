"""A check of the user's own rows: the example each row becomes, or its problem and the fix."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path

from benchmarks.build import BuildOptions
from benchmarks.cmc_bench.cmc_constants import CONFLICT_CONDITIONS, PAPER_CONDITIONS, ConflictType
from benchmarks.cmc_bench.cmc_instances import draft_instances, instance_from_row
from benchmarks.cmc_bench.construction.candidate_file import CandidateFile, RowFile
from benchmarks.cmc_bench.construction.cmc_candidates import CONFLICT_IS_ANSWER, CONFLICT_STATED, candidates
from benchmarks.cmc_bench.construction.cmc_construction import construct
from benchmarks.cmc_bench.construction.constructed_examples import NO_PASSAGE, ConstructedExample
from benchmarks.cmc_bench.construction.value_distribution import describe, generated_values
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_own_rows import table_remarks
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.cmc_bench.sources.mmmu import NO_OPTION
from benchmarks.rows.closest_file import NearFiles
from benchmarks.rows.files import NO_IMAGE, NOT_JSON, SkippedRow, file_remarks
from benchmarks.rows.reader_types import trust_remarks
from benchmarks.rows.record_file import RecordFile
from benchmarks.rows.row_checks import LEFT_OUT, ReadRow, RowChecks, RowPreview, TableCheck, fix_with_file
from benchmarks.source_agreement import AGREE_ON_WRONG

_FIXES = {
    "the row has no question": "write a question in its question column",
    "the row has no answer": "write the right answer, in few words, in its answer column",
    "the answer is unknown": "write the right answer in the place of the question mark",
    NO_IMAGE: "write the image's file, relative to the table's folder, in its image column",
    NO_OPTION: "write one of the options, or its letter, as the answer",
    NOT_JSON: "write one JSON object a line",
    CONFLICT_IS_ANSWER: "write another, wrong value in its conflict column, or leave it empty",
    CONFLICT_STATED: "write the one that answers the question in its text_answer column, or another value in its conflict column",
    AGREE_ON_WRONG: "this is no conflict between them; correct the answer, or what they say in image_answer and text_answer",
}
"""The fix for each reason why a row is left out; a reason that is not here contains its own fix."""


def check_rows(file: Path, options: BuildOptions) -> TableCheck:
    """Return the result of each row of ``file`` under ``options``. Raises SourceError for an unreadable file."""
    rows = RowFile()
    for row in read_source("rows", str(file), options.cluster, options.mapping):
        rows.append(row)
    usable, numbers = CandidateFile(rows), array("I")
    problems, problem_of = RecordFile(), _Numbers(len(rows))
    for number, candidate in enumerate(candidates(rows)):
        if isinstance(candidate, SkippedRow):
            problem_of[number] = problems.append(astuple(candidate))
        else:
            usable.append(candidate)
            numbers.append(number)
    constructed = construct(usable, seed=options.seed, per_type=options.per_stratum, difficulty=options.difficulty)
    for candidate_number, left_out in constructed.left_out.numbered():
        problem_of[numbers[candidate_number]] = problems.append(astuple(left_out))
    example_of = _Numbers(len(rows))
    for number, candidate_number in enumerate(constructed.rights()):
        example_of[numbers[candidate_number]] = number
    near_files, trusted = NearFiles(file.parent), 0
    conflicts = any(c in CONFLICT_CONDITIONS for example in constructed.all for c in example.conditions)
    evidence: Counter[str] = Counter()
    checks = RowChecks(lambda number: _preview(constructed.example(number)))
    for number, row in enumerate(rows):
        problem, example = problem_of[number], example_of[number]
        if problem is not None:
            left_out = SkippedRow(*problems[problem])
            # A reason that names its own fix has it after its last semicolon; before it a row's own text may have others.
            message, _, fix = left_out.reason.rpartition("; ")
            message, fix = (message, fix) if message else (fix, "")
            checks.append(
                row.row, False, message, fix_with_file(_FIXES.get(left_out.reason, fix), left_out, near_files)
            )
        elif example is None:
            quota_message = f"not needed: its type has {options.per_stratum} examples already"
            checks.append(row.row, conflicts, quota_message, "add --per-stratum with a larger number to use it")
        else:
            constructed_example = constructed.example(example)
            evidence[constructed_example.evidence] += 1
            image = constructed_example.right.image
            message = "; ".join([_summary(constructed_example), *image.notes])
            fix = "" if conflicts else "add rows that ask the same of other pictures, with other answers"
            checks.append(row.row, conflicts, message, fix, example, "; ".join(image.warnings))
            trusted += isinstance(row, SourceRow) and bool(row.trust)
    kinds = {kind: len(examples) for kind, examples in constructed.examples.items() if examples and conflicts}
    remarks = [*table_remarks(file, options.mapping), *file_remarks(file), *_counts(kinds, evidence)]
    if evidence and not conflicts:
        remarks.append("none can be made a conflict, so nothing can be built")
    remarks += describe(generated_values(constructed.all))
    remarks += checks.warning_remarks()
    remarks += trust_remarks(sum(kinds.values()), trusted)
    return TableCheck(checks, remarks)


def _counts(kinds: Mapping[ConflictType, int], evidence: Mapping[str, int]) -> Iterator[str]:
    """Yield the numbers of examples by conflict type and, where some have a passage, by where their sources come from."""
    yield from (f"{count} {kind} example{'s'[: count > 1]}" for kind, count in kinds.items())
    if evidence.keys() - {NO_PASSAGE}:
        yield from (f"{name}: {count}" for name, count in evidence.items())


def read_rows(file: Path, mapping: str) -> Iterator[ReadRow]:
    """Yield the rows of ``file`` as a build reads them. Raises SourceError and SpecError."""
    for row in read_source("rows", str(file), mapping=mapping):
        if isinstance(row, SkippedRow):
            yield ReadRow.left_out(row)
        else:
            texts, passages = (row.question, row.answer), filter(None, (row.passage,))
            yield ReadRow.of(row.row, texts, (row.image,), passages, usable=all(texts))


class _Numbers:
    """A number or None for each of ``count`` rows, at 4 bytes each."""

    def __init__(self, count: int) -> None:
        self._values = array("I", bytes(4 * count))  # 0 for None

    def __getitem__(self, place: int) -> int | None:
        return self._values[place] - 1 if self._values[place] else None

    def __setitem__(self, place: int, number: int) -> None:
        self._values[place] = number + 1


def _summary(example: ConstructedExample) -> str:
    right, donor = example.right, example.donor
    row = right.row
    summary = f"right: {row.answer}"
    if right.is_conflict:
        sources = {"picture": row.image_answer or row.answer, "passage": row.text_answer or row.answer}
        summary += (
            f"; the picture says {sources['picture']}, the passage {sources['passage']}: {right.condition} as found"
        )
    if example.value:
        summary += f"; wrong: {example.value}"
    if donor is not None:
        summary += f"; wrong image of {donor.row.row}"
    for reason in dict.fromkeys(example.left_out.values()):
        conditions = [condition for condition, own in example.left_out.items() if own == reason]
        summary += f"{LEFT_OUT}{' or '.join(conditions)}: {reason}"
    return " ".join(summary.split())


def _preview(example: ConstructedExample) -> RowPreview:
    paper_drafts = (draft for draft in draft_instances(example) if draft.condition in PAPER_CONDITIONS)
    return RowPreview(
        tuple(instance_from_row(draft.to_row(), "paper") for draft in paper_drafts),
        {candidate.media: candidate.row.image for candidate in filter(None, (example.right, example.donor))},
    )
