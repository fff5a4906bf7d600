"""The collection of true knowledge (section 4.1, Appendix G.1): entities, their texts, summaries and questions.

Texts are extracts of Wikipedia on this machine, or rows; nothing is fetched. A text model lists entities, summarises
their texts and asks about them. Every reply is checked against the text, and the result is rows of ``knowledge.jsonl``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.build import BuildOptions
from benchmarks.errors import SourceError
from benchmarks.mmkc_bench.construction.knowledge_collection_prompts import (
    entities_prompt,
    facts_form,
    facts_prompt,
    question_prompt,
    standard_knowledge,
    summary_prompt,
)
from benchmarks.mmkc_bench.mmkc_constants import LOGO_FACTS, PERSON_FACTS
from benchmarks.rows.files import RawRow, SkippedRow, list_files, read_rows
from benchmarks.rows.reader_types import RowProblem, is_present
from benchmarks.rubric import one_line
from benchmarks.text.answer_text import visible_answer
from benchmarks.text.json_replies import UnreadableReply, line_field, read_object
from benchmarks.text_model import TextModel, generate_all
from benchmarks.vocabulary import Decoding, Form, Message, Request, Text

ENTITIES = "entities"
LAYOUT = (
    'a folder with entities.jsonl, rows of {"instance", "type"}, or types.jsonl, rows of {"type", "count"}; with '
    'extracts.jsonl, rows of {"title", "extract"}; and with three images of each entity, in images/NAME/'
)

MIN_WORDS = 30
"""The number of words below which a text is left out (Appendix G.1)."""

MIN_IMAGES = 3
"""The number of images of an entity (Appendix G.1)."""

ATTEMPTS = 3
"""The number of times a model is prompted before an entity with unusable replies is left out."""

MAX_LISTED = 200
"""The most entities that a model lists for a type."""

_LONGEST_NAME = 120
_LONGEST_TEXT = 20_000
_LONGEST_QUESTION = 300
_MOST_WORDS = 150
_MAX_TOKENS = 512
_RETRY_TEMPERATURE = 0.7
_PICTURES = (".png", ".jpg", ".jpeg", ".webp")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])?\s*")
_THEMES = {"people": PERSON_FACTS, "logo": LOGO_FACTS}

_Parsed = TypeVar("_Parsed")


class UnusableReply(Exception):
    """The reason why a reply is unusable: the name of the check and its finding."""


@dataclass(frozen=True, slots=True)
class _Entity:
    """An entity with its text; ``facts`` is empty where it is to be recognised, or where the facts are still unknown."""

    row: RawRow
    name: str
    type: str
    theme: str
    text: str
    images: tuple[str, ...]
    views: int = 0
    facts: Mapping[str, str] = field(default_factory=dict)


def collect(place: str, options: BuildOptions, writer: TextModel) -> list[RawRow | SkippedRow]:
    """Return rows of ``knowledge.jsonl`` for the entities in ``place``, and the entities that were left out with the reason.

    Of each type at most ``options.per_stratum`` entities are taken, those with the most views first. Raises SourceError
    if the folder has another layout, ModelError if the writer answers nothing.
    """
    root = Path(place).expanduser()
    if not root.is_dir():
        raise SourceError(f"there is no folder {place}; entities are read from {LAYOUT}.")
    skipped: list[RawRow | SkippedRow] = []
    rows = [*_entity_rows(root, options, writer, skipped)]
    extracts = _extracts(root, skipped)
    entities: list[_Entity] = []
    names: set[str] = set()
    for row in rows:
        try:
            entity = _entity(row, root, extracts)
            if entity.name.casefold() in names:
                raise RowProblem("repeated: another row has this entity")
            names.add(entity.name.casefold())
            entities.append(entity)
        except RowProblem as problem:
            skipped.append(SkippedRow(ENTITIES, _where(row), str(problem)))
    taken = _most_viewed(entities, options.per_stratum, skipped)
    return [*skipped, *_knowledge_rows(taken, writer, options.seed)]


def _entity_rows(
    root: Path, options: BuildOptions, writer: TextModel, skipped: list[RawRow | SkippedRow]
) -> Iterator[RawRow]:
    """Yield the rows of entities: those of the file, and those that the writer lists for each type."""
    files = [name for name in ("entities.jsonl", "types.jsonl") if is_present(root / name)]
    if not files:
        raise SourceError(f"{root} has no entities; expected {LAYOUT}.")
    types: list[RawRow] = []
    for name in files:
        for row in read_rows(root / name, root, ENTITIES, (root,)):
            if isinstance(row, SkippedRow):
                skipped.append(row)
            elif name == "types.jsonl":
                types.append(row)
            else:
                yield row
    for row in types:
        kind, count = row.fields.get("type"), row.fields.get("count", 20)
        if not _is_name(kind) or not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_LISTED:
            skipped.append(SkippedRow(ENTITIES, row.where, f"the row has no type, or no count of 1 to {MAX_LISTED}"))
            continue
        prompts = {0: entities_prompt(str(kind), count)}
        (listed,) = _ask(writer, f"list-{kind}", prompts, lambda _, reply: _names(reply), options.seed).values()
        if isinstance(listed, str):
            skipped.append(SkippedRow(ENTITIES, f"{row.where} ({kind})", listed))
            continue
        shared = {key: value for key, value in row.fields.items() if key in ("type", "theme")}
        for name in listed[:count]:
            yield replace(row, where=f"{row.where} ({name})", fields=shared | {"instance": name})


def _names(reply: str) -> list[str]:
    names = [_BULLET.sub("", line).strip(" \"'*.") for line in reply.splitlines()]
    names = list(dict.fromkeys(name for name in names if _is_name(name)))
    if not names:
        raise UnusableReply("list: the reply has no names, one a line")
    return names


def _extracts(root: Path, skipped: list[RawRow | SkippedRow]) -> Mapping[str, Mapping[str, Any]]:
    """Return the extracts by title in lower case; the first of a title counts."""
    extracts: dict[str, Mapping[str, Any]] = {}
    file = root / "extracts.jsonl"
    for row in read_rows(file, root, ENTITIES, (root,)) if is_present(file) else ():
        if isinstance(row, SkippedRow):
            skipped.append(row)
        elif _is_name(row.fields.get("title")) and isinstance(row.fields.get("extract"), str):
            extracts.setdefault(str(row.fields["title"]).strip().casefold(), row.fields)
        else:
            skipped.append(SkippedRow(ENTITIES, row.where, "the row has no title or no extract"))
    return extracts


def _entity(row: RawRow, root: Path, extracts: Mapping[str, Mapping[str, Any]]) -> _Entity:
    name = row.fields.get("instance")
    if not _is_name(name):
        raise RowProblem("the row has no instance, a name on one line")
    name = str(name).strip()
    kind, theme = row.fields.get("type"), row.fields.get("theme", "")
    if not _is_name(kind):
        raise RowProblem("the row has no type")
    if theme not in ("", *_THEMES):
        raise RowProblem(f"the theme is not one of {', '.join(_THEMES)}")
    extract = extracts.get(name.casefold(), {})
    text = row.fields.get("text", extract.get("extract"))
    if not isinstance(text, str) or not text.strip():
        raise RowProblem("no text: the row has none, and no extract has its title")
    text = one_line(text)[:_LONGEST_TEXT]
    words = len(text.split())
    if words < MIN_WORDS:
        raise RowProblem(f"short: the text has fewer than {MIN_WORDS} words")
    views = extract.get("views", row.fields.get("views", 0))
    return _Entity(
        row,
        name,
        str(kind).strip(),
        theme,
        text,
        _images(row, root, name),
        views if isinstance(views, int) and not isinstance(views, bool) else 0,
        _given_facts(row, theme, text),
    )


def _images(row: RawRow, root: Path, name: str) -> tuple[str, ...]:
    """Return the entity's images: those the row names, or the first of its folder. Raises RowProblem for fewer than three."""
    named = row.fields.get("image_path")
    if isinstance(named, list):
        images = [path for path in named if isinstance(path, str)]
    else:
        # A name is text of a model or a data set: it must be the name of one folder.
        folder = root / "images" / name
        is_plain = name not in (".", "..") and not set(name) & set("/\\\0")
        is_folder = is_plain and folder.is_dir() and not folder.is_symlink()
        images = [file.relative_to(root).as_posix() for file in list_files(folder, *_PICTURES)] if is_folder else []
    if len(images) < MIN_IMAGES:
        raise RowProblem(f"images: there are fewer than {MIN_IMAGES}")
    return tuple(images[:MIN_IMAGES])


