"""The vocabulary of all packages: what is asked, what is answered, what an answer is judged to be; and its JSON.

Everything here is immutable and free of I/O, and imported from :mod:`benchmarks.base`. The way of the data is
``Instance -> Protocol -> Request -> Backend -> Generation -> Judge -> Verdict -> Record -> Table``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Modality = Literal["image", "audio", "video", "point_cloud"]
FinishReason = Literal["stop", "length", "error"]
VerdictStatus = Literal["labelled", "unparsed", "judge-failed"]
Outcome = Literal["pending", "error", "unparsed", "judge-failed", "labelled"]
Chart = Literal["stacked", "turned", "bars", "heat"]


# --- what is asked -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of prompt text, given to the model as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A box that is drawn on an image with its label (set-of-mark): x0, y0, x1, y1 in pixels of the upright image."""

    label: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Media:
    """A medium named by the sha256 of its file's bytes; ``suffix`` is the file's, with its dot.

    ``marks`` are drawn on an image when it is loaded to be shown to a model; the file stays as it is.
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
"""A key of ``Instance.references``: what the text that is shown supports, where the reference "text" is not that. For
policies alone: no judge and no person is shown it. In a multiple choice its option's letter is under "shown text letter"."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One question under one condition.

    ``id`` is made from content and is the same on every machine. ``group`` is shared by the siblings of one
    example (its other conditions, tasks or settings). ``references`` maps a source's name to the answers that
    source supports; a source that the condition does not show is absent. ``strata`` are the keys tables and
    subsets are made by.
    """

    id: str
    group: str
    condition: str
    question: str
    parts: tuple[Part, ...]
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How an answer is decoded. ``temperature`` 0 is greedy; ``max_pixels`` bounds every image, None leaves it."""

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    max_pixels: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer must be one of these words and nothing else."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JSONObject:
    """An answer form: a JSON object.

    ``properties`` maps each field to the values it may have; an empty tuple allows any string. All fields are required, in
    this order.
    """

    properties: Mapping[str, tuple[str, ...]]

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema."""
        return {
            "type": "object",
            "properties": {
                name: {"type": "string", "enum": list(words)} if words else {"type": "string"}
                for name, words in self.properties.items()
            },
            "required": list(self.properties),
            "additionalProperties": False,
        }


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Nothing is generated: the answer is the one of these words that the model finds most likely to begin its answer with."""

    words: tuple[str, ...]


Form = Choice | JSONObject


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a backend: step ``step`` of instance ``instance_id``.

    ``form`` is what an answer must look like; a backend enforces it where its engine can, and whoever reads the answer
    checks it all the same. ``references`` are for the policy baselines alone; no model is shown them and ``digest`` leaves
    them out.
    """

    instance_id: str
    step: int
    messages: tuple[Message, ...]
    decoding: Decoding
    form: Form | Likelihood | None = None
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.instance_id}#{self.step}"

    @property
    def digest(self) -> str:
        """sha256 of everything that decides the answer: the messages, media by content, the decoding, the form."""
        body = [[m.role, [part_to_json(p) for p in m.parts]] for m in self.messages]
        whole: list[Any] = [body, asdict(self.decoding)]
        if isinstance(self.form, Choice):
            whole.append({"choice": list(self.form.words)})
        elif isinstance(self.form, Likelihood):
            whole.append({"likelihood": list(self.form.words)})
        elif isinstance(self.form, JSONObject):
            whole.append({"object": [[name, list(words)] for name, words in self.form.properties.items()]})
        return digest(whole)


# --- what is answered ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Generation:
    """What a backend made of one request.

    A failed request has ``finish_reason`` "error" and its cause in ``error``. Times are in seconds, memory in bytes:
    ``peak_memory`` the most while it was made, ``active_memory`` and ``cache_memory`` what was in use and what was kept
    for use again when it was done. What a backend cannot know is None. ``calls`` counts the requests that were really
    sent to get it: more than 1 where a remote engine was asked again, 0 where its reply was kept from an earlier time.
    ``prompt_tokens`` and ``completion_tokens`` are then the sum over those calls. ``scores`` are the natural logprobs of the
    words of a :class:`Likelihood`, in its order.
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
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge says of one answer.

    ``labelled`` carries a label. ``unparsed`` means there was no answer to label (empty, or nothing but
    reasoning). ``judge-failed`` means the judge gave no usable reply. ``raw`` is the judge's own reply. ``flags`` are all
    labels that fit, where a benchmark's labels do not exclude each other; ``label`` is then the exclusive reading.
    ``calls`` and tokens are what a judge that is a model was asked and gave for this verdict.
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


@dataclass(frozen=True, slots=True)
class Record:
    """An instance with its accepted generations, in order of step, and the verdicts by judge.

    ``basis`` is the answer of the sibling under :meth:`Benchmark.basis`, which may be an error; None where the condition
    needs none, and where the run does not ask for it or has not got it yet.
    """

    instance: Instance
    generations: tuple[Generation, ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    basis: Generation | None = None

    @property
    def answer(self) -> Generation | None:
        """The last step's generation, which is the one that is judged."""
        return self.generations[-1] if self.generations else None

    def outcome(self, judge: str) -> Outcome:
        """Which of the five things this record is for ``judge``; they are never merged."""
        if self.answer is None:
            return "pending"
        if self.answer.finish_reason == "error":
            return "error"
        verdict = self.verdicts.get(judge)
        return "pending" if verdict is None else verdict.status


# --- what is reported ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval. ``value`` None is n/a, and ``reason`` says why. ``n`` counts what it rests on.

    ``sd`` is the bootstrap standard deviation, where a paper prints that.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str = ""
    sd: float | None = None


Cell = Estimate | str | int | None


@dataclass(frozen=True, slots=True)
class Table:
    """A result table: ``rows`` are (row label, cells in the order of ``columns``)."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...] = ()
    percent: bool = False
    """Whether its figures, which are fractions, are shown in percent, as the paper does."""
    judges: tuple[str, ...] | None = None
    """The judges it rests on, where that is not the one asked for; empty where it rests on none."""
    chart: Chart | None = None
    """How it is drawn, where it is: shares that fill a bar, bars side by side, or a heat map. Rows that are drawn together are
    called ``RUN / WHAT``; where shares stand one under the other ("turned"), ``RUN / WHAT / SHARE``, and each column is a bar."""


# --- JSON and digests ----------------------------------------------------------------------------


def canonical_json(value: Any) -> str:
    """JSON with one spelling a value: sorted keys, no spaces, UTF-8 text kept."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256, in hex, of a value's canonical JSON. Lone surrogates are hashed as they stand."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def part_to_json(part: Part) -> dict[str, Any]:
    """Return a part as a JSON object: ``{"text": ...}`` or ``{"sha256": ..., "suffix": ..., "modality": ...}``.

    ``marks`` stand in it only where there are any, so that what was stored before there were marks has the digest it had.
    """
    value = asdict(part)
    if value.get("marks") == ():
        del value["marks"]
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
