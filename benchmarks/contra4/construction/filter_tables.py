"""Filters compared: how many questions each lets through, and how right people find them (Tables 1, 5 and 7)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.base import Estimate
from benchmarks.contra4.constants import FILTERS, LETTERS, MODALITIES, SIZES
from benchmarks.errors import SourceError
from benchmarks.rows.spreadsheet import guarded
from benchmarks.stats.intervals import wilson

NONE = "None"
"""The rule filter alone, as the paper's first row."""

ROWS = (NONE, *FILTERS)
PER_CELL = 20
"""So many questions of each size and kind of negatives are drawn for each filter: 120, as in section 6."""

NOT_ANY = "none"
"""What a person writes where no scene answers the question; several letters where several do."""

_NEGATIVES = {"Rand.": ("random",), "Sim.": ("similar",), "All": ("random", "similar")}
_COLUMNS = {
    f"{of} / {name}": (sizes, kinds)
    for of, sizes in {**{f"{size} Modalities": (size,) for size in SIZES}, "Aggregated": SIZES}.items()
    for name, kinds in _NEGATIVES.items()
}
_FIELDS = ("id", "drawn for", "question", *LETTERS, "choice")

Candidate = Mapping[str, Any]
_Cells = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Check:
    """What one person says of a candidate that was drawn for some filters."""

    candidate: Candidate
    drawn_for: frozenset[str]
    choice: str

    @property
    def right(self) -> bool:
        return self.choice == str(self.candidate["answer"])

    @property
    def not_any(self) -> bool:
        return self.choice == ""

    @property
    def several(self) -> bool:
        return len(self.choice) > 1


def passes(candidate: Candidate, name: str) -> bool:
    """Whether a candidate is in the row ``name`` of the paper's tables."""
    return name == NONE or name in candidate["filters"]


def sheet(candidates: Sequence[Candidate], seed: int) -> str:
    """A CSV to be filled in: 20 questions of each size and kind of negatives for each filter, the answer not shown."""
    drawn: dict[str, list[str]] = {}
    for name in ROWS:
        cells: dict[tuple[int, str], list[str]] = {}
        for candidate in candidates:
            if passes(candidate, name):
                cells.setdefault((candidate["size"], candidate["negatives"]), []).append(candidate["id"])
        for ids in cells.values():
            for each in sorted(ids, key=lambda one: sha256(f"{seed}|{name}|{one}".encode()).hexdigest())[:PER_CELL]:
                drawn.setdefault(each, []).append(name)
    out = io.StringIO()
    rows = csv.DictWriter(out, _FIELDS)
    rows.writeheader()
    for candidate in candidates:
        if candidate["id"] in drawn:
            scenes = {
                letter: guarded(_shown(scene)) for letter, scene in zip(LETTERS, candidate["scenes"], strict=False)
            }
            asked = candidate["question"]
            rows.writerow(
                {
                    "id": candidate["id"],
                    "drawn for": " ".join(drawn[candidate["id"]]),
                    "question": guarded(asked),
                    **scenes,
                    "choice": "",
                }
            )
    return out.getvalue()


