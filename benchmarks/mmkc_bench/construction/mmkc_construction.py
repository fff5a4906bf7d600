"""The construction of section 4.2: a text model edits true texts counterfactually, and every edit is checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.build import BuildOptions
from benchmarks.errors import SourceError, SpecError
from benchmarks.mmkc_bench.construction.mmkc_construction_prompts import checker_prompt, writer_prompt
from benchmarks.mmkc_bench.mmkc_constants import FACT_TYPES, LOGO_FACTS, PERSON_FACTS
from benchmarks.mmkc_bench.sources.altered_text import split_sentences
from benchmarks.mmkc_bench.sources.mmkc_released import MMKCSourceRow, add_options, read_row
from benchmarks.rows.files import RawRow, SkippedRow, read_rows
from benchmarks.rows.reader_types import Fields, RowProblem
from benchmarks.rubric import one_line
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, generate_all
from benchmarks.values import compare
from benchmarks.vocabulary import Choice, Decoding, Generation, Message, Request, Text, canonical_json

LAYOUT = (
    'a folder with knowledge.jsonl and the images: rows of {"instance", "image_path": [3], "knowledge", "answers"} for people '
    'and logos, or {"instance", "image_path": [3], "description", "answer", "kind": "ER" or "VS", "open_query"}'
)
ATTEMPTS = 3
"""The number of times a model is prompted before an item with unusable edits is dropped."""

KNOWLEDGE = "knowledge"

_QUESTIONS = {
    "PT": "What year was the person in the picture born?",
    "PL": "Which country are the people in the picture from?",
    "PC": "What is the occupation of the person in the picture?",
    "LT": "When was the brand associated with the logo established?",
    "LC": "Who founded the brand associated with this logo?",
    "LO": "What are the main products of the brand associated with this logo?",
}
"""The questions of Figures 20 and 21."""

_MAX_TOKENS = 512
_RETRY_TEMPERATURE = 0.7
_MAX_QUOTED = 400
_NUMBERED = re.compile(r"^\s*([0-9]{1,2})[.)]\s*(.+?)\s*$", re.MULTILINE)
_ARTICLE = re.compile(r"\b(an?) $", re.IGNORECASE)
_YEAR = re.compile(r"\b[0-9]{3,4}\b")


class RejectedEdit(Exception):
    """The reason why edits are unusable: the name of the check and its finding."""

    def __init__(self, check: str, reason: str, reply: str = "") -> None:
        self.check = check
        quoted = f"; reply: {canonical_json(reply[:_MAX_QUOTED])}" if reply else ""
        super().__init__(f"{check}: {reason}{quoted}")


@dataclass(frozen=True, slots=True)
class _Item:
    """A fact to be altered: the true text, the answer in it, and the question it answers."""

    row: RawRow
    kind: str
    text: str
    own: str
    question: str


@dataclass(frozen=True, slots=True)
class _Edits:
    """The two accepted texts, and the answer of each."""

    texts: tuple[str, str]
    answers: tuple[str, str]


def construct(
    place: str, options: BuildOptions, collected: Sequence[RawRow | SkippedRow] | None = None
) -> Iterator[MMKCSourceRow | SkippedRow]:
    """Return the examples made from the true texts in ``place``, and the rejected items with the check that failed.

    ``collected`` are rows of such texts that were made already; then ``place`` is not read.

    Raises SpecError without a writing model, SourceError if the folder has another layout, and RashomonError if a model
    becomes unavailable; the next build reuses the replies already received.
    """
    if options.writer is None:
        raise SpecError(
            "the construction needs a writing model: add --writer MODEL, and optionally --checker MODEL to check its answers."
        )
    items: list[_Item] = []
    skipped: list[MMKCSourceRow | SkippedRow] = []
    for row in _rows(place) if collected is None else collected:
        outcome = row if isinstance(row, SkippedRow) else _items(row)
        if isinstance(outcome, SkippedRow):
            skipped.append(outcome)
        else:
            items += outcome
    edited = _write_edits(items, options.writer, options.seed)
    if options.checker is not None:
        edited = _check_edits(items, edited, options.checker, options.seed)
    return add_options([*skipped, *_source_rows(items, edited)], options.seed, KNOWLEDGE)


def read_edits(reply: str, kind: str, text: str, own: str, question: str = "") -> _Edits:
    """Return the two edits in a reply.

    Raises RejectedEdit unless each alters only the answer ``own`` of ``text``, and the three answers to ``question`` differ.
    """
    numbered = _NUMBERED.findall(visible_answer(reply))
    if [number for number, _ in numbered] != ["1", "2"]:
        raise RejectedEdit("unparsed", "the reply is not two numbered texts", reply)
    first, second = (edit for _, edit in numbered)
    answers = (
        counter_answer(first, kind, text, own, reply, question),
        counter_answer(second, kind, text, own, reply, question),
    )
    result = compare(answers[0], answers[1], question)
    if result.verdict != "different":
        raise RejectedEdit("same-answers", f"{answers[0]!r} and {answers[1]!r}: {result.reason}", reply)
    return _Edits((first, second), answers)


def counter_answer(edit: str, kind: str, text: str, own: str, reply: str = "", question: str = "") -> str:
    """Return the answer that ``edit`` gives in place of ``own``. Raises RejectedEdit if anything else in ``text`` is altered.

    A fact about a person or a logo is altered in one sentence only, a name or a meaning wherever it occurs. The article
    before the answer may change with it ("an American", "a Canadian").
    """
    scope, edited = text, edit
    if kind in FACT_TYPES:
        before, after = split_sentences(text), split_sentences(edit)
        changed_places = [place for place, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]]
        if len(before) != len(after) or len(changed_places) != 1:
            raise RejectedEdit("one-sentence", "the edit alters none or more than one sentence", reply)
        scope, edited = before[changed_places[0]], after[changed_places[0]]
    pieces = re.split(rf"(?<!\w){re.escape(own)}(?!\w)", scope)
    if len(pieces) < 2:
        raise RejectedEdit("answer-not-there", "the altered sentence does not have the answer", reply)
    patterns = [_ARTICLE.sub("(?:a|an) ", re.escape(piece).replace(r"\ ", " ")) for piece in pieces]
    match = re.fullmatch(patterns[0] + "(?P<counter>.+?)" + "(?P=counter)".join(patterns[1:]), edited)
    if match is None:
        raise RejectedEdit("something-else", "the edit alters more than the answer", reply)
    counter = match["counter"].strip()
    result = compare(counter, own, question)
    if not counter or result.verdict != "different":
        raise RejectedEdit("same-as-true", f"the edit says {counter!r}, the true text {own!r}: {result.reason}", reply)
    if kind in ("PT", "LT") and _YEAR.search(own) and not _YEAR.search(counter):
        raise RejectedEdit("no-year", f"{counter!r} is no year", reply)
    return counter


def _write_edits(items: Sequence[_Item], writer: TextModel, seed: int) -> dict[int, _Edits | RejectedEdit]:
    """Return the edits of each item by index; open items are prompted in one batch, and rejected ones again."""
    outcomes: dict[int, _Edits | RejectedEdit] = {}
    for attempt in range(ATTEMPTS):
        # A greedy reply is the same under any seed, so retries sample.
        decoding = Decoding(
            max_tokens=_MAX_TOKENS, seed=seed + attempt, temperature=_RETRY_TEMPERATURE if attempt else 0.0
        )
        open_ = [place for place in range(len(items)) if not isinstance(outcomes.get(place), _Edits)]
        texts = {place: writer_prompt(items[place].kind, items[place].text) for place in open_}
        for place, reply in _ask(writer, texts, decoding).items():
            item = items[place]
            try:
                if reply.finish_reason == "error":
                    raise RejectedEdit("error", f"the writer gave no reply ({reply.error})")
                outcomes[place] = read_edits(reply.text, item.kind, item.text, item.own, item.question)
            except RejectedEdit as rejected:
                outcomes[place] = rejected
    return outcomes


def _check_edits(
    items: Sequence[_Item], edited: Mapping[int, _Edits | RejectedEdit], checker: TextModel, seed: int
) -> dict[int, _Edits | RejectedEdit]:
    """Return the edits, rejecting those in which ``checker`` finds an answer of another kind, or not wrong."""
    outcomes = dict(edited)
    for number in range(2):
        texts = {
            place: checker_prompt(items[place].question, items[place].own, edits.answers[number])
            for place, edits in outcomes.items()
            if isinstance(edits, _Edits)
        }
        replies = _ask(checker, texts, Decoding(max_tokens=_MAX_TOKENS, seed=seed), Choice(("yes", "no")))
        for place, reply in replies.items():
            answer = visible_answer(reply.text).strip(" .\"'*").casefold()
            if reply.finish_reason == "error":
                outcomes[place] = RejectedEdit("error", f"the checker gave no reply ({reply.error})")
            elif answer != "yes":
                reason = (
                    "the checker finds an answer of another kind, or not wrong" if answer == "no" else "no yes or no"
                )
                outcomes[place] = RejectedEdit("checked", reason, texts[place])
    return outcomes


def _ask(
    model: TextModel, texts: Mapping[int, str], decoding: Decoding, form: Choice | None = None
) -> dict[int, Generation]:
    """Return the replies by index. Raises ModelError if a model answers none of many requests."""
    requests = {
        place: Request(f"mmkc-{place}", 0, (Message("user", (Text(text),)),), decoding, form)
        for place, text in texts.items()
    }
    places = {request.id: place for place, request in requests.items()}
    return {places[request]: reply for request, reply in generate_all(model, requests.values()).items()}


def _source_rows(
    items: Sequence[_Item], edited: Mapping[int, _Edits | RejectedEdit]
) -> Iterator[MMKCSourceRow | SkippedRow]:
    for place, item in enumerate(items):
        edits = edited.get(place, RejectedEdit("error", "no reply came"))
        if isinstance(edits, RejectedEdit):
            yield SkippedRow(KNOWLEDGE, f"{item.row.where} ({item.kind})", str(edits))
            continue
        for result in read_row(replace(item.row, fields=_published_fields(item, edits)), (item.kind,)):
            yield replace(result, source=KNOWLEDGE) if isinstance(result, SkippedRow) else result


def _published_fields(item: _Item, edits: _Edits) -> Fields:
    """Return an item as a row of the published data, with the three answers in words."""
    common_fields = {
        name: item.row.fields[name] for name in ("instance", "image_path", "type") if name in item.row.fields
    }
    answers = {f"mis_answer_{number}": answer for number, answer in enumerate(edits.answers, 1)}
    if item.kind not in FACT_TYPES:
        texts = {f"incorrect_description_{number}": text for number, text in enumerate(edits.texts, 1)}
        return common_fields | {
            "description": item.text,
            "mis_description": texts | answers,
            "open_query": item.question,
            "open_groundtruth": item.own,
        }
    fact = FACT_TYPES[item.kind]
    texts = {f"mis_knowledge{number}": text for number, text in enumerate(edits.texts, 1)}
    return common_fields | {
        "knowledge": item.text,
        "mis_knowledge": {fact.edits: texts | answers},
        f"open_query_{fact.name}": item.question,
        f"open_groundtruth_{fact.name}": item.own,
    }


def _rows(place: str) -> Iterator[RawRow | SkippedRow]:
    root = Path(place).expanduser()
    file = root / "knowledge.jsonl" if root.is_dir() else root
    if not file.is_file():
        raise SourceError(f"mmkc-bench cannot be constructed from {place}; expected {LAYOUT}.")
    yield from read_rows(file, file.parent, KNOWLEDGE, (file.parent,))


def _items(row: RawRow) -> list[_Item] | SkippedRow:
    try:
        answers = row.fields.get("answers")
        if isinstance(answers, Mapping):
            return _facts(row, answers)
        kind = row.fields.get("kind")
        if kind not in ("ER", "VS"):
            raise RowProblem('the row has neither "answers" to facts nor a "kind", ER or VS')
        text, own_text = _line(row.fields, "description"), _line(row.fields, "answer")
        return [_item(row, kind, text, own_text, _line(row.fields, "open_query"))]
    except RowProblem as problem:
        return SkippedRow(KNOWLEDGE, row.where, str(problem))


def _facts(row: RawRow, answers: Mapping[str, Any]) -> list[_Item]:
    text = _line(row.fields, "knowledge")
    named = {fact.name.casefold(): kind for kind, fact in (PERSON_FACTS | LOGO_FACTS).items()}
    unknown = [str(name)[:40] for name in answers if str(name).casefold() not in named]
    if unknown or not answers:
        raise RowProblem(f"the answers are not of {', '.join(named)}")
    kinds = {named[str(name).casefold()]: name for name in answers}
    return [_item(row, kind, text, _line(answers, name), _QUESTIONS[kind]) for kind, name in kinds.items()]


def _item(row: RawRow, kind: str, text: str, own: str, question: str) -> _Item:
    if own not in text:
        raise RowProblem("the text does not have the answer")
    for name in ("instance", "image_path"):
        if name not in row.fields:
            raise RowProblem(f"the row has no {name}")
    return _Item(row, kind, text, own, question)


def _line(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowProblem(f"the row has no {name}")
    return one_line(value)
