"""Speed of a run: its answers' times, and what was computed only once for several of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.report.throughput import duration
from app.store.run import RunStore
from app.store.run_facts import work_counts


@dataclass(frozen=True, slots=True)
class RunSpeed:
    """Speed of one run.

    Attributes:
        answers: The answers that the model generated, without errors and cached replies.
        timed: Those whose engine measured ``prefill_s`` and ``decode_s``, the seconds of all of them.
        tokens: The completion tokens of the timed ones.
        per_minute: Answers a minute, by the times between answers; None for fewer than two.
        work: What the workers computed, summed; see :class:`mlx_backends.core.reuse.Reuse`. Empty where nothing was counted:
            an answer at a time, another engine, an earlier version, a worker that was killed.
    """

    run: str
    answers: int
    timed: int
    prefill_s: float
    decode_s: float
    tokens: int
    per_minute: float | None
    work: dict[str, int]


def read_speed(folder: Path) -> RunSpeed:
    """Return the speed of the run in ``folder``. Raises StoreError."""
    with RunStore.read(folder) as store:
        gaps, seconds = store.answer_gaps()
        answers, timed, prefill_s, decode_s, tokens = store.answer_times()
        per_minute = 60 * gaps / seconds if seconds else None
        return RunSpeed(folder.name, answers, timed, prefill_s, decode_s, tokens, per_minute, work_counts(store))


def to_json(speed: RunSpeed) -> dict[str, Any]:
    """Return a run's speed as a JSON object."""
    return asdict(speed)


def lines(speed: RunSpeed) -> Iterator[str]:
    """Yield lines of prose on a run's speed."""
    pace = "" if speed.per_minute is None else f", {speed.per_minute:,.1f} a minute"
    yield f"{speed.run}: {speed.answers:,} answers generated{pace}"
    if speed.timed:
        rate = f", {speed.tokens / speed.decode_s:,.0f} tokens a second" if speed.decode_s else ""
        yield (
            f"  time: {duration(speed.prefill_s)} reading prompts and images, "
            f"{duration(speed.decode_s)} generating {speed.tokens:,} tokens{rate}"
        )
    work = speed.work
    if not work.get("prompts"):
        yield "  shared work: none was counted; each prompt was read separately, or another engine answered"
        return
    yield (
        f"  prompts: {work['prompt_tokens']:,} tokens in {work['prompts']:,} prompts, {work['distinct_tokens']:,} of them "
        f"distinct; {work['computed_tokens']:,} computed, {_ratio(work['computed_tokens'], work['distinct_tokens'])} the "
        "distinct ones"
    )
    if work["images"]:
        yield (
            f"  images: shown {work['images']:,} times, {work['distinct_images']:,} of them distinct; {work['encoded']:,} "
            f"encoded, {work['from_disk']:,} read from disk"
        )


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f} times" if whole else "-"