def statistics(candidates: Sequence[Candidate], sheets: Sequence[Path] = ()) -> dict[str, str]:
    """The paper's tables as CSV, by file name: table-1.csv and table-5.csv, with ``sheets`` also table-7.csv.

    Figures of people have ``low`` and ``high`` (95%, Wilson) and ``n`` beside them. Raises SourceError where a sheet is none.
    """
    checks = [check for path in sheets for check in _read(path, {each["id"]: each for each in candidates})]
    counts = {name: {column: _count(candidates, name, *cell) for column, cell in _COLUMNS.items()} for name in ROWS}
    first, fifth = [], []
    for name in ROWS:
        mine = [check for check in checks if name in check.drawn_for]
        wrong = [check for check in mine if not check.right]
        sound = [check for check in checks if NONE in check.drawn_for and check.right]
        acc = _figure("Human Acc.", _share(mine, lambda check: check.right))
        generated = {f"Generated / {n.rstrip('.')}": str(counts[name][f"Aggregated / {n}"]) for n in _NEGATIVES}
        first.append(
            {"Filter": name}
            | acc
            | _figure("N/A", _share(mine, lambda check: check.not_any))
            | _figure("O/A", _share(mine, lambda check: check.several))
            | generated
        )
        fifth.append(
            {"Filter": name}
            | acc
            | _figure("Recall", _share(sound, partial(_kept_by, name)))
            | _figure("N/A", _share(wrong, lambda check: check.not_any))
            | _figure("O/A", _share(wrong, lambda check: check.several))
            | {column: str(count) for column, count in counts[name].items()}
        )
    made = {"table-1.csv": _csv(first), "table-5.csv": _csv(fifth)}
    return made | {"table-7.csv": _csv(list(_seventh(checks)))} if checks else made


def _seventh(checks: Sequence[_Check]) -> Iterator[_Cells]:
    kinds: Mapping[str, Callable[[_Check], bool]] = {
        "Correctness": lambda check: check.right,
        "Over-Applies": lambda check: check.several,
        "None-Applies": lambda check: check.not_any,
    }
    for kind, holds in kinds.items():
        for name in ROWS:
            row = {"Filter": f"{kind} / {name}"}
            for column, (sizes, negatives) in _COLUMNS.items():
                mine = [
                    check
                    for check in checks
                    if name in check.drawn_for
                    and check.candidate["size"] in sizes
                    and check.candidate["negatives"] in negatives
                ]
                row |= _figure(column, _share(mine, holds))
            yield row


def _count(candidates: Sequence[Candidate], name: str, sizes: Sequence[int], negatives: Sequence[str]) -> int:
    return sum(passes(c, name) and c["size"] in sizes and c["negatives"] in negatives for c in candidates)


def _kept_by(name: str, check: _Check) -> bool:
    return passes(check.candidate, name)


def _share(checks: Sequence[_Check], holds: Callable[[_Check], bool]) -> Estimate:
    return wilson(sum(map(holds, checks)), len(checks))


def _figure(name: str, found: Estimate) -> _Cells:
    def shown(value: float | None) -> str:
        return "n/a" if value is None else f"{value:.4f}"

    return {
        name: shown(found.value),
        f"{name} low": shown(found.low),
        f"{name} high": shown(found.high),
        f"{name} n": str(found.n),
    }


def _csv(rows: Sequence[_Cells]) -> str:
    out = io.StringIO()
    written = csv.DictWriter(out, list(rows[0]))
    written.writeheader()
    written.writerows(rows)
    return out.getvalue()


def _shown(scene: Sequence[str]) -> str:
    source, name, modality, caption = scene
    label = next(label for key, label in MODALITIES.items() if key == modality)
    return f"{label} {source}/{name}: {caption}"


def _read(path: Path, known: Mapping[str, Candidate]) -> Iterator[_Check]:
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"), newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(
            f"{path} cannot be read as CSV ({error.__class__.__name__}); name a filled-in checks.csv."
        ) from error
    for number, row in enumerate(rows, 2):
        said = (row.get("choice") or "").strip()
        if not said:
            continue
        candidate = known.get((row.get("id") or "").strip())
        letters = "" if said.casefold() == NOT_ANY else "".join(sorted(set(said.upper()) - set(" ,;/")))
        if candidate is None:
            raise SourceError(
                f"{path}, line {number}: this construction has no question of that id; fill in its own checks.csv."
            )
        if letters.strip(LETTERS[: candidate["size"]]):
            raise SourceError(
                f"{path}, line {number}: the choice {said[:20]!r} is neither letters of its scenes nor {NOT_ANY!r}."
            )
        yield _Check(candidate, frozenset((row.get("drawn for") or "").split()), letters)
