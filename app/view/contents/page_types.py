"""Data types of the page: what the server sends as JSON, and what a saved file holds.

An instance is named by its number on the page: its place in the order in which the runs, the first one before the others, have
it. A run is named by its place among the page's runs; the first is the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.json_output.samples_json import VerdictJson
from app.json_output.tables_json import EstimateJson
from app.store.sample_lists import SAMPLE_OUTCOMES, SampleOutcome
from benchmarks.vocabulary import Origin

OUTCOMES: tuple[SampleOutcome, ...] = SAMPLE_OUTCOMES
"""The outcomes that the codes of :class:`RunColumns` stand for."""
LACKING = 255
"""The code of an outcome where the run lacks the instance, and of a label where there is none."""
OVERRIDDEN, DISPUTED, TRUNCATED = 1, 2, 4
"""The bits of a flag: a person's label is in force, judges disagree, the answer ended at the limit of tokens."""
HEAD = 160
"""The characters of a question and of an answer in a row of the list."""
LONGEST = 20_000
"""The characters of an answer that are sent with an instance; ``answer_text`` has the others, as many at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedRun:
    """A run of the page. ``judge`` is the id of the judge whose labels are displayed; empty if there is none.

    ``writable`` says that it takes labels: a run made here, on a page that is served. ``read_only`` says why another does not.
    ``is_policy`` is true for a rule that answers without looking.
    """

    name: str
    label: str
    """Its name in the tables, unique on the page."""
    model: str
    is_policy: bool
    state: str
    note: str
    problem: str | None
    """The reason why it cannot be read now."""
    done: int
    total: int
    errors: int
    judge: str
    writable: bool
    read_only: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """First contents of the page. ``revision`` grows with each change of a run; ``rule`` says what should win.

    ``kinds`` has for each condition and label what the label counts as there: "right", "wrong", "partial" or "abstained"; a
    page draws a label's glyph and colour by it. Where it disagrees with an answer's outcome, right or wrong, the outcome
    holds. ``meanings`` say what an answer with a label does, for the labels whose names do not.
    """

    version: str
    saved: bool
    benchmark: str
    title: str
    paper: str
    rule: str | None
    conditions: tuple[str, ...]
    labels: tuple[str, ...]
    kinds: dict[str, dict[str, str]]
    meanings: dict[str, str]
    outcomes: tuple[str, ...] = OUTCOMES
    runs: tuple[ViewedRun, ...]
    instances: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumns:
    """Columns of a run, a value for each instance, as base64 of little-endian arrays.

    ``outcome`` and ``label`` are bytes, indices into ``outcomes`` and ``labels`` of the head or :data:`LACKING`; ``flags`` are
    bytes of bits. ``tokens`` are the completion tokens as uint32, ``seconds`` float32; 0 where unknown.
    """

    outcome: str
    label: str
    flags: str
    tokens: str
    seconds: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumColumn:
    """A stratum, or the document: its values, and as base64 a uint32 for each instance, an index from 1; 0 is none."""

    values: tuple[str, ...]
    codes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Columns by which the list is filtered and sorted, a value for each instance, in the arrays of :class:`RunColumns`.

    ``condition`` are bytes, ``group`` uint32: instances of one example have the same. ``strata`` include "document" where the
    benchmark's questions are of documents or pages.
    """

    revision: int
    condition: str
    group: str
    strata: dict[str, StratumColumn]
    runs: tuple[RunColumns, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRow:
    """A row of the list: the start of the question, and of the answer of each run, on one line; null where there is none."""

    number: int
    id: str
    question: str
    answers: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium:
    """A medium of a prompt. ``facts`` say its kind and size, or why it cannot be displayed.

    ``original`` is the address of the file and ``preview`` that of a picture of it, at most 1,600 pixels a side (a waveform,
    frames of a video, a view of a 3D model): relative to the page where it is served, ``data:`` URIs in a saved file, null
    where there is none. ``type`` is the MIME type of the original. ``marks`` are drawn in the preview alone.
    """

    modality: Literal["image", "audio", "video", "point_cloud"]
    facts: str
    type: str
    original: str | None
    preview: str | None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A part of a message: a text, or the place of a medium among those of the instance."""

    text: str = ""
    medium: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """A message of a prompt as sent."""

    role: str
    parts: tuple[PromptPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """Another answer to the same question under the same condition: its outcome, label and text on one line.

    ``number`` is that of its instance, a repetition in a varied build; null for a repeat of a run with ``--repeats``.
    """

    number: int | None
    outcome: SampleOutcome
    label: str | None
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedAnswer:
    """A run's answer to an instance. Times are in seconds; null is unknown.

    ``answer`` is what remains without the ``reasoning``, which begins with the replies of earlier steps; it has at most
    :data:`LONGEST` of its ``length`` characters, and a longer reasoning is cut. ``label`` is null where the outcome is no label.
    ``prompt`` has the messages of each step, empty where they are those of the first run that has the instance. ``verdicts``
    are by judge. ``own_answer`` is the answer to the sibling that the label rests on. ``id`` is the answer's
    ``judges.human_labels_and_samples.blind_id``, which an override of its label names.
    """

    id: str
    outcome: SampleOutcome
    label: str | None
    judge: str
    reason: str
    behaviour: str | None
    answer: str
    length: int
    reasoning: str
    error: str | None
    truncated: bool
    overridden: bool
    completion_tokens: int | None
    prompt_tokens: int | None
    seconds: float | None
    origin: Origin | None
    own_answer: str | None
    prompt: tuple[tuple[PromptMessage, ...], ...]
    verdicts: dict[str, VerdictJson]
    remarks: tuple[str, ...]
    repeats: tuple[Repeat, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """An instance of the same example, under the same or another condition.

    ``name`` is the condition, with what tells its id from those of others under the same condition.
    """

    number: int
    id: str
    condition: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedInstance:
    """An instance with the answer of each run, null for a run that lacks it. ``siblings`` include the instance."""

    number: int
    id: str
    condition: str
    question: str
    strata: dict[str, str]
    references: dict[str, tuple[str, ...]]
    media: tuple[Medium, ...]
    prompt: tuple[tuple[PromptMessage, ...], ...]
    """The messages of each step, as the first run that has the instance sends them."""
    siblings: tuple[Sibling, ...]
    answers: tuple[ViewedAnswer | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCell:
    """A cell as exports print it, and the estimate behind it as ``show --json`` has it, if there is one."""

    text: str
    estimate: EstimateJson | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedRow:
    """A row: its label, and a cell for each column."""

    label: str
    cells: tuple[PrintedCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """A table of ``show``, ``compare`` or ``recommend`` as text. ``notes`` include the reasons of cells that are n/a."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[PrintedRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Sentences below a title, which may be empty."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRow:
    """The difference of accuracy under a condition, or over all of them, as a share; above 0 the run is better.

    ``points`` and ``interval`` are the same in percentage points, as text; without an interval that is empty.
    """

    condition: str
    difference: EstimateJson
    points: str
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A run beside the baseline: what a reader sees first.

    ``verdict`` has the sentences that ``rashomon compare`` prints first of the pair. ``label_counts`` has the number of
    instances that both have answered by their outcomes in the baseline and in the run, in the order of ``outcomes``, which are
    labels and what is no label. ``changes`` has the numbers of the instances "lost" and "gained", of those whose label
    "differs", and of those whose label became another, as "WAS>NOW". ``lost`` and ``gained`` are the words for the first two;
    ``meaning`` defines them where they need it.
    """

    run: int
    verdict: tuple[str, ...]
    conditions: tuple[ConditionRow, ...]
    outcomes: tuple[str, ...]
    label_counts: tuple[tuple[int, ...], ...]
    changes: dict[str, tuple[int, ...]]
    meaning: str
    lost: str = "lost"
    gained: str = "gained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The verdict above the answers, of the runs at a ``revision``, when they had ``done`` so many answers.

    ``headlines`` are the sentences of ``rashomon show``, those on each run first. ``tables`` are the ones it prints; the first,
    named ``lead``, is what a user reads first. With several runs, ``pairs``, ``remarks`` and ``comparison`` are what ``rashomon
    compare`` prints of each pair, of all together, and as tables; ``recommendation`` says which run to take, and why. ``next``
    is what would change or decide it. ``problem`` says why there are no results yet. Unless ``complete``, the
    comparison is still to come.
    """

    revision: int
    done: tuple[int, ...] = ()
    headlines: tuple[str, ...] = ()
    lead: str | None = None
    tables: tuple[PrintedTable, ...] = ()
    warnings: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    remarks: tuple[str, ...] = ()
    comparison: tuple[PrintedTable, ...] = ()
    recommendation: tuple[Section, ...] = ()
    next: tuple[Section, ...] = ()
    problem: str | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The new codes of an instance in a run, as in :class:`RunColumns`."""

    number: int
    run: int
    outcome: int
    label: int
    flags: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes since a revision. ``whole`` says that the index has to be read again instead."""

    revision: int
    runs: tuple[ViewedRun, ...]
    changes: tuple[Change, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindItem:
    """An answer as a person labels it: nothing tells the model, the run, the condition or another label.

    ``references`` are headings and texts, in an order that tells nothing.
    """

    id: str
    question: str
    references: tuple[tuple[str, str], ...]
    answer: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingProgress:
    """A labelling session: its current item, null at the end, and what is done.

    ``position`` counts from 1, ``count`` is the number of answers that are labelled or skipped, which ``summary`` has in words,
    and ``undecided`` says that the judge left the item undecided. ``message`` says what was saved or undone; ``confirm`` asks
    before anything was undone.
    """

    annotator: str
    item: BlindItem | None
    position: int
    total: int
    count: int
    summary: str
    undecided: bool
    advice: str
    message: str = ""
    confirm: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideReply:
    """Reply to an override: the label saved or undone, or the question to confirm before it is undone."""

    message: str = ""
    confirm: str = ""
