"""The published predictions: multiple choice, open, and open with the verdicts of two language models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.base import ImportedAnswer
from benchmarks.clash.clash_constants import CONFLICT, CONFLICT_OPTION, DISTRACTOR, IMAGE, LETTERS, TEXT, Caption, Role
from benchmarks.clash.clash_instances import instance
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.sources.clash_released import TEST_FILE, parse_image_id, parse_published_sample, read_raw_samples
from benchmarks.clash.sources.clash_source_row import LONGEST_ANSWER, LONGEST_SENTENCE
from benchmarks.errors import SourceError
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.reader_types import RowProblem
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file
from benchmarks.vocabulary import Instance, Verdict

LAYOUT = "a JSON list of rows with image_id, original_caption, conflicting_caption, question, prediction and modality_answers"

_SOURCE = "published"
_ROLES: Mapping[str, Role] = {
    "image_only": IMAGE,
    "text_only": TEXT,
    "irrelevant_but_plausible": DISTRACTOR,
    "contradiction": CONFLICT,
}
_FLAGS = {
    "matches_contradiction": "CONFLICT",
    "matches_image_only": "IMAGE",
    "matches_text_only": "TEXT",
    "matches_irrelevant": "DISTRACTOR",
}
"""The labels by flag, in order of precedence: conflict before image before text before distractor."""

_JUDGES = {"gpt-5": "gpt-5@published", "gemini-2.5-pro": "gemini-2.5-pro@published"}
_LABELS = {"IMAGE": "IMAGE", "TEXT": "TEXT", "CONFLICT": "CONFLICT", "NONE": "INCORRECT"}
_LONGEST_PREDICTION = 1_000_000


@dataclass
class PredictionsReport:
    """The problem rows of a file: ``skipped`` rows are unusable, ``unjoined`` rows are not in the published data."""

    skipped: list[SkippedRow]
    unjoined: list[str]

    @property
    def reasons(self) -> Counter[str]:
        return Counter(row.reason for row in self.skipped)


def read_answers(
    path: Path, *, caption: Caption = "conflicting", data: Path | None = None, report: PredictionsReport | None = None
) -> Iterator[ImportedAnswer]:
    """Yield the answers in a file of published predictions, as instances without images.

    ``caption`` is the caption that the model was given, which the files do not state: "original" for the ``wo_contr``
    control. The kind of change, category and distractor come from the published data in ``data``, or from
    ``synthetic_captions_test_filtered.json`` beside the file; a row that is not in it has none of them. Unusable rows are
    left out; ``report`` records both kinds. Raises SourceError if the file is not one of these.
    """
    rows = _rows(path)
    known = _known(path.parent / TEST_FILE if data is None else data, caption, needed=data is not None)
    details = report if report is not None else PredictionsReport([], [])
    return _imported(path.name, rows, known, caption, details)


def _imported(
    name: str,
    rows: list[Any],
    known: Mapping[tuple[str, ...], ClashSample],
    caption: Caption,
    report: PredictionsReport,
) -> Iterator[ImportedAnswer]:
    seen: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        where = f"{name}:{number}"
        try:
            instance, is_known, answer = _read(row, known, caption)
        except RowProblem as problem:
            report.skipped.append(SkippedRow(_SOURCE, where, str(problem)))
            continue
        if not is_known:
            report.unjoined.append(where)
        seen[instance.id] += 1
        if seen[instance.id] > 1:  # a repeated question is another answer and needs an id of its own
            ending = f"~{seen[instance.id]}"
            instance = replace(
                instance, group=instance.group + ending, id=f"{instance.group}{ending}/{instance.condition}"
            )
        yield ImportedAnswer(instance, answer, _verdicts(row))


def _rows(path: Path) -> list[Any]:
    try:
        rows = read_json_file(path, MAX_SOURCE_BYTES)
    except (OSError, OutsideJSONError):
        rows = None
    if not isinstance(rows, list) or not any(isinstance(row, dict) and row.keys() >= _NEEDED for row in rows):
        raise SourceError(f"{path} is no file of published CLASH predictions; expected {LAYOUT}.")
    return rows


_NEEDED = {"image_id", "original_caption", "conflicting_caption", "question", "prediction", "modality_answers"}


def _known(file: Path, caption: Caption, *, needed: bool) -> dict[tuple[str, ...], ClashSample]:
    rows = read_raw_samples(file)
    if rows is None and needed:
        raise SourceError(f'{file} is not the published data set, a JSON object with "samples"; name {TEST_FILE}.')
    known = {}
    for row in rows or ():
        try:
            sample = parse_published_sample(row)
        except RowProblem:
            continue
        known[_key(sample, caption)] = sample
    return known


def _key(sample: ClashSample, caption: Caption) -> tuple[str, ...]:
    # Only the displayed caption: one original caption was corrected after these predictions were made.
    displayed_caption = sample.conflicting_caption if caption == "conflicting" else sample.original_caption
    return sample.image_id, sample.question, displayed_caption, sample.image_only, sample.text_only


def _read(row: Any, known: Mapping[tuple[str, ...], ClashSample], caption: Caption) -> tuple[Instance, bool, str]:
    """Return the row's instance, whether it is in the published data, and its answer."""
    if not isinstance(row, Mapping):
        raise RowProblem("the row is not a JSON object")
    prediction = row.get("prediction")
    if prediction is None and "prediction" in row:
        prediction = ""  # no prediction counts as Incorrect in the paper
    if not isinstance(prediction, str):
        raise RowProblem("the row has no prediction")
    if len(prediction) > _LONGEST_PREDICTION:
        raise RowProblem(f"the prediction is longer than {_LONGEST_PREDICTION} characters")
    answers, order = _answers(row.get("modality_answers"))
    bare = ClashSample(
        image_id=parse_image_id(row.get("image_id")),
        image=None,
        original_caption=_text(row, "original_caption"),
        conflicting_caption=_text(row, "conflicting_caption"),
        question=_text(row, "question"),
        change_type="",
        image_only=answers[IMAGE],
        text_only=answers[TEXT],
        distractor=answers.get(DISTRACTOR, ""),
        changed_original="",
        changed_conflicting="",
        category="",
        source=_SOURCE,
    )
    sample = known.get(_key(bare, caption))
    if sample is not None:
        bare = replace(sample, distractor=bare.distractor or sample.distractor)
    return instance(bare, f"{'mc' if order else 'open'}-{caption}", "official", order), sample is not None, prediction


