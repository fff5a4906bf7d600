"""The data types of all packages: requests, answers, verdicts and tables; and their JSON.

They are immutable and do no I/O. Forms of answers, tables and digests have modules of their own, whose names are here, too.
The flow of data is
``Instance -> Protocol -> Request -> Backend -> Generation -> Judge -> Verdict -> Record -> Table``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple

from benchmarks.answer_forms import CANDIDATES as CANDIDATES
from benchmarks.answer_forms import AnyForm as AnyForm
from benchmarks.answer_forms import Candidates as Candidates
from benchmarks.answer_forms import Choice as Choice
from benchmarks.answer_forms import Form as Form
from benchmarks.answer_forms import JSONObject as JSONObject
from benchmarks.answer_forms import Likelihood as Likelihood
from benchmarks.answer_forms import Stated as Stated
from benchmarks.canonical_json import canonical_json as canonical_json
from benchmarks.canonical_json import digest as digest
from benchmarks.canonical_json import digest_of_list as digest_of_list
from benchmarks.table_types import Cell as Cell
from benchmarks.table_types import Chart as Chart
from benchmarks.table_types import Estimate as Estimate
from benchmarks.table_types import LabelMetrics as LabelMetrics
from benchmarks.table_types import Table as Table

Modality = Literal["image", "audio", "video", "point_cloud"]
FinishReason = Literal["stop", "length", "error"]
VerdictStatus = Literal["labelled", "unparsed", "undecided", "judge-failed"]
Outcome = Literal["pending", "error", "unparsed", "undecided", "judge-failed", "labelled"]


# --- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prompt text, passed to the model unchanged."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A box that is drawn on an image with its label (set-of-mark): x0, y0, x1, y1 in pixels of the upright image."""

    label: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Media:
    """A medium named by the sha256 of its file's bytes; ``suffix`` is the file's, with its dot.

    ``marks`` are drawn on an image when it is loaded for a model; the file is not changed.
    """

    sha256: str
    suffix: str
    modality: Modality = "image"
    marks: tuple[Mark, ...] = ()

    @property
    def name(self) -> str:
        """The file's name in a build's ``media`` folder."""
        return self.sha256 + self.suffix


Part = Text | Media

SHOWN_TEXT = "shown text"
"""A key of ``Instance.references``: the answers that the displayed text supports, if they are not the reference "text". Only
policies read it; no judge and no person does. In a multiple choice, "shown text letter" has the letter of its option."""


RIGHT_VALUE = "right"
"""A key of ``Instance.references``: the right answer where no source has it. The judge ``match`` tells it from inventions; no
model that judges and no person sees it, except under :data:`CLOSED_BOOK` or where a label is named after it."""

NOT_SHOWN = "not shown"
"""A key of ``Instance.references``: the sources whose references label an answer, but which the condition does not display. Only
policies and readers of printed numbers read it."""

FOR_POLICIES = (SHOWN_TEXT, NOT_SHOWN)
"""The beginnings of the keys that no judge and no person sees."""

CLOSED_BOOK = "closed-book"
"""The end of the name of a condition with a question and no source; see ``benchmarks/protocols/without_sources.py``."""

WITHOUT_SOURCES = "without-sources"
"""The name for all conditions that leave sources out, which adds them to the conditions of a run."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One question under one condition.

    ``id`` is computed from the content and is the same on every machine. ``group`` is shared by the siblings of one
    example (its other conditions, tasks or settings). ``references`` maps a source's name to the answers that the
    source supports; a source that the condition does not display is absent. ``strata`` are the keys that divide tables
    and subsets.
    """

    id: str
    group: str
    condition: str
    question: str
    parts: tuple[Part, ...]
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strata: Mapping[str, str] = field(default_factory=dict)


DOCUMENT = "document"
"""The stratum of an example that names its document or page, by the user's word."""

TRUST = "trust"
"""The stratum of an example that names what should win where its sources disagree, by the user's word: a key of ``RULES``."""

RULES: Mapping[str, str] = {
    "image": "the image should win",
    "text": "the text should win",
    "flag": "a conflict should be flagged",
}
"""The rules on what should win, in words to follow "if"."""


