"""Logs of trainings: written by the worker, read again and again while they grow."""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.untrusted.safe_files import open_read, open_write, write_error
from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from mlx_backends.training_settings import (
    KEPT,
    MOST_EXAMPLES,
    NOT_TAUGHT,
    TAUGHT,
    UNDECIDED,
    AnyReport,
    CheckReport,
    ValidationReport,
)

LOG = "log.jsonl"

_LONGEST_LINE = 1 << 15
_MOST_STEPS = 10**12
_RECENT = 60.0
"""The seconds of its own work from which a training's speed is computed."""
_SLEEP = 10.0
"""The least factor by which an update takes longer than usual if the machine slept in it."""


class LogWriter:
    """Writer of a log; what was logged after the checkpoint that a training resumes from is removed first."""

    def __init__(self, folder: Path, size: int) -> None:
        self._path = folder / LOG
        try:
            self._file = open_write(folder, LOG, append=True)
            self._file.truncate(
                min(size, os.fstat(self._file.fileno()).st_size)
            )  # a longer one would be filled with zeros
        except OSError as error:
            raise write_error(self._path, error, "make the folder writable, then resume") from error

    def write(self, report: AnyReport) -> None:
        """Append a report. Raises StoreError if that fails."""
        values = {key: value for key, value in asdict(report).items() if value is not None}
        kind = {"validation": report.loss} if isinstance(report, ValidationReport) else {}
        with self._writing():
            self._file.write((json.dumps({**values, **kind, "at": time.time()}) + "\n").encode())
            self._file.flush()

    def size(self) -> int:
        """Return the size of the log in bytes, once they are durable. Raises StoreError if they cannot be."""
        with self._writing():
            os.fsync(self._file.fileno())
            return os.fstat(self._file.fileno()).st_size

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise write_error(self._path, error, KEPT) from error


@dataclass
class Curve:
    """A training's losses by update, and its speed.

    Attributes:
        losses: The loss of each update.
        validations: The validation loss after some updates.
        base: The base's validation loss; None where it was not measured.
        trials: The learning rates that were tried, each with its validation loss; None for one that diverged.
        trial: The learning rate that is being tried and the updates of its trial; None where there is none.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    validations: list[tuple[int, float]] = field(default_factory=list)
    base: float | None = None
    trials: list[tuple[float, float | None]] = field(default_factory=list)
    trial: tuple[float, int] | None = None
    searched: int = 0
    """The updates of trials."""
    seconds: float = 0.0
    peak_memory: int = 0
    best: tuple[int, float] | None = None
    base_examples: tuple[float, ...] = ()
    """The base's validation losses by example; none where an earlier version trained."""
    best_examples: tuple[float, ...] = ()
    """The losses by example of the best update; none where an earlier version trained."""
    checks: list[CheckReport] = field(default_factory=list)
    """The checks of generated answers; the base's is of update 0."""
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """The seconds and tokens of the latest updates."""
    validation_seconds: list[float] = field(default_factory=list)

    @property
    def step(self) -> int:
        """The last update; 0 before the first."""
        return self.losses[-1][0] if self.losses else 0

    @property
    def tokens_per_second(self) -> float | None:
        """The speed of the latest updates; None before the first."""
        seconds = sum(spent for spent, _ in self.recent)
        return sum(tokens for _, tokens in self.recent) / seconds if seconds > 0 else None

    def seconds_left(self, steps: int) -> float | None:
        """Return the estimated seconds of the updates that are left of ``steps``, validations included; None before the first."""
        if not self.recent:
            return None
        pace = sum(spent for spent, _ in self.recent) / len(self.recent)
        if self.validations and self.validation_seconds:
            pace += median(self.validation_seconds) * len(self.validations) / max(1, self.validations[-1][0])
        pace += sum(check.seconds for check in self.checks[1:]) / max(1, self.step)
        return (steps - self.step) * pace

    def add_update(self, seconds: float, tokens: int, memory: int) -> None:
        """Count an update's time and memory; the time in which the machine slept is left out, as far as it shows."""
        if self.recent:
            usual = sum(spent for spent, _ in self.recent) / len(self.recent)
            seconds = usual if seconds > max(_RECENT, _SLEEP * usual) else seconds
        self.seconds += seconds
        self.peak_memory = max(self.peak_memory, memory)
        self.recent.append((seconds, tokens))
        while len(self.recent) > 1 and sum(spent for spent, _ in self.recent) > _RECENT:
            self.recent.popleft()


