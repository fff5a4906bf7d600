"""Rows of a training: those to learn from, those to validate with, and those that cannot be used."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.engine.training.training_spec_and_recipes import TrainingSpec
from benchmarks.errors import ModelError, SourceError
from benchmarks.training.training_set import PARTS, ChatRow, TrainingSet
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file, write_error
from benchmarks.untrusted.safe_json import MAX_BYTES, OutsideJSONError, parse_json
from benchmarks.vocabulary import digest
from mlx_backends.core.error_text import one_line
from mlx_backends.training_settings import KEPT

_CHECK = "rows.json"
_NAMED = 5
"""The most unusable rows that an error names."""


def split_rows(training_set: TrainingSet, spec: TrainingSpec) -> dict[str, list[ChatRow]]:
    """Return the rows to learn from and those to validate with: the set's own, or a share of all if it has none.

    The latter are at most ``validation_rows``, drawn by the seed. Rows of one example or image stay together. Raises SourceError
    for a row that cannot be used.
    """
    rows = {part: list(training_set.rows(part)) for part in PARTS}
    learnt, validation = PARTS
    if not rows[validation] and spec.validation_share:
        held_out = _held_out(rows[learnt], spec)
        rows[validation] = [row for row in rows[learnt] if row.example in held_out]
        rows[learnt] = [row for row in rows[learnt] if row.example not in held_out]
    return {**rows, validation: _drawn(rows[validation], spec)}


def _held_out(rows: Sequence[ChatRow], spec: TrainingSpec) -> set[str]:
    """Return the keys of the rows that nothing is learnt from: a share of all, but few more rows than a validation takes."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.example] = counts.get(row.example, 0) + 1
    keys = sorted(counts, key=lambda key: digest([spec.seed, "validation", key]))
    left = len(rows) if spec.validation_rows is None else spec.validation_rows
    held_out: set[str] = set()
    for key in keys[: round(spec.validation_share * len(keys))]:
        if left <= 0:
            break
        held_out.add(key)
        left -= counts[key]
    return held_out


def _drawn(rows: Sequence[ChatRow], spec: TrainingSpec) -> list[ChatRow]:
    """Return the rows of a validation in their order."""
    places = sorted(range(len(rows)), key=lambda place: digest([spec.seed, "validation", place]))
    return [rows[place] for place in sorted(places[: spec.validation_rows])]


def drawn_for_check(rows: Sequence[ChatRow], count: int, seed: int) -> list[ChatRow]:
    """Return about ``count`` of the validation rows whose answers are generated along a training, in their order.

    They are as many with a conflict as without where there are enough, under each condition in turn, and of an example at most
    one of a kind, so that they count as independent.
    """
    order = sorted(rows, key=lambda row: digest([seed, "check", row.where]))
    queues: dict[str, dict[str, deque[ChatRow]]] = {}
    examples: set[tuple[str, str]] = set()
    for row in order:
        if (row.kind, row.example) not in examples:
            examples.add((row.kind, row.example))
            queues.setdefault(row.kind, {}).setdefault(row.condition, deque()).append(row)
    places = {row.where: place for place, row in enumerate(rows)}
    chosen = [row for kind in queues.values() for row in islice(_in_turn(kind.values()), -(-count // len(queues)))]
    return sorted(chosen, key=lambda row: places[row.where])


def _in_turn(queues: Iterable[deque[ChatRow]]) -> Iterator[ChatRow]:
    """Yield a row of each queue in turn, until all are empty."""
    left = deque(queues)
    while left:
        queue = left.popleft()
        yield queue.popleft()
        if queue:
            left.append(queue)


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Result of reading every row of a training once: the tokens of each, and the reason why a row cannot be read."""

    tokens: Mapping[str, int]
    problems: Mapping[str, str]

    def unusable(self, max_length: int) -> dict[str, str]:
        """Return the rows that cannot be trained on with at most so many tokens, each with the reason."""
        long = {where: count for where, count in self.tokens.items() if count > max_length}
        return {
            **self.problems,
            **{where: f"{count:,} tokens, more than {max_length:,}" for where, count in long.items()},
        }


def check_rows(
    folder: Path, key: str, rows: Sequence[ChatRow], count: Callable[[int], int], report: Callable[[int], None]
) -> RowCheck:
    """Read every row once, as its model does; the result is kept in the training's ``folder`` for the same ``key``.

    ``count`` returns the tokens of the row at a place, or raises ModelError; ``report`` receives the place. Raises StoreError.
    """
    known = _read_check(folder, key, rows)
    if known is not None:
        return known
    tokens: dict[str, int] = {}
    problems: dict[str, str] = {}
    for place, row in enumerate(rows):
        report(place)
        try:
            tokens[row.where] = count(place)
        except ModelError as error:
            problems[row.where] = one_line(error.__cause__ or error).rstrip(".")
    try:
        replace_file(folder, _CHECK, json.dumps({"key": key, "tokens": tokens, "problems": problems}).encode())
    except OSError as error:
        raise write_error(folder / _CHECK, error, KEPT) from error
    return RowCheck(tokens, problems)


def unusable_error(unusable: Mapping[str, str], rows: int, log: Path) -> SourceError:
    """Return the error for rows that cannot be trained on."""
    first = "; ".join(f"{where}: {reason}" for where, reason in list(unusable.items())[:_NAMED])
    more = f" and {len(unusable) - _NAMED:,} more, which {log} lists" if len(unusable) > _NAMED else ""
    return SourceError(
        f"{len(unusable):,} of {rows:,} rows cannot be trained on ({first}{more}); correct them, raise --max-length, or leave "
        "them out with --skip-unusable."
    )


def _read_check(folder: Path, key: str, rows: Sequence[ChatRow]) -> RowCheck | None:
    """Return the stored result for these rows; None if there is none, or a damaged one."""
    try:
        stored = parse_json(read_bytes(folder, _CHECK, limit=MAX_BYTES))
    except (OSError, OutsideJSONError, UnsafeFileError):
        return None
    match stored:
        case {"key": stored_key, "tokens": dict(tokens), "problems": dict(problems)} if stored_key == key:
            complete = {*tokens, *problems} == {row.where for row in rows}
            if complete and all(type(count) is int for count in tokens.values()):
                return RowCheck(tokens, {where: str(reason) for where, reason in problems.items()})
    return None