class Pages(NamedTuple):
    """The pages of an instance by name: pictures, documents and entities that other instances may show, too.

    Examples with an ``own`` page in common are one cluster; ``shown`` are pages of others, such as a borrowed picture.
    """

    own: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Decoding:
    """Decoding settings. ``temperature`` 0 is greedy; ``max_pixels`` bounds the size of every image, None does not."""

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    max_pixels: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a backend: step ``step`` of instance ``instance_id``.

    ``form`` is the required form of the answer; a backend enforces it if its engine can, and every reader of the answer
    checks it again. ``references`` are for the policy baselines only; no model reads them, and ``digest`` excludes them. Their
    keys also tell readers of printed numbers which sources are shown.
    ``question`` is the instance's, which the messages contain among other text; ``digest`` excludes it, too.
    ``is_continued`` says that the instance's next request begins with the same messages, so that what was read is of use.
    """

    instance_id: str
    step: int
    messages: tuple[Message, ...]
    decoding: Decoding
    form: AnyForm | None = None
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_continued: bool = False
    question: str = ""

    @property
    def id(self) -> str:
        return f"{self.instance_id}#{self.step}"

    @property
    def unscored(self) -> Request:
        """The request without the words that are scored beside its answer, and do not change it."""
        return replace(self, form=None) if isinstance(self.form, Candidates) else self

    @property
    def sampling_seed(self) -> int:
        """The seed that an answer is sampled with; ``digest`` covers the run's."""
        return int(self.unscored.digest[:8], 16)

    @property
    def digest(self) -> str:
        """The sha256 of everything that determines the answer: the messages, media by content, the decoding, the form."""
        body = [[m.role, [part_to_json(p) for p in m.parts]] for m in self.messages]
        content: list[Any] = [body, asdict(self.decoding)]
        if isinstance(self.form, Choice):
            content.append({"choice": list(self.form.words)})
        elif isinstance(self.form, Likelihood):
            content.append({"likelihood": list(self.form.words)})
        elif isinstance(self.form, Candidates):
            content.append({"candidates": [list(self.form.values), self.form.abstention]})
        elif isinstance(self.form, Stated):
            content.append({"stated": self.form.text})
        elif isinstance(self.form, JSONObject):
            content.append({"object": [[name, list(words)] for name, words in self.form.properties.items()]})
        return digest(content)


