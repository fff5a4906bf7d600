"""Sums over a run's answers: their usage, times and pace."""

from __future__ import annotations

from typing import NamedTuple

from app.store.samples import Samples

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
        ((count,),) = self._rows("SELECT count(*) FROM generation WHERE accepted AND calls = 0")
        return int(count)

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

        Those of the examinations of an endpoint are included.
        """
        sums = "coalesce(sum(calls), 0), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)"
        ((calls, prompt, completion),) = self._rows(f"SELECT {sums} FROM generation")
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