class LogReader:
    """Reader of a log that grows; it begins anew if the log was cut, as a resumed training does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offset = 0
        self.curve = Curve()

    def poll(self) -> bool:
        """Read what was appended to the log; return whether there was anything."""
        try:
            with open_read(self._folder, LOG) as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset, self.curve = 0, Curve()
                file.seek(self._offset)
                before = self._offset
                while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
                    self._offset += len(line)
                    self._add(line)
                return self._offset != before
        except OSError:
            return False

    def _add(self, line: bytes) -> None:
        try:
            entry = parse_json(line, _LONGEST_LINE)
            if "marks" in entry:
                self.curve.checks.append(_check(entry))
                return
            if "updates" in entry:
                self._add_trial(float(entry["trial"]), entry.get("loss"))
                return
            step, loss = int(entry["step"]), float(entry["loss"])
            trial = float(entry["trial"]) if "trial" in entry else None
        except (OutsideJSONError, AttributeError, KeyError, TypeError, ValueError, OverflowError):
            return
        if not math.isfinite(loss) or not 0 <= step <= _MOST_STEPS:
            return
        seconds, tokens, memory = (entry.get(key, 0) for key in ("seconds", "tokens", "peak_memory"))
        are_numbers = all(isinstance(value, int | float) for value in (seconds, tokens, memory))
        curve = self.curve
        if "validation" in entry:
            self._add_validation(step, loss, _examples(entry), is_best=entry.get("best") is True)
            if are_numbers:
                curve.validation_seconds.append(seconds)
            return
        if trial is None:
            curve.losses.append((step, loss))
        else:
            curve.trial, curve.searched = (trial, step), curve.searched + 1
        if are_numbers:
            curve.add_update(seconds, int(tokens), int(memory))

    def _add_trial(self, rate: float, loss: Any) -> None:
        is_sound = isinstance(loss, int | float) and math.isfinite(loss)
        if math.isfinite(rate):
            self.curve.trials.append((rate, float(loss) if is_sound else None))
        self.curve.trial = None

    def _add_validation(self, step: int, loss: float, examples: tuple[float, ...], *, is_best: bool) -> None:
        if step == 0:
            self.curve.base, self.curve.base_examples = loss, examples
            return
        self.curve.validations.append((step, loss))
        if is_best:
            self.curve.best, self.curve.best_examples = (step, loss), examples


def _examples(entry: Any) -> tuple[float, ...]:
    """Return the losses of examples that an entry states; none if one of them is no number."""
    values = entry.get("examples")
    if not isinstance(values, list) or not all(type(value) is float and math.isfinite(value) for value in values):
        return ()
    return tuple(values[:MOST_EXAMPLES])


def _check(entry: Any) -> CheckReport:
    """Return a logged check. Raises ValueError or TypeError for one that no training has."""
    step, seconds = entry["step"], float(entry["seconds"])
    marks = {str(kind): str(text) for kind, text in entry["marks"].items()}
    outcomes = {
        str(kind): {str(outcome): int(count) for outcome, count in counts.items()}
        for kind, counts in entry["outcomes"].items()
    }
    is_sound = type(step) is int and 0 <= step <= _MOST_STEPS and math.isfinite(seconds)
    if not is_sound or not set("".join(marks.values())) <= {TAUGHT, NOT_TAUGHT, UNDECIDED}:
        raise ValueError("a check that no training has")
    return CheckReport(step, marks, outcomes, seconds, entry.get("names") is not False)


def read_curve(folder: Path) -> Curve:
    """Return the curve of the training in a folder, as far as it is logged."""
    reader = LogReader(folder)
    reader.poll()
    return reader.curve