def _given_facts(row: RawRow, theme: str, text: str) -> Mapping[str, str]:
    facts = row.fields.get("facts")
    if facts is None or not theme:
        return {}
    names = {fact.name for fact in _THEMES[theme].values()}
    if not isinstance(facts, Mapping) or set(facts) != names or not all(_is_name(value) for value in facts.values()):
        raise RowProblem(f"the facts are not {', '.join(sorted(names))}")
    return {name: str(value).strip() for name, value in facts.items()}


def _most_viewed(entities: Sequence[_Entity], most: int, skipped: list[RawRow | SkippedRow]) -> list[_Entity]:
    """Return at most ``most`` entities of each type, by views; equal ones in their order."""
    counts: Counter[str] = Counter()
    taken: set[str] = set()
    for entity in sorted(entities, key=lambda entity: -entity.views):
        counts[entity.type] += 1
        if counts[entity.type] <= most:
            taken.add(entity.name)
        else:
            skipped.append(SkippedRow(ENTITIES, _where(entity.row), "enough: no more entities of this type are wanted"))
    return [entity for entity in entities if entity.name in taken]


def _knowledge_rows(entities: Sequence[_Entity], writer: TextModel, seed: int) -> Iterator[RawRow | SkippedRow]:
    """Have texts summarised, facts found and questions asked; yield each entity's row, or why it has none."""
    themed = {i: entity for i, entity in enumerate(entities) if entity.theme}
    plain = {i: entity for i, entity in enumerate(entities) if not entity.theme}
    summaries = _ask(
        writer,
        "summary",
        {i: summary_prompt(entity.name, entity.text) for i, entity in plain.items()},
        lambda i, reply: _summary(reply, plain[i]),
        seed,
    )
    described = {i: entity for i, entity in plain.items() if isinstance(summaries[i], _Summary)}
    questions = _ask(
        writer,
        "question",
        {i: question_prompt(entity.type, entity.name, str(summaries[i])) for i, entity in described.items()},
        lambda i, reply: _question(reply, described[i]),
        seed,
    )
    unknown = {i: entity for i, entity in themed.items() if not entity.facts}
    found = _facts_of(unknown, writer, seed)
    for i, entity in enumerate(entities):
        common: dict[str, Any] = {"instance": entity.name, "type": entity.type, "image_path": list(entity.images)}
        if entity.theme:
            facts = entity.facts or found[i]
            if isinstance(facts, str):
                yield SkippedRow(ENTITIES, _where(entity.row), facts)
                continue
            fields = common | {
                "knowledge": standard_knowledge(entity.theme, entity.name, facts),
                "answers": dict(facts),
            }
        elif not isinstance(summaries[i], _Summary):
            yield SkippedRow(ENTITIES, _where(entity.row), str(summaries[i]))
            continue
        elif not isinstance(questions[i], _Question):
            yield SkippedRow(ENTITIES, _where(entity.row), str(questions[i]))
            continue
        else:
            description = f"This is an image of {entity.name}. {summaries[i]}"
            asked = {"kind": "ER", "answer": entity.name, "open_query": str(questions[i])}
            fields = common | {"description": description} | asked
        yield replace(entity.row, fields=fields)


