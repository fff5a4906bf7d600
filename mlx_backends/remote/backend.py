"""Remote: a backend over a vendor's API, many calls at a time, each counted, none made twice for one answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.base import Generation, Request, digest
from benchmarks.errors import ModelError
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.remote import rate_limit
from mlx_backends.remote.budget import NOTHING, Budget, RequestSize, size
from mlx_backends.remote.images import EncodedImages
from mlx_backends.remote.options import RemoteOptions
from mlx_backends.remote.provider import (
    LIMITS,
    CallError,
    PermanentError,
    Provider,
    Reply,
    RetryWithoutParameter,
    TransientError,
    short,
)

_STEP_S = 0.05


@dataclass(eq=False)
class _Job:
    """A request and what became of it so far."""

    request: Request
    digest: str
    needed: RequestSize = NOTHING
    looked_for: str = ""
    """Under what the kept replies were last searched for it."""

    not_before: float = 0.0
    attempts: int = 0
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cancelled: bool = False
    began_in: int = 0
    held: RequestSize = NOTHING


class RemoteBackend(Backend):
    """Answers through ``vendor`` on ``terms``; ``who`` is all that decides a reply besides its request, ``variable`` what
    holds the key.

    A call that fails in passing is made again, ``terms.attempts`` times in all (a call that only finds out which
    parameters the server takes is not counted as an attempt), and then the request is answered by an error that says why.
    ``calls`` and tokens of a Generation are the sum over all calls that were made for it. Of two equal requests under way,
    the second takes the first's reply, where replies are kept: under the request and what was left out of it because the
    server refuses it. ``step`` raises BudgetError when nothing is under way and nothing more can be asked below the
    ceiling, and ModelError when the server refuses the key, or there is none, before anything was answered: then nothing
    more is asked.
    """

    def __init__(
        self, info: EngineInfo, vendor: Provider, images: EncodedImages, terms: RemoteOptions, who: str, variable: str
    ) -> None:
        self.info = info
        self._vendor = vendor
        self._images = images
        self._terms = terms
        self._who = who
        self._variable = variable
        self._threads_wanted = max(1, terms.concurrency)
        # Those that wait to be asked again do not keep the others from being asked.
        self.capacity = 2 * self._threads_wanted
        self._budget = Budget(terms)
        self._pace = rate_limit.RateLimit(self._threads_wanted)
        self._replies = None if terms.replies is None else ResponseCache(terms.replies)
        self._changed = threading.Condition()
        self._waiting: list[_Job] = []
        self._asking: list[_Job] = []
        self._done: list[Generation] = []
        self._answered_once = False
        self._hopeless: list[tuple[_Job, CallError]] = []
        self._threads = 0
        self._closed = False

    @property
    def remarks(self) -> Sequence[str]:
        # The limit has two names, and is left out under neither.
        left_out = sorted(self._vendor.refused - set(LIMITS))
        return [f"{self.info.model} refuses {name}; it was left out." for name in left_out]

    def submit(self, request: Request) -> None:
        with self._changed:
            if self._closed:
                raise RuntimeError("the remote engine is closed")
            if self._in_flight() >= self.capacity:
                raise RuntimeError("the remote engine already holds as many requests as its capacity")
        job = _Job(request, request.digest)
        kept = self._known(job, self._vendor.refused)
        if kept is None:
            job.needed = size(request, self._images)
        with self._changed:
            if kept is not None:
                self._done.append(kept)
                return
            self._waiting.append(job)
            if self._threads < min(self._threads_wanted, self._in_flight()):
                self._threads += 1
                # A daemon, so that a call under way keeps no process from ending.
                threading.Thread(target=self._work, name="rashomon-remote", daemon=True).start()
            self._changed.notify_all()

    def step(self) -> Sequence[Generation]:
        with self._changed:
            if not self._done and self._in_flight():
                self._changed.wait_for(lambda: self._done or self._stuck() or self._locked_out(), _STEP_S)
            done, self._done = self._done, []
            if not done and (why := self._locked_out()):
                if isinstance(why, PermanentError):
                    told = f"the provider refuses the key; set {self._variable} again"
                else:
                    told = "the server cannot be reached; see that it runs and that its address is right"
                raise ModelError(f"{self.info.model}: {told} ({why}).")
            if not done and (stuck := self._stuck()):
                raise self._budget.reached(stuck.needed)
            return done

    def cancel(self, request_id: str) -> None:
        """Drop a request. A call that is under way for it runs to its end, and its reply is kept for another time."""
        with self._changed:
            self._waiting = [job for job in self._waiting if job.request.id != request_id]
            self._done = [generation for generation in self._done if generation.request_id != request_id]
            for job in (*self._asking, *self._held()):
                job.cancelled = job.cancelled or job.request.id == request_id
            self._changed.notify_all()

    def close(self) -> None:
        """Answer nothing more; calls under way are left to end by themselves."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._done.clear()
            self._changed.notify_all()
            last = self._threads == 0
        if last:
            self._release()

    def _in_flight(self) -> int:
        held = sum(not job.cancelled for jobs in (self._asking, self._held()) for job in jobs)
        return len(self._waiting) + len(self._done) + held

    def _held(self) -> list[_Job]:
        return [job for job, _ in self._hopeless]

    def _locked_out(self) -> CallError | None:
        """Why there is no hope, where the server has answered nothing and nothing under way can change that."""
        return self._hopeless[0][1] if self._hopeless and not self._asking else None

    def _stuck(self) -> _Job | None:
        """A request that the budget does not allow to be asked, where no other is allowed or under way."""
        if self._asking or not self._waiting or any(self._budget.allows(job.needed) for job in self._waiting):
            return None
        return self._waiting[0]

    # --- in the threads ---

    def _work(self) -> None:
        while (job := self._next()) is not None:
            refused = self._vendor.refused
            kept = self._known(job, refused)
            outcome = None
            if kept is None:
                outcome = self._ask(job, refused)
                kept = self._keep(job, outcome, refused) if isinstance(outcome, Reply) else None
            with self._changed:
                self._end(job, outcome, kept)
                self._changed.notify_all()
        with self._changed:
            self._threads -= 1
            last = self._threads == 0
        if last:
            self._release()

    def _ask(self, job: _Job, refused: frozenset[str]) -> Reply | CallError:
        outcome: Reply | CallError
        try:
            outcome = self._vendor.call(job.request, self._terms.timeout, refused)
        except CallError as failed:
            outcome = failed
        except Exception as error:  # nothing that goes wrong with one request may end a thread
            outcome = PermanentError(f"{type(error).__name__}: {error}")
        job.calls += outcome.sent if isinstance(outcome, CallError) else 1
        return outcome

    def _next(self) -> _Job | None:
        """The next request to ask, once one may be asked; None when there will be none."""
        with self._changed:
            while not self._closed:
                wait = None if self._hopeless else self._pace.wait()
                if wait == 0:
                    now = time.monotonic()
                    for job in self._waiting:
                        if job.not_before > now or self._asked_already(job):
                            continue
                        held = self._budget.reserve(job.needed)
                        if held is not None:
                            job.held, job.began_in = held, self._pace.began()
                            self._waiting.remove(job)
                            self._asking.append(job)
                            return job
                    wait = min((job.not_before - now for job in self._waiting if job.not_before > now), default=None)
                self._changed.wait(wait)
            return None

    def _asked_already(self, job: _Job) -> bool:
        return self._replies is not None and any(other.digest == job.digest for other in self._asking)

    def _kept_as(self, job: _Job, refused: frozenset[str]) -> str:
        """What the reply to a request is kept under: what was asked, which is less where something was left out."""
        left_out = sorted(self._vendor.left_out(job.request, refused))
        return digest([job.digest, left_out]) if left_out else job.digest

    def _known(self, job: _Job, refused: frozenset[str]) -> Generation | None:
        """The kept reply to a request, where it was not searched for in vain before."""
        if self._replies is None or (kept_as := self._kept_as(job, refused)) == job.looked_for:
            return None
        job.looked_for = kept_as
        kept = self._replies.get(self._who, kept_as)
        return None if kept is None else _given(kept, job)

    def _keep(self, job: _Job, reply: Reply, refused: frozenset[str]) -> Generation:
        """The answer, after it was put where it outlives this process."""
        self._add(job, reply)
        generation = Generation(
            job.request.id,
            reply.text,
            reply.finish_reason,
            prompt_tokens=job.prompt_tokens,
            completion_tokens=job.completion_tokens,
            calls=job.calls,
        )
        if self._replies is not None:
            self._replies.put(self._who, self._kept_as(job, refused), generation)
        return generation

    @staticmethod
    def _add(job: _Job, outcome: Reply | CallError) -> None:
        """Add a call's tokens to its request's, where the server said how many they were."""
        if outcome.prompt_tokens is not None:
            job.prompt_tokens = (job.prompt_tokens or 0) + outcome.prompt_tokens
        if outcome.completion_tokens is not None:
            job.completion_tokens = (job.completion_tokens or 0) + outcome.completion_tokens

    def _end(self, job: _Job, outcome: Reply | CallError | None, kept: Generation | None) -> None:
        """Account for a call that is over, or that was not needed, and decide what becomes of its request."""
        self._asking.remove(job)
        self._pace.ended()
        unsaid = job.needed if isinstance(outcome, Reply) else NOTHING
        prompt, completion = (None, None) if outcome is None else (outcome.prompt_tokens, outcome.completion_tokens)
        self._budget.settle(
            job.needed,
            job.held,
            unsaid.prompt if prompt is None else prompt,
            unsaid.completion if completion is None else completion,
        )
        if kept is not None:
            if outcome is not None:
                self._pace.succeeded()
                self._there_is_hope()
            self._answered(job, kept)
            return
        assert isinstance(outcome, CallError)
        self._add(job, outcome)
        waits = self._after(job, outcome)
        no_server = isinstance(outcome, TransientError) and outcome.unreached and waits is None
        no_key = isinstance(outcome, PermanentError) and outcome.refuses_key
        if (no_key or no_server) and not self._answered_once:
            self._hopeless.append((job, outcome))
            return
        if job.cancelled or self._closed:
            return
        if waits is None:
            self._done.append(self._error(job, outcome))
        else:
            job.not_before = time.monotonic() + waits
            self._waiting.append(job)

    def _there_is_hope(self) -> None:
        """The server has answered: what failed meanwhile was that request."""
        self._answered_once = True
        refused, self._hopeless = self._hopeless, []
        self._done += [self._error(job, failed) for job, failed in refused if not (job.cancelled or self._closed)]

    def _answered(self, job: _Job, generation: Generation) -> None:
        if not job.cancelled and not self._closed:
            self._done.append(generation)
        if self._replies is None:
            return
        twins = [other for other in self._waiting if other.digest == job.digest]
        for twin in twins:
            self._waiting.remove(twin)
            self._done.append(_given(generation, twin))

    def _after(self, job: _Job, failed: CallError) -> float | None:
        """Seconds after which a request is asked again; None where it is not."""
        if isinstance(failed, RetryWithoutParameter):
            return 0.0
        job.attempts += 1
        if not isinstance(failed, TransientError):
            return None
        if failed.overloaded:
            self._pace.overloaded(job.began_in)
        if failed.retry_after is None:
            return None if job.attempts >= self._terms.attempts else rate_limit.backoff(job.attempts)
        if failed.retry_after > rate_limit.LONGEST_PAUSE_S:
            return None
        self._pace.pause(failed.retry_after)
        return (
            None if job.attempts >= self._terms.attempts else max(failed.retry_after, rate_limit.backoff(job.attempts))
        )

    def _error(self, job: _Job, failed: CallError) -> Generation:
        reason = str(failed)
        if isinstance(failed, TransientError) and (failed.retry_after or 0) > rate_limit.LONGEST_PAUSE_S:
            reason = f"the server wants to be left alone for {failed.retry_after:.0f} seconds: {reason}"
        return Generation(
            job.request.id,
            "",
            "error",
            prompt_tokens=job.prompt_tokens,
            completion_tokens=job.completion_tokens,
            error=short(reason if job.attempts < 2 else f"asked {job.attempts} times, the last time: {reason}"),
            calls=job.calls,
        )

    def _release(self) -> None:
        self._vendor.close()
        if self._replies is not None:
            self._replies.close()


def _given(reply: Generation, job: _Job) -> Generation:
    """A reply that no call of its own brought, as the answer to ``job``: what was used for that so far is all there is."""
    return replace(
        reply,
        request_id=job.request.id,
        prompt_tokens=job.prompt_tokens or 0,
        completion_tokens=job.completion_tokens or 0,
        calls=job.calls,
    )