def _answers(value: Any) -> tuple[dict[Role, str], tuple[Role, ...]]:
    """Return the answers by role and, for multiple choice, the roles of the options A to D."""
    if not isinstance(value, Mapping):
        raise RowProblem("the row has no answers")
    answers: dict[Role, str] = {}
    letters: dict[Any, Role] = {}
    for name, role in _ROLES.items():
        answer = value.get(name)
        if isinstance(answer, Mapping):
            if isinstance(answer.get("choice"), str):
                letters[answer["choice"]] = role
            answer = answer.get("answer")
        if isinstance(answer, str) and answer.strip() and len(answer) <= LONGEST_ANSWER:
            answers[role] = answer
    if IMAGE not in answers or TEXT not in answers:
        raise RowProblem("the row has no answers")
    if not letters:
        return answers, ()
    if set(letters) != set(LETTERS) or len(answers) < len(_ROLES) or answers[CONFLICT] != CONFLICT_OPTION:
        raise RowProblem("the row's options are not the four roles under the letters A to D")
    return answers, tuple(letters[letter] for letter in LETTERS)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowProblem(f"the row has no {name.replace('_', ' ')}")
    if len(value) > LONGEST_SENTENCE:
        raise RowProblem(f"the {name.replace('_', ' ')} is longer than {LONGEST_SENTENCE} characters")
    return value


def _verdicts(row: Mapping[str, Any]) -> tuple[Verdict, ...]:
    verdicts = []
    matches = row.get("evaluation")
    if isinstance(matches, Mapping):
        flags = tuple(label for name, label in _FLAGS.items() if matches.get(name) is True) or ("INCORRECT",)
        verdicts.append(Verdict("published@1", "labelled", flags[0], "the published string matching", flags=flags))
    for model, judge in _JUDGES.items():
        raw = row.get(f"evaluation_{model}_prediction")
        if not isinstance(raw, str) or len(raw) > _LONGEST_PREDICTION:
            continue
        if raw.strip() in _LABELS:
            verdicts.append(Verdict(judge, "labelled", _LABELS[raw.strip()], "the published reply", raw=raw))
        else:
            verdicts.append(Verdict(judge, "judge-failed", reason="the published reply is not one label", raw=raw))
    return tuple(verdicts)
