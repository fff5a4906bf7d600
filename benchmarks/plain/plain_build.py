"""The build of a plain data set: published rows in, one row for each condition out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.cmc_bench.construction.cmc_candidates import answer_problem, text_problem
from benchmarks.cmc_bench.construction.cmc_passages import states
from benchmarks.errors import MediaError, NothingUsableError, SourceError
from benchmarks.hash_collections import hash64
from benchmarks.media import image_suffix, load_image
from benchmarks.plain.plain_declaration import SOURCE, Declaration
from benchmarks.rows.cell_images import cell_image, image_values
from benchmarks.rows.files import (
    MISSING_IMAGE,
    NO_IMAGE,
    Loader,
    RawRow,
    SkippedRow,
    list_files,
    list_folders,
    read_rows,
    text_field,
)
from benchmarks.rows.nested_keys import lookup
from benchmarks.rows.placeholder_texts import is_placeholder
from benchmarks.rows.reader_types import Fields, RowProblem, shortened
from benchmarks.rows.sources import existing_path, layout_error, resolve_sources, top_reasons
from benchmarks.values import compare
from benchmarks.values.dates_and_times import Moment
from benchmarks.values.parse_value import Amount, parse
from benchmarks.vocabulary import DOCUMENT, Media, digest

REPEATED = "repeated: another row, of this split or another, has its question, image and values"
NO_CONFLICT = "image and text have the same value"
SEVERAL_IMAGES = "the row has several images; leave the one that is meant"
NOT_TEXT = "is not a text"
OTHER_FILE = "the file has none of the columns"
NOT_NAMED = "not named"
UNSTATED = "the text does not state its value"
UNKNOWN = "unknown: "
"""The beginning of a conflict type that the data set's declaration does not name."""

_KINDS = (".parquet", ".jsonl", ".json", ".csv")
_LONGEST_TYPE = 60
_LONGEST_NAME = 200
_LISTED = 30


