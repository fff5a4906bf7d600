"""Speed of a run: its answers' times, and what was computed only once for several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.report.progress.remaining_time import duration
from app.store.answer_sums import AnswerTimes
from app.store.run_facts import WorkDone, answer_pace
from app.store.run_store import RunStore


@dataclass(frozen=True, slots=True)
class RunSpeed:
    """Speed of one run.

    Attributes:
        times: Its answers' numbers and times.
        per_minute: Answers a minute while workers were answering; None if unknown.
        work: What the workers computed, summed; see :class:`mlx_backends.core.saved_work.Reuse`. Empty where nothing was counted:
            an answer at a time, another engine, an earlier version.
        counted: The answers that ``work`` covers, of ``times.generated``; None if unknown.
        separate: See :class:`app.store.run_facts.WorkDone`.
    """

    run: str
    times: AnswerTimes
    per_minute: float | None
    work: Mapping[str, int]
    counted: int | None
    separate: int


def read_speed(folder: Path) -> RunSpeed:
    """Return the speed of the run in ``folder``. Raises StoreError."""
    with RunStore.read(folder) as store:
        paced, seconds = answer_pace(store)
        work = WorkDone.load(store)
        return RunSpeed(
            folder.name,
            store.answer_times(),
            per_minute=60 * paced / seconds if seconds else None,
            work=work.counts,
            counted=work.answers,
            separate=work.separate,
        )


def lines(speed: RunSpeed) -> Iterator[str]:
    """Yield lines of prose on a run's speed."""
    times, work = speed.times, speed.work
    pace = "" if speed.per_minute is None else f", {speed.per_minute:,.1f} a minute"
    yield f"{speed.run}: {times.answers:,} answers generated{pace}"
    if times.timed:
        rate = f", {times.tokens / times.decode_s:,.0f} tokens a second" if times.decode_s else ""
        yield (
            f"  time: {duration(times.prefill_s)} reading prompts and images, "
            f"{duration(times.decode_s)} generating {times.tokens:,} tokens{rate}"
        )
    if not work:
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
    if speed.counted is not None and speed.counted < times.generated:
        yield (
            f"  counted for {speed.counted:,} of {times.generated:,} answers; the others were answered one at a time, as the "
            "first is, or their worker was killed"
        )
    if speed.separate:
        yield f"  {speed.separate:,} of the run's workers counted as distinct what an earlier one may have read too"


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.3f} times" if whole else "-"
