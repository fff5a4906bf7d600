"""The author's released instances, used without changes.

The release could not be read when this was written: the layout is inferred from the paper (section 3.2, Table 4), and
several names are accepted for each field.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cmc_bench.cmc_constants import PAPER_CONDITIONS, TYPES
from benchmarks.cmc_bench.cmc_instances import CORRECT_SOURCES, InstanceDraft, single_source_drafts
from benchmarks.cmc_bench.construction.cmc_candidates import answer_problem, inspect_image, text_problem
from benchmarks.cmc_bench.sources.cmc_source_row import existing_path, layout_error
from benchmarks.errors import MediaError
from benchmarks.rows.files import Loader, RawRow, SkippedRow, image_loader, list_files, read_rows, text_field
from benchmarks.rows.reader_types import RowProblem
from benchmarks.vocabulary import Media, digest

LAYOUT = (
    "a folder with .jsonl or .json rows of example_id, condition, conflict_type, question, image, text_passage and gold, "
    "and the images"
)
_NAME = "released"

_EXAMPLE = ("example_id", "example", "base_id", "group")
_CONDITION = ("condition", "evidence_condition")
_TYPE = ("conflict_type", "type")
_QUESTION = ("question", "query")
_IMAGE = ("image", "image_path", "image_file", "image_1")
_PASSAGE = ("text_passage", "passage", "text", "text_evidence")
_GOLD = ("gold", "gold_answer", "answer")
_REFERENCES = {
    "image": ("image_reference", "image_ref", "image_answer", "image_supported", "image_gold"),
    "text": ("text_reference", "text_ref", "text_answer", "text_supported", "text_gold", "contradicting_value"),
}
_SHORT = {"img": "image", "txt": "text", "cor": "correct", "wr": "wrong"}
_STATED = re.compile(r"According to the \w+, the \w+ is (\S.*?)\.?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Read:
    raw: RawRow
    condition: str
    group: str
    type: str
    question: str
    passage: str
    gold: str
    media: Media
    load: Loader


def read_released(place: str) -> Iterator[tuple[list[InstanceDraft], Mapping[Media, Loader]] | SkippedRow]:
    """Yield each released example as its drafts (single sources included) with its images. Raises SourceError.

    A reference that a row lacks is the gold where its source is right. Where it is wrong it is what the passage
    states, or the gold of the example that the image belongs to; a row for which neither is known is skipped.
    """
    read_rows = []
    for raw in _raw_rows(place):
        parsed_row = raw if isinstance(raw, SkippedRow) else _read(raw)
        if isinstance(parsed_row, SkippedRow):
            yield parsed_row
        else:
            read_rows.append(parsed_row)
    owners: dict[Media, str] = {}
    for parsed_row in read_rows:
        if CORRECT_SOURCES[parsed_row.condition] in ("both", "image"):
            owners.setdefault(parsed_row.media, parsed_row.gold)
    examples: defaultdict[str, dict[str, InstanceDraft]] = defaultdict(dict)
    loaders: defaultdict[str, dict[Media, Loader]] = defaultdict(dict)
    for parsed_row in read_rows:
        try:
            draft = _draft(parsed_row, owners)
            if parsed_row.condition in examples[parsed_row.group]:
                raise RowProblem("repeated: the example has another row of this condition")
        except RowProblem as problem:
            yield SkippedRow(_NAME, parsed_row.raw.where, str(problem))
            continue
        examples[parsed_row.group][parsed_row.condition] = draft
        loaders[parsed_row.group][parsed_row.media] = parsed_row.load
    for group, by_condition in examples.items():
        ordered = [by_condition[c] for c in PAPER_CONDITIONS if c in by_condition]
        if ordered:
            yield [*ordered, *single_source_drafts(ordered)], loaders[group]


def _raw_rows(place: str) -> Iterator[RawRow | SkippedRow]:
    root = existing_path(_NAME, place, LAYOUT)
    folder: Path = root.parent if root.is_file() else root
    paths = [root] if root.is_file() else list_files(root, ".jsonl") or list_files(root, ".json")
    if not paths:
        raise layout_error(_NAME, root, LAYOUT)
    for file in paths:
        yield from read_rows(file, folder, _NAME)


def _read(raw: RawRow) -> _Read | SkippedRow:
    try:
        condition = _condition(text_field(raw.fields, *_CONDITION))
        kind = _type(text_field(raw.fields, *_TYPE))
        question, passage, gold = (text_field(raw.fields, *names) for names in (_QUESTION, _PASSAGE, _GOLD))
        if not passage:
            raise RowProblem("the row has no text passage")
        problem = text_problem(question, passage) or answer_problem(gold)
        if problem:
            raise RowProblem(problem)
        load = image_loader(raw, *_IMAGE)
        data = load()
        image = inspect_image(data, load)
    except (RowProblem, MediaError) as error:
        reason = f"the image {error.reason}" if isinstance(error, MediaError) else str(error)
        return SkippedRow(_NAME, raw.where, reason)
    media = Media(hashlib.sha256(data).hexdigest(), image.suffix)
    name = text_field(raw.fields, *_EXAMPLE) or _without_condition(text_field(raw.fields, "id", "instance_id"))
    group = f"{kind}-{digest([_NAME, name, question, gold])[:12]}"
    return _Read(raw, condition, group, kind, question, passage, gold, media, load)


def _draft(read: _Read, owners: Mapping[Media, str]) -> InstanceDraft:
    correct = CORRECT_SOURCES[read.condition]
    references = {}
    for source in ("image", "text"):
        stated = text_field(read.raw.fields, *_REFERENCES[source])
        if not stated and correct in ("both", source):
            stated = read.gold
        if not stated:
            stated = owners.get(read.media, "") if source == "image" else _stated(read.passage)
        problem = answer_problem(stated) if stated else f"what the wrong {source} supports is not known"
        if problem:
            raise RowProblem(problem)
        references[source] = stated
    return InstanceDraft(
        id=f"{read.group}/{read.condition}",
        group=read.group,
        condition=read.condition,
        question=read.question,
        image=read.media,
        passage=read.passage,
        references=references,
        correct=correct,
        strata={"type": read.type, "source": _NAME},
        gold=read.gold,
    )


def _condition(written: str) -> str:
    words = re.split(r"[\s_-]+", written.lower())
    condition = "-".join(_SHORT.get(word, word) for word in words)
    if condition not in PAPER_CONDITIONS:
        raise RowProblem("the condition is not one of the paper's four")
    return condition


def _type(written: str) -> str:
    kind = next((kind for kind in TYPES if written.lower().startswith(kind)), None)
    if kind is None:
        raise RowProblem("the conflict type is not one of the paper's four")
    return kind


def _without_condition(name: str) -> str:
    return re.sub(
        r"[\W_]*(?:aligned|(?:image|img|text|txt)[\W_]?cor(?:rect)?|both[\W_]?wr(?:ong)?)\Z", "", name.lower()
    )


def _stated(passage: str) -> str:
    match = _STATED.fullmatch(passage)
    return match[1] if match else ""
