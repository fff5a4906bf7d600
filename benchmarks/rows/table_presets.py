"""Tables and logs of other tools: their keys, and how to recognise each by the keys of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from benchmarks.rows.nested_keys import is_filled, lookup
from benchmarks.rows.reader_types import Fields, parse_literal

_LONGEST_PAGES = 1_000
_EXPECTED = re.compile(r"__expected\d*")
_TEMPLATE = re.compile(r"\{\{.*\}\}", re.DOTALL)
_KIND = re.compile(
    r"(?:not-)?(?:equals|i?contains(?:-any|-all)?|starts-with|regex|is-json|javascript|fn|python|file|similar|llm-rubric|grade"
    r"|model-graded-\w+|factuality|answer-relevance|context-[\w-]+|levenshtein|rouge-n|bleu|latency|cost|is-\w+|webhook)"
    r"(?:\([^)]*\))?"
)


@dataclass(frozen=True, slots=True)
class Preset:
    """The form of another tool's rows.

    ``title`` completes "read as". ``signatures`` are sets of keys in lower case; a file that has all of one is recognised.
    ``keys`` names the keys of each column. ``derive`` computes further columns of a row from its fields. ``folders`` are beside
    the file and hold its images.
    """

    title: str
    signatures: tuple[frozenset[str], ...]
    keys: Mapping[str, tuple[str, ...]]
    derive: Callable[[Fields], dict[str, Any]] = field(default=lambda fields: {})
    folders: tuple[str, ...] = ()
    read_too: frozenset[str] = frozenset()
    """Further keys that ``derive``, or the reading of images, takes values from."""
    is_log: bool = False
    """True if its rows hold what a retrieval system found for a question."""
    model_answers: tuple[str, ...] = ()
    """Keys that hold, or contain, a model's answer: none of them is ever proposed as the right one."""
    shares_images: bool = False
    """True if a row may hold the index of another row in the place of that row's image."""


def recognised(keys: Collection[str], *, table: bool) -> str:
    """Return the name of the preset whose signature is among the keys of a file's rows; empty if there is none.

    A table or log that has this project's own names is none of those that have others, unless the form calls a model's answer
    by one of these names.
    """
    names = set(keys)
    is_own = names.issuperset(("image", "question", "answer") if table else ("question", "passages", "images"))
    for name, preset in PRESETS.items():
        is_foreign = "answer" not in preset.model_answers and name not in _OWN_LAYOUTS
        if not (is_own and is_foreign) and any(signature <= names for signature in preset.signatures):
            return name
    return ""


def _vlmevalkit(fields: Fields) -> dict[str, Any]:
    """Return the question below its hint, and no text for the options that pandas wrote as missing."""
    columns: dict[str, Any] = {letter: "" for letter in ascii_lowercase if _is_missing(fields.get(letter))}
    hint, question = fields.get("hint"), fields.get("question")
    if isinstance(hint, str) and isinstance(question, str) and not _is_missing(hint) and question.strip():
        columns["question"] = f"{hint.strip()}\n{question.strip()}"
    return columns