class _Summary(str):
    """An accepted summary."""


class _Question(str):
    """An accepted question."""


def _summary(reply: str, entity: _Entity) -> _Summary:
    text = one_line(reply).strip(" \"'*")
    words = len(text.split())
    if not text.isprintable() or not 5 <= words <= _MOST_WORDS:
        raise UnusableReply(f"summary: it does not have 5 to {_MOST_WORDS} words")
    if entity.name.casefold() not in text.casefold():
        raise UnusableReply("summary: it does not name the entity")
    invented = set(_NUMBER.findall(text)) - set(_NUMBER.findall(entity.text))
    if invented:
        raise UnusableReply("summary: it has a number that the text does not have")
    return _Summary(text)


def _question(reply: str, entity: _Entity) -> _Question:
    line = next((line.strip(" \"'*") for line in reply.splitlines() if line.strip()), "")
    if not line.endswith("?") or not line.isprintable() or len(line) > _LONGEST_QUESTION:
        raise UnusableReply("question: the reply is no question on one line")
    if entity.name.casefold() in line.casefold():
        raise UnusableReply("question: it gives the answer away")
    return _Question(line)


def _facts_of(entities: Mapping[int, _Entity], writer: TextModel, seed: int) -> dict[int, Mapping[str, str] | str]:
    """Return the facts of people and logos that the writer finds in their texts, or why there are none."""
    facts: dict[int, Mapping[str, str] | str] = {}
    for theme, kinds in _THEMES.items():
        names = tuple(fact.name for fact in kinds.values())
        of_theme = {i: entity for i, entity in entities.items() if entity.theme == theme}

        def read(i: int, reply: str, names: tuple[str, ...] = names) -> Mapping[str, str]:
            try:
                fields = read_object(reply)
                values = {name: line_field(fields, name) for name in names}
            except UnreadableReply as error:
                raise UnusableReply(f"facts: the reply cannot be read ({error})") from error
            missing = [name for name, value in values.items() if value.casefold() not in entities[i].text.casefold()]
            if missing:
                raise UnusableReply(f"facts: the text does not have the {missing[0]}")
            return values

        prompts = {i: facts_prompt(theme, entity.name, entity.text) for i, entity in of_theme.items()}
        facts |= _ask(writer, f"facts-{theme}", prompts, read, seed, facts_form(names))
    return facts