# --- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Another run's answer to an equal request: that of ``instance`` in the run ``run``, whose folder was called ``name``.

    ``same`` is None if the answer was reused. Otherwise the request was repeated as a check, and ``same`` says whether the
    answer was the same.
    """

    run: str
    name: str
    instance: str
    same: bool | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """A backend's answer to one request.

    A failed request has ``finish_reason`` "error" and its cause in ``error``. Times are in seconds, memory in bytes:
    ``peak_memory`` is the maximum during generation, ``active_memory`` and ``cache_memory`` are the memory in use and the
    cached memory after it. Values that a backend cannot know are None. ``calls`` counts the requests that were sent:
    more than 1 if a remote engine was called again, 0 if the reply came from the cache, or from the run of its ``origin``,
    which used its tokens. ``prompt_tokens`` and ``completion_tokens`` are the sum over these calls. ``scores`` are the natural
    logprobs of the words of a :class:`Likelihood`, in its order; or those of the values and the abstention of
    :class:`Candidates`, followed by that of the answer without the token that ends it. A value without tokens has None.
    """

    request_id: str
    text: str
    finish_reason: FinishReason
    tokens: tuple[int, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    peak_memory: int | None = None
    error: str | None = None
    calls: int = 1
    active_memory: int | None = None
    cache_memory: int | None = None
    scores: tuple[float | None, ...] = ()
    origin: Origin | None = None

    @property
    def is_reused(self) -> bool:
        return self.origin is not None and self.origin.same is None

    def without_call(self) -> Generation:
        """Return the answer for an equal request that no call was made for: without times, memory and origin."""
        times: dict[str, Any] = dict.fromkeys(("prefill_s", "decode_s", "peak_memory", "active_memory", "cache_memory"))
        return replace(self, **times, error=None, calls=0, origin=None)


BEHAVIOURS: Mapping[str, str] = {
    "image": "follows the image",
    "text": "follows the text",
    "both": "gives both",
    "conflict": "flags the conflict",
    "abstain": "abstains without naming a conflict",
    "right": "gives the right value that no source has",
    "invents": "invents a value",
    "off-topic": "is off topic",
}
"""The behaviours of an answer to disagreeing sources, with their descriptions."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge's verdict on one answer.

    ``labelled`` carries a label. ``unparsed`` means there was no answer to label (empty, or nothing but
    reasoning). ``undecided`` means the judge does not know the label. ``judge-failed`` means the judge gave no usable reply.
    ``raw`` is the judge's own reply. ``flags`` are all labels that fit, where a benchmark's labels do not exclude each other;
    ``label`` is then the exclusive reading.
    ``calls`` and the tokens are those that a model used as judge took for this verdict.
    ``behaviour`` is what the answer does, where the judge tells that apart more finely than by label (:data:`BEHAVIOURS`).
    """

    judge: str
    status: VerdictStatus
    label: str | None = None
    reason: str = ""
    raw: str | None = None
    flags: tuple[str, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    behaviour: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """An instance with its accepted generations, in order of step, and the verdicts by judge.

    ``basis`` is the answer of the sibling under :meth:`Benchmark.basis`, which may be an error; None if the condition
    needs none, or if the run does not request it or has no answer yet.
    """

    instance: Instance
    generations: tuple[Generation, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    basis: Generation | None = None

    @property
    def answer(self) -> Generation | None:
        """The last step's generation, which is judged."""
        return self.generations[-1] if self.generations else None

    @property
    def is_cut_off(self) -> bool:
        """True if the answer ended at the limit of tokens."""
        return self.answer is not None and self.answer.finish_reason == "length"

    def outcome(self, judge: str) -> Outcome:
        """Return the record's outcome for ``judge``; the six outcomes are never merged."""
        answer = self.answer
        return outcome_of(None if answer is None else answer.finish_reason, self.verdicts.get(judge))


def outcome_of(finish_reason: FinishReason | None, verdict: Verdict | None) -> Outcome:
    """Return the outcome of an answer, whose ``finish_reason`` is None if there is none yet, by its verdict."""
    if finish_reason is None:
        return "pending"
    if finish_reason == "error":
        return "error"
    return "pending" if verdict is None else verdict.status


# --- JSON ----------------------------------------------------------------------------------------


def part_to_json(part: Part) -> dict[str, Any]:
    """Return a part as a JSON object: ``{"text": ...}`` or ``{"sha256": ..., "suffix": ..., "modality": ...}``.

    ``marks`` are present only if there are any, so that values stored before marks existed keep their digests.
    """
    if isinstance(part, Text):
        return {"text": part.text}
    value: dict[str, Any] = {"sha256": part.sha256, "suffix": part.suffix, "modality": part.modality}
    if part.marks:
        value["marks"] = tuple({"label": mark.label, "box": mark.box} for mark in part.marks)
    return value


def part_from_json(value: Mapping[str, Any]) -> Part:
    """Return the part of a JSON object; the inverse of :func:`part_to_json`."""
    if "text" in value:
        return Text(value["text"])
    marks = tuple(Mark(mark["label"], tuple(mark["box"])) for mark in value.get("marks", ()))
    return Media(**{**value, "marks": marks})


def instance_to_json(instance: Instance) -> dict[str, Any]:
    """Return an instance as a JSON object."""
    return {
        "id": instance.id,
        "group": instance.group,
        "condition": instance.condition,
        "question": instance.question,
        "parts": [part_to_json(p) for p in instance.parts],
        "references": {k: list(v) for k, v in instance.references.items()},
        "strata": dict(instance.strata),
    }


def instance_from_json(value: Mapping[str, Any]) -> Instance:
    """Return the instance of a JSON object; the inverse of :func:`instance_to_json`."""
    return Instance(
        id=value["id"],
        group=value["group"],
        condition=value["condition"],
        question=value["question"],
        parts=tuple(part_from_json(p) for p in value["parts"]),
        references={k: tuple(v) for k, v in value["references"].items()},
        strata=value["strata"],
    )
