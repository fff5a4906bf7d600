"""A comparison of the filters: their yield and the human accuracy of their questions (Tables 1, 5 and 7)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchmarks.contra4.contra4_constants import FILTERS, LETTERS, MODALITIES, SIZES
from benchmarks.errors import SourceError
from benchmarks.stats.intervals import wilson
from benchmarks.untrusted.safe_files import read_regular
from benchmarks.untrusted.spreadsheet_formula_guard import csv_line
from benchmarks.vocabulary import Estimate

NO_FILTER = "None"
"""The row of the rule filter only, the paper's first."""

ROWS = (NO_FILTER, *FILTERS)
PER_CELL = 20
"""The questions drawn for each filter, size and kind of negatives: 120 a filter, as in section 6."""

NO_SCENE = "none"
"""The entry for a question that no scene answers; several letters mean several scenes."""

_NEGATIVES = {"Rand.": ("random",), "Sim.": ("similar",), "All": ("random", "similar")}
_COLUMNS = {
    f"{of} / {name}": (sizes, kinds)
    for of, sizes in {**{f"{size} Modalities": (size,) for size in SIZES}, "Aggregated": SIZES}.items()
    for name, kinds in _NEGATIVES.items()
}
_FIELDS = ("id", "drawn for", "question", *LETTERS, "choice")

_LARGEST_CHECKS = 64 << 20

Candidate = Mapping[str, Any]
_Cells = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Check:
    """The human check of a candidate that was drawn for one or more filters."""

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
    """Return whether a candidate belongs in row ``name`` of the paper's tables."""
    return name == NO_FILTER or name in candidate["filters"]


def checks_sheet(candidates: Sequence[Candidate], seed: int) -> str:
    """Return a CSV to fill in: 20 questions per filter, size and kind of negatives, without the answer."""
    drawn: dict[str, list[str]] = {}
    for name in ROWS:
        cells: dict[tuple[int, str], list[str]] = {}
        for candidate in candidates:
            if passes(candidate, name):
                cells.setdefault((candidate["size"], candidate["negatives"]), []).append(candidate["id"])
        for ids in cells.values():
            for candidate_id in sorted(ids, key=lambda key: sha256(f"{seed}|{name}|{key}".encode()).hexdigest())[
                :PER_CELL
            ]:
                drawn.setdefault(candidate_id, []).append(name)
    lines = [csv_line(_FIELDS)]
    for candidate in candidates:
        if candidate["id"] in drawn:
            scenes = {letter: _shown(scene) for letter, scene in zip(LETTERS, candidate["scenes"], strict=False)}
            question = candidate["question"]
            row = {
                "id": candidate["id"],
                "drawn for": " ".join(drawn[candidate["id"]]),
                "question": question,
                **scenes,
                "choice": "",
            }
            lines.append(csv_line(row.get(field, "") for field in _FIELDS))
    return "".join(lines)


def filter_tables(candidates: Sequence[Candidate], sheets: Sequence[Path] = ()) -> dict[str, str]:
    """Return the paper's tables as CSV by file name: table-1.csv, table-5.csv, with ``sheets`` also table-7.csv.

    Figures of people have ``low`` and ``high`` (95%, Wilson) and ``n`` beside them. Raises SourceError where a sheet is none.
    """
    checks = [
        check for path in sheets for check in _read(path, {candidate["id"]: candidate for candidate in candidates})
    ]
    counts = {name: {column: _count(candidates, name, *cell) for column, cell in _COLUMNS.items()} for name in ROWS}
    first, fifth = [], []
    for name in ROWS:
        drawn_checks = [check for check in checks if name in check.drawn_for]
        wrong_checks = [check for check in drawn_checks if not check.right]
        correct = [check for check in checks if NO_FILTER in check.drawn_for and check.right]
        acc = _figure("Human Acc.", _share(drawn_checks, lambda check: check.right))
        generated = {f"Generated / {n.rstrip('.')}": str(counts[name][f"Aggregated / {n}"]) for n in _NEGATIVES}
        first.append(
            {"Filter": name}
            | acc
            | _figure("N/A", _share(drawn_checks, lambda check: check.not_any))
            | _figure("O/A", _share(drawn_checks, lambda check: check.several))
            | generated
        )
        fifth.append(
            {"Filter": name}
            | acc
            | _figure("Recall", _share(correct, partial(_kept_by, name)))
            | _figure("N/A", _share(wrong_checks, lambda check: check.not_any))
            | _figure("O/A", _share(wrong_checks, lambda check: check.several))
            | {column: str(count) for column, count in counts[name].items()}
        )
    files = {"table-1.csv": _csv(first), "table-5.csv": _csv(fifth)}
    return files | {"table-7.csv": _csv(list(_seventh(checks)))} if checks else files


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


def _figure(name: str, share: Estimate) -> _Cells:
    def shown(value: float | None) -> str:
        return "n/a" if value is None else f"{value:.4f}"

    return {
        name: shown(share.value),
        f"{name} low": shown(share.low),
        f"{name} high": shown(share.high),
        f"{name} n": str(share.n),
    }


def _csv(rows: Sequence[_Cells]) -> str:
    header = list(rows[0])
    return "".join(map(csv_line, (header, *([row.get(name, "") for name in header] for row in rows))))


def _shown(scene: Sequence[str]) -> str:
    source, name, modality, caption = scene
    label = next(label for key, label in MODALITIES.items() if key == modality)
    return f"{label} {source}/{name}: {caption}"


def _read(path: Path, known: Mapping[str, Candidate]) -> Iterator[_Check]:
    try:
        rows = list(
            csv.DictReader(io.StringIO(read_regular(path, limit=_LARGEST_CHECKS).decode("utf-8-sig"), newline=""))
        )
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(
            f"{path} cannot be read as CSV ({error.__class__.__name__}); name a filled-in checks.csv."
        ) from error
    for number, row in enumerate(rows, 2):
        choice = (row.get("choice") or "").strip()
        if not choice:
            continue
        candidate = known.get((row.get("id") or "").strip())
        letters = "" if choice.casefold() == NO_SCENE else "".join(sorted(set(choice.upper()) - set(" ,;/")))
        if candidate is None:
            raise SourceError(
                f"{path}, line {number}: this construction has no question of that id; fill in its own checks.csv."
            )
        if letters.strip(LETTERS[: candidate["size"]]):
            raise SourceError(
                f"{path}, line {number}: the choice {choice[:20]!r} is neither letters of its scenes nor {NO_SCENE!r}."
            )
        yield _Check(candidate, frozenset((row.get("drawn for") or "").split()), letters)