def _is_missing(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("", "nan", "none")


def _mmlongbench(fields: Fields) -> dict[str, Any]:
    """Return the pages that hold the evidence, as the images."""
    file, pages = str(fields.get("doc_id") or "").strip(), fields.get("evidence_pages")
    if isinstance(pages, str) and len(pages) <= _LONGEST_PAGES:
        pages = parse_literal(pages.strip())
    if isinstance(pages, int):
        pages = [pages]
    if not file or not isinstance(pages, list):
        return {"image": None}
    file += "" if file.lower().endswith(".pdf") else ".pdf"
    return {"image": [f"{file}#page={page}" for page in pages if isinstance(page, int) and not isinstance(page, bool)]}


def _conversation(*places: str) -> Callable[[Fields], dict[str, Any]]:
    """Return a function that finds the last message of a user in one of these keys, and its images."""

    def derive(fields: Fields) -> dict[str, Any]:
        for messages in (lookup(fields, place) for place in places):
            if not isinstance(messages, list):
                continue
            texts = [m.get("content") for m in messages if isinstance(m, dict) and m.get("role") in ("user", "human")]
            if texts and isinstance(texts[-1], str):
                return {"question": texts[-1]}
            if texts and isinstance(texts[-1], list):
                parts = [part for part in texts[-1] if isinstance(part, dict)]
                question = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
                images = [part["image_url"] for part in parts if part.get("image_url")]
                return {"question": question, **({"image": images} if images else {})}
        return {}

    return derive


def _promptfoo(fields: Fields) -> dict[str, Any]:
    """Return the image's file, and the answer that an assertion names: one that equals it before one that contains it."""
    images = next(
        (value for key in (*_under(("vars",), *_IMAGES), *_IMAGES) if is_filled(value := lookup(fields, key))), None
    )
    columns: dict[str, Any] = {}
    if isinstance(images, str) and images.startswith("file://") and not images.startswith("file:///"):
        columns["image"] = images.removeprefix("file://")
    assertions = fields.get("assert")
    assertions = [item for item in assertions if isinstance(item, dict)] if isinstance(assertions, list) else []
    expected = [value.strip() for key, value in fields.items() if _EXPECTED.fullmatch(key) and isinstance(value, str)]
    assertions += [_assertion(text) for text in expected if text]
    for kinds in (("equals",), ("contains", "icontains")):
        values = [item.get("value") for item in assertions if item.get("type") in kinds]
        if len({str(value).strip().casefold() for value in values}) == 1:
            return {**columns, "answer": None if _TEMPLATE.search(str(values[0])) else values[0]}
    return {**columns, "answer": None}


def _assertion(text: str) -> dict[str, str]:
    """Return the assertion that a cell of promptfoo's CSV files writes: ``equals: 43``, or 43 alone, which means the same."""
    kind, colon, value = text.partition(":")
    is_kind = bool(colon) and _KIND.fullmatch(kind) is not None
    return {"type": kind, "value": value.strip()} if is_kind else {"type": "equals", "value": text}


def _under(parents: tuple[str, ...], *names: str) -> tuple[str, ...]:
    return tuple(f"{parent}.{name}" for parent in parents for name in names)


_QUESTIONS = ("question", "query", "user_input", "input", "prompt")
_PASSAGES = ("contexts", "retrieved_contexts", "context", "documents", "passages", "chunks")
_IMAGES = ("images", "image", "image_url", "page_images", "pages")
_ANSWERS = ("answer", "output", "expected", "reference", "ground_truth", "label")

_OWN_LAYOUTS = ("vlmevalkit", "mmlongbench-doc")
"""The presets whose files have this project's own names, and further keys that change what these mean."""

_RAGAS = "a ragas log, whose response is not the right answer"

PRESETS: Mapping[str, Preset] = {
    "vlmevalkit": Preset(
        "a VLMEvalKit table",
        tuple(
            frozenset({"index", "question", *other})
            for other in (("image_path",), ("image", "a", "b"), ("image", "hint"), ("image", "answer", "category"))
        ),
        {"image": ("image", "image_path"), "question": ("question",), "answer": ("answer",)},
        _vlmevalkit,
        ("images",),
        frozenset({"index", "hint"}),
        shares_images=True,
    ),
    "chartqa": Preset(
        "a ChartQA file",
        (frozenset({"imgname", "query", "label"}),),
        {"image": ("imgname",), "question": ("query",), "answer": ("label",)},
        folders=("png",),
    ),
    "mmlongbench-doc": Preset(
        "an MMLongBench-Doc file",
        (frozenset({"doc_id", "question", "answer", "evidence_pages"}),),
        {"question": ("question",), "answer": ("answer",), "document": ("doc_id",)},
        _mmlongbench,
        ("documents",),
        frozenset({"evidence_pages"}),
    ),
    "ragas": Preset(
        _RAGAS,
        tuple(frozenset({"user_input", other}) for other in ("retrieved_contexts", "response", "reference")),
        {"question": ("user_input",), "passage": ("retrieved_contexts",), "answer": ("reference",)},
        is_log=True,
        model_answers=("response",),
    ),
    "ragas-0.1": Preset(
        "a log of ragas before 0.2, whose answer is not the right one",
        tuple(
            frozenset({"question", contexts, other})
            for contexts in ("contexts", "retrieved_contexts")
            for other in ("answer", "ground_truth", "ground_truths")
        ),
        {
            "question": ("question",),
            "passage": ("contexts", "retrieved_contexts"),
            "answer": ("ground_truth", "ground_truths", "reference"),
        },
        is_log=True,
        model_answers=("answer", "response"),
    ),
    "langsmith": Preset(
        "a LangSmith export, whose outputs are not the right answer",
        (frozenset({"inputs", "outputs"}), frozenset({"inputs", "reference_outputs"})),
        {
            "question": (*_under(("inputs",), *_QUESTIONS), "inputs"),
            "passage": _under(("metadata", "inputs", "outputs"), *_PASSAGES),
            "image": _under(("inputs", "metadata", "outputs"), *_IMAGES),
            "answer": (*_under(("reference_outputs",), *_ANSWERS), "reference_outputs"),
        },
        _conversation("inputs.messages"),
        is_log=True,
        model_answers=("outputs",),
    ),
    "langfuse": Preset(
        "a Langfuse export, whose output is not the right answer",
        (
            frozenset({"input", "expectedoutput"}),
            frozenset({"input", "expected_output"}),
            frozenset({"input", "output", "metadata"}),
        ),
        {
            "question": (*_under(("input",), *_QUESTIONS), "input"),
            "passage": _under(("metadata", "input", "output"), *_PASSAGES),
            "image": _under(("input", "metadata"), *_IMAGES),
            "answer": tuple(
                key for name in ("expectedoutput", "expected_output") for key in (*_under((name,), *_ANSWERS), name)
            ),
        },
        _conversation("input", "input.messages"),
        is_log=True,
        model_answers=("output", "actual_output"),
    ),
    "promptfoo": Preset(
        "promptfoo tests",
        (frozenset({"vars"}), frozenset({"__expected"}), frozenset({"__expected1"})),
        {
            "question": (*_under(("vars",), *_QUESTIONS), *_QUESTIONS),
            "passage": (*_under(("vars",), *_PASSAGES), *_PASSAGES),
            "image": (*_under(("vars",), *_IMAGES), *_IMAGES),
        },
        _promptfoo,
        read_too=frozenset({"assert", "__expected", *(f"__expected{number}" for number in range(1, 10))}),
    ),
}
"""The presets by name. Keys as the tools write them: VLMEvalKit's image_base.py, ChartQA's JSON files, MMLongBench-Doc's
samples.json, ragas' SingleTurnSample (0.2) and evaluate (0.1), LangSmith's examples and runs, Langfuse's dataset items and
traces, promptfoo's test cases."""