def build(data_set: Declaration, sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Build the rows of a file, or of all files in a folder and the folders in it, into ``out``; see ``Benchmark.build``.

    Raises SourceError for files without the data set's columns, NothingUsableError if no row can be used.
    """
    types, conditions = Counter[str](), Counter[str]()
    seen: set[int] = set()
    example = ""
    with BuildWriter(out) as writer:
        for _, place in resolve_sources(data_set.name, (SOURCE,), sources):
            for raw in _rows(data_set, place):
                try:
                    row = _checked(data_set, raw, writer)
                    if hash64(row["id"]) in seen:
                        raise RowProblem(REPEATED)
                except RowProblem as problem:
                    where = raw.row if isinstance(raw, SkippedRow) else raw.where
                    writer.add_skipped(SOURCE, where, str(problem), detail=problem.place)
                    example = example or (f"; first: {where}, {problem.place}" if problem.place else "")
                    continue
                seen.add(hash64(row["id"]))
                if isinstance(raw, RawRow) and (warning := _warning(data_set, row)):
                    writer.add_warning(raw.where, warning)
                types[row["strata"]["type"]] += 1
                for instance in _instances(data_set, row):
                    conditions[instance["condition"]] += 1
                    writer.add_row(instance)
        if not seen:
            raise NothingUsableError(f"no row of {data_set.name} can be used ({top_reasons(writer.skipped)}{example}).")
        manifest = {
            "benchmark": data_set.name,
            "seed": options.seed,
            "examples": {"rows": len(seen)},
            "conditions": dict(conditions),
            "types": dict(sorted(types.items())),
            "sources": {SOURCE: {"usable_rows": len(seen)}},
        }
        return writer.finish(manifest, replace=options.replace)


def type_name(data_set: Declaration, value: str) -> str:
    """Return the conflict type of a row as it is displayed; one that the data set does not declare is named as unknown."""
    if not value:
        return NOT_NAMED
    if value in data_set.types:
        return value
    is_plain = len(value) <= _LONGEST_TYPE and value.isprintable()
    return f"{UNKNOWN}{value if is_plain else ascii(value)[:_LONGEST_TYPE] + digest(value)[:8]}"


def _rows(data_set: Declaration, place: str) -> Iterator[RawRow | SkippedRow]:
    """Yield the rows of the files at ``place``, with their fields by role. Raises SourceError for missing columns."""
    names = {role: " or ".join(keys) for role, keys in data_set.columns.items()}
    layout = f"a {', '.join(_KINDS)} file of rows with the columns {', '.join(names.values())}, or a folder of these"
    root = existing_path(SOURCE, place, layout)
    folder = root.parent if root.is_file() else root
    inner = [] if root.is_file() else [root, *list_folders(root)]
    known = {key for keys in data_set.columns.values() for key in keys}
    files = [root] if root.is_file() else [file for place in inner for file in list_files(place, *_KINDS)]
    if not files:
        raise layout_error(data_set.name, root, layout)
    others: list[tuple[Path, Mapping[str, Any]]] = []
    for file in files:
        first = None
        for raw in read_rows(file, folder, SOURCE):
            if isinstance(raw, SkippedRow):
                yield raw
                continue
            if first is None and known.isdisjoint(raw.fields):
                others.append((file, raw.fields))
                yield SkippedRow(SOURCE, file.name, OTHER_FILE)
                break
            examples = _examples(data_set, raw)
            if first is None and not any(isinstance(example, SkippedRow) for example in examples):
                _check_columns(data_set, file, first := raw.fields)
            yield from examples
    if len(others) == len(files):
        _check_columns(data_set, *others[0])


def _check_columns(data_set: Declaration, file: Path, fields: Mapping[str, Any]) -> None:
    """Raise SourceError for the needed columns that the first row lacks, with the closest of those that it has."""
    missing = [keys for keys in data_set.columns.values() if not any(_has(fields, key) for key in keys)]
    if not missing:
        return
    known = [shortened(str(key), _LONGEST_TYPE) for key in fields]
    lacking = []
    for keys in missing:
        close = get_close_matches(keys[0], known, n=1, cutoff=0.5)
        lacking.append(f"{' or '.join(keys)}{f' (closest: {close[0]})' if close else ''}")
    present = f"has {', '.join(known[:_LISTED])}" if known else "has no columns"
    raise SourceError(
        f"{file.name} has no column {', '.join(lacking)}, which {data_set.name} reads; it {present}. "
        "If a release renamed its columns, rename them back in a copy, or add the new names to the data set's declaration."
    )


def _by_role(data_set: Declaration, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row by role; a list of one value is that value."""
    roles = {**data_set.columns, **data_set.optional_columns}
    values = {
        role: next((lookup(fields, key) for key in keys if _has(fields, key)), None) for role, keys in roles.items()
    }
    return {role: value[0] if isinstance(value, list) and len(value) == 1 else value for role, value in values.items()}


def _has(fields: Fields, key: str) -> bool:
    return key in fields or lookup(fields, key) is not None


def _examples(data_set: Declaration, raw: RawRow) -> Sequence[RawRow | SkippedRow]:
    """Return the examples of a row, with their fields by role; the reason for a row that the data set leaves out."""
    try:
        by_role = replace(raw, fields=_by_role(data_set, raw.fields))
        return [replace(raw, fields=fields) for fields in data_set.examples(by_role)]
    except RowProblem as problem:
        return [SkippedRow(SOURCE, raw.where, str(problem))]


def _checked(data_set: Declaration, raw: RawRow | SkippedRow, writer: BuildWriter) -> dict[str, Any]:
    """Return a usable row with its image added to the build. Raises RowProblem for any other."""
    if isinstance(raw, SkippedRow):
        raise RowProblem(raw.reason, raw.place)
    texts = {role: text_field(raw.fields, role) for role in raw.fields if role != "image"}
    _check_texts(raw.fields, texts)
    answers = {role.removesuffix("_answer"): value for role, value in texts.items() if role.endswith("_answer")}
    problem = text_problem(texts["question"], "".join(texts.values()))
    problem = problem or next(filter(None, map(answer_problem, answers.values())), None)
    if not problem and data_set.has_text and not texts["text"]:
        problem = "the row has no text"
    if problem:
        raise RowProblem(problem)
    if len(answers) == 2 and compare(answers["image"], answers["text"], texts["question"]).verdict == "same":
        raise RowProblem(NO_CONFLICT, shortened(answers["image"], _LONGEST_TYPE))
    image = _add_image(data_set, raw, writer)
    kind = texts.get("type", "")
    fields = {**raw.fields, **texts, "type": "" if is_placeholder(kind) or kind == "None" else kind}
    condition = data_set.condition(fields)
    content = [texts["question"], image.sha256, texts.get("text", ""), answers, condition]
    example = f"{data_set.name}-{digest(content)[:16]}"
    group = texts.get("group", "")
    return {
        "id": f"{example}/{condition}",
        "group": f"{data_set.name}-{digest(group)[:16]}" if group else example,
        "condition": condition,
        "question": texts["question"],
        "image": {"sha256": image.sha256, "suffix": image.suffix},
        "text": texts.get("text") or None,
        "references": answers,
        "strata": _strata(data_set, texts, fields["type"]),
        "columns": {role: texts[role] for role in data_set.optional_columns if texts.get(role)},
    }


def _add_image(data_set: Declaration, raw: RawRow, writer: BuildWriter) -> Media:
    """Add the image of a row to the build. Raises RowProblem where it cannot be used."""
    load = _image(data_set, raw)
    try:
        data = load()
        load_image(data)
    except MediaError as error:
        raise RowProblem(f"the image {error.reason}") from error
    return writer.add_media(data, image_suffix(data) or "")


def _strata(data_set: Declaration, texts: Mapping[str, str], kind: str) -> dict[str, str]:
    document = {DOCUMENT: texts[DOCUMENT]} if texts.get(DOCUMENT) else {}
    return {
        **{role: texts.get(role, "") for role in data_set.table_strata},
        "type": type_name(data_set, kind),
        **document,
    }


def _check_texts(fields: Fields, texts: Mapping[str, str]) -> None:
    """Raise RowProblem for a question, text or answer that is there, but is neither a text nor a number."""
    for role, text in texts.items():
        noun = "answer" if role.endswith("_answer") else role
        value = fields[role]
        if noun not in ("question", "text", "answer") or text or value in ([], {}):
            continue
        kinds = {bool: f"it is {str(value).lower()}, without quotes", list: "it is a list", dict: "it is an object"}
        if kind := kinds.get(type(value)):
            raise RowProblem(f"the {noun} {NOT_TEXT}: {kind}")


def _warning(data_set: Declaration, row: Mapping[str, Any]) -> str:
    """Return the warnings about a row that is used; "" for none."""
    unstated = _unstated(row) if data_set.states_values else ""
    return "; ".join(filter(None, (unstated, data_set.answer_warning(row))))


def _unstated(row: Mapping[str, Any]) -> str:
    """Return a warning if a row's text does not state the number or the date that it is said to state; "" otherwise."""
    text, value = row["text"], row["references"].get("text")
    if not (text and value and isinstance(parse(value), Amount | Moment)) or states(text, value, row["question"]):
        return ""
    return f"{UNSTATED}, {shortened(value, _LONGEST_TYPE)!r}"


def _image(data_set: Declaration, raw: RawRow) -> Loader:
    """Return the loader of a row's image: bytes, base64, or the first file that its name stands for. Raises RowProblem."""
    images = image_values(raw.fields["image"])
    if len(images) != 1:
        raise RowProblem(f"{SEVERAL_IMAGES}: it has {len(images)}" if images else NO_IMAGE)
    name = images[0]
    if isinstance(name, bool):
        raise RowProblem(f"the image {NOT_TEXT}: it is {str(name).lower()}, without quotes")
    if isinstance(name, int | float):
        name = str(name) if name == name else ""
    files = [file.format(name.strip()) for file in data_set.image_files] if isinstance(name, str) else [name]
    for file in files:
        try:
            return cell_image(raw, file)
        except RowProblem as problem:
            if str(problem) != MISSING_IMAGE:
                raise
    places = " or ".join(shortened(str(file), _LONGEST_NAME) for file in files[1:] or files)
    raise RowProblem(MISSING_IMAGE, places)


def _instances(data_set: Declaration, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row of the data set, and each of its two sources alone."""
    yield {**row}
    example = row["id"].removesuffix(f"/{row['condition']}")
    for source, other in (("image", "text"), ("text", "image")):
        if data_set.has_text and (condition := f"{source}-only") in data_set.conditions:
            alone = {source: row["references"][source]}
            yield {**row, "id": f"{example}/{condition}", "condition": condition, other: None, "references": alone}
