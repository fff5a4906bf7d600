"""Sums over a run's answers: their usage, times and pace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from app.store.integrity import stored_values
from app.store.sample_lists import Samples
from app.store.sqlite_errors import DamagedError
from benchmarks.vocabulary import Origin

ENDPOINT_KEY = "endpoint"
"""The meta key of the examinations of a remote model's server, one for each worker, oldest first."""


class AnswerTimes(NamedTuple):
    """Answers that were generated without errors, and their times.

    Attributes:
        generated: All of them, including those set aside.
        answers: Those that are accepted.
        timed: Those of ``answers`` whose engine measured ``prefill_s`` and ``decode_s``, the seconds of all of them.
        tokens: The completion tokens of the timed ones.
    """

    generated: int
    answers: int
    timed: int
    prefill_s: float
    decode_s: float
    tokens: int


class AnswerSums(Samples):
    """The part of a run's store that sums over its answers."""

    def cached_replies(self) -> int:
        """Return the number of answers that came from the cache of replies, without a call."""
        origin = self._lacking.get("origin", "origin")
        ((count,),) = self._rows(f"SELECT count(*) FROM generation WHERE accepted AND calls = 0 AND {origin} IS NULL")
        return int(count)

    def origins(self) -> Iterator[tuple[Origin, bool]]:
        """Yield the origin of every accepted answer that has one, and whether it is its instance's last. Raises DamagedError."""
        if "origin" in self._lacking:
            return
        for text, is_last in self._streamed(
            "SELECT g.origin, NOT EXISTS (SELECT 1 FROM generation n WHERE n.instance = g.instance AND n.step = g.step + 1"
            " AND n.accepted) FROM generation g WHERE g.accepted AND g.origin IS NOT NULL",
            (),
        ):
            try:
                yield stored_values.origin(text), bool(is_last)
            except ValueError as error:
                raise DamagedError(self.folder, "table generation, an origin", str(error)) from error

    def frequent_errors(self, most: int) -> list[tuple[str, int]]:
        """Return the messages of the run's errors, each with its number, the most frequent first."""
        rows = self._rows(
            "SELECT coalesce(error, ''), count(*) FROM generation WHERE accepted AND finish_reason = 'error'"
            " GROUP BY error ORDER BY count(*) DESC, error LIMIT ?",
            (most,),
        )
        return [(str(message), int(count)) for message, count in rows]

    def answer_usage(self) -> tuple[int, int, int]:
        """Return the calls, prompt tokens and completion tokens of all answers, including those set aside.

        Those of the examinations of an endpoint are included. Of an answer without a call, tokens were used elsewhere.
        """
        sums = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
        ((calls, prompt, completion),) = self._rows(f"SELECT {sums} FROM generation WHERE calls")
        checks = self.meta(ENDPOINT_KEY, [])
        examined = (sum(check[name] for check in checks) for name in ("calls", "prompt_tokens", "completion_tokens"))
        more_calls, more_prompt, more_completion = examined
        return calls + more_calls, prompt + more_prompt, completion + more_completion

    def answer_times(self) -> AnswerTimes:
        """Return the numbers and times of the answers that were generated without errors; the steps of an instance count."""
        timed = "accepted AND decode_s IS NOT NULL"
        ((generated, *sums),) = self._rows(
            f"SELECT count(*), sum(accepted), sum({timed}), sum(CASE WHEN {timed} THEN prefill_s END), sum(CASE WHEN {timed}"
            f" THEN decode_s END), sum(CASE WHEN {timed} THEN completion_tokens END)"
            " FROM generation WHERE calls AND finish_reason != 'error'"
        )
        return AnswerTimes(generated, *(value or 0 for value in sums))

    def answer_gaps(self) -> tuple[int, float]:
        """Return the number of generated answers after the first commit, and the seconds between the commits.

        Pauses are left out, with the answers after them: gaps of more than a minute that are ten times as long as the longest
        gap, apart from a tenth of them, or two.
        """
        ((count, seconds),) = self._rows(
            "WITH gaps AS (SELECT count(*) AS n, finished_at - lag(finished_at) OVER (ORDER BY finished_at) AS gap"
            " FROM generation WHERE accepted AND calls AND finish_reason != 'error' GROUP BY finished_at),"
            " ranked AS (SELECT n, gap, row_number() OVER (ORDER BY gap DESC) AS rank, count(*) OVER () AS total"
            " FROM gaps WHERE gap IS NOT NULL)"
            " SELECT coalesce(sum(n), 0), coalesce(sum(gap), 0) FROM ranked WHERE gap <= max(60, 10 *"
            " (SELECT gap FROM ranked WHERE rank = min(total, max(2, total / 10) + 1)))"
        )
        return int(count), float(seconds)