def _ask(
    model: TextModel,
    step: str,
    prompts: Mapping[int, str],
    read: Callable[[int, str], _Parsed],
    seed: int,
    form: Form | None = None,
) -> dict[int, _Parsed | str]:
    """Return the parsed replies by index, or the reason why there is none; an unusable reply is requested again, warmer."""
    outcomes: dict[int, _Parsed | str] = {}
    waiting = dict(prompts)
    for attempt in range(ATTEMPTS):
        # A greedy reply is the same under any seed, so retries sample.
        decoding = Decoding(
            max_tokens=_MAX_TOKENS, seed=seed + attempt, temperature=_RETRY_TEMPERATURE if attempt else 0.0
        )
        requests = {
            i: Request(f"mmkc-{step}-{i}", 0, (Message("user", (Text(text),)),), decoding, form)
            for i, text in waiting.items()
        }
        replies = generate_all(model, requests.values())
        failed: dict[int, str] = {}
        for i, request in requests.items():
            reply = replies.get(request.id)
            if reply is None or reply.finish_reason == "error":
                outcomes[i] = failed[i] = f"error: the writer gave no reply ({reply.error if reply else 'none came'})"
                continue
            try:
                outcomes[i] = read(i, visible_answer(reply.text))
            except UnusableReply as error:
                outcomes[i] = failed[i] = str(error)
        waiting = {i: waiting[i] for i in failed}
    return outcomes


def _where(row: RawRow) -> str:
    name = row.fields.get("instance")
    return f"{row.where} ({str(name)[:60]})" if isinstance(name, str) and name not in row.where else row.where


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST_NAME and value.isprintable()
