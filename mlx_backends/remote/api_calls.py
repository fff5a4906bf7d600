"""Calls of a remote model: requests sent in threads, with retries, limits, a budget and cached responses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.errors import ModelError, NoAnswerError
from benchmarks.vocabulary import Generation, Request, digest
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import rate_limit
from mlx_backends.remote.api_budget import NO_TOKENS, Budget, RequestSize
from mlx_backends.remote.api_provider import Provider, Reply
from mlx_backends.remote.remote_errors import CallError, PermanentError, RetryWithoutParameter, TransientError, shorten
from mlx_backends.remote.several_servers import SeveralServers

_STEP_S = 0.05
_SAME_FAULTS = 3
"""Calls after which a fault that a server repeats is the answer to a request; a fault that passes seldom comes back so often."""


@dataclass(eq=False)
class RemoteRequest:
    """A request and its progress."""

    request: Request
    digest: str
    needed: RequestSize = NO_TOKENS
    searched_key: str = ""
    """The key under which the cache was last searched for it."""

    not_before: float = 0.0
    attempts: int = 0
    last_fault: str = ""
    same_faults: int = 0
    """The number of times in a row that the server replied with ``last_fault``."""

    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cancelled: bool = False
    round: int = 0
    reserved: RequestSize = NO_TOKENS
    examines: bool = False
    """True for a request of an examination of the server, which is sent although its response is cached."""


class RemoteCalls:
    """Calls to one ``provider``, as many at a time as ``options`` allow.

    ``responder`` identifies all that decides a response besides its request. Errors name the ``model``, and the
    ``key_variable`` that holds the key. ``check`` returns the problem of a reply, if any; ``note`` takes one that is an answer.
    """

    def __init__(
        self,
        provider: Provider | SeveralServers,
        options: RemoteOptions,
        responder: str,
        model: str,
        key_variable: str,
        *,
        check: Callable[[Reply], str],
        note: Callable[[RemoteRequest, Reply], None],
    ) -> None:
        self._provider = provider
        self._options = options
        self._responder = responder
        self._model = model
        self._key_variable = key_variable
        self._check = check
        self._note = note
        self._max_threads = max(1, options.concurrency)
        # Twice the threads, so that requests waiting for a retry do not hold up the others.
        self.capacity = 2 * self._max_threads
        self._budget = Budget(options)
        self._rate_limit = rate_limit.RateLimit(self._max_threads)
        self._cache = None if options.replies is None else ResponseCache(options.replies)
        self._changed = threading.Condition()
        self._waiting: list[RemoteRequest] = []
        self._in_progress: list[RemoteRequest] = []
        self._done: list[Generation] = []
        self._answered_once = False
        self._blocked: list[tuple[RemoteRequest, CallError]] = []
        self._threads = 0
        self.is_closed = False

    def submit(self, job: RemoteRequest) -> None:
        """Send a request, in its turn."""
        with self._changed:
            self._waiting.append(job)
            if self._threads < min(self._max_threads, self.in_flight()):
                self._threads += 1
                # A daemon, so that a call in progress does not keep the process from ending.
                threading.Thread(target=self._work, name="rashomon-remote", daemon=True).start()
            self._changed.notify_all()

    def answer(self, generation: Generation) -> None:
        """Take a generation that took no call."""
        with self._changed:
            self._done.append(generation)

    def finished(self) -> Sequence[Generation]:
        """Return what has finished, an examination's replies included, after waiting for it a moment."""
        with self._changed:
            if not self._done and self.in_flight():
                self._changed.wait_for(lambda: self._done or self._stuck() or self._locked_out(), _STEP_S)
            done, self._done = self._done, []
            if not done and (cause := self._locked_out()):
                if isinstance(cause, PermanentError):
                    message = f"the provider refuses the key; set {self._key_variable} again"
                    raise ModelError(f"{self._model}: {message} ({cause}).")
                message = "the server cannot be reached; check that it runs and that its address is right"
                raise NoAnswerError(f"{self._model}: {message} ({cause}).")
            if not done and (stuck := self._stuck()):
                raise self._budget.exceeded(stuck.needed)
            return done

    def cancel(self, request_id: str) -> None:
        """Drop a request. A call in progress for it runs to its end, and its response is cached."""
        with self._changed:
            self._waiting = [job for job in self._waiting if job.request.id != request_id]
            self._done = [generation for generation in self._done if generation.request_id != request_id]
            for job in (*self._in_progress, *self._blocked_jobs()):
                job.cancelled = job.cancelled or job.request.id == request_id
            self._changed.notify_all()

    def close(self) -> None:
        """Answer nothing more; calls in progress end by themselves."""
        with self._changed:
            self.is_closed = True
            self._waiting.clear()
            self._done.clear()
            self._changed.notify_all()
            last = self._threads == 0
        if last:
            self._release()

    def in_flight(self) -> int:
        """Return how many requests are waiting, in progress, or finished and not fetched."""
        with self._changed:
            running = sum(not job.cancelled for jobs in (self._in_progress, self._blocked_jobs()) for job in jobs)
            return len(self._waiting) + len(self._done) + running

    def _blocked_jobs(self) -> list[RemoteRequest]:
        return [job for job, _ in self._blocked]

    def _locked_out(self) -> CallError | None:
        """Return why no request can succeed, where the server has answered none and no call in progress can change that."""
        return self._blocked[0][1] if self._blocked and not self._in_progress else None

    def _stuck(self) -> RemoteRequest | None:
        """Return a request that exceeds the budget, where no other is within it or in progress."""
        if self._in_progress or not self._waiting or any(self._budget.allows(job.needed) for job in self._waiting):
            return None
        return self._waiting[0]

    def cached(self, job: RemoteRequest) -> Generation | None:
        """Return the cached response to a request; None without one."""
        return self._cached(job, self._provider.refused)

    def store(self, job: RemoteRequest, generation: Generation) -> None:
        """Cache the response to a request."""
        self._store(job, generation, self._provider.refused)

    # --- in the threads ---

    def _work(self) -> None:
        while (job := self._next()) is not None:
            refused = self._provider.refused
            answer = self._cached(job, refused)
            outcome = None
            if answer is None:
                outcome = self._call(job, refused)
                answer = self._keep(job, outcome, refused) if isinstance(outcome, Reply) else None
            with self._changed:
                self._end(job, outcome, answer)
                self._changed.notify_all()
        with self._changed:
            self._threads -= 1
            last = self._threads == 0
        if last:
            self._release()

    def _call(self, job: RemoteRequest, refused: frozenset[str]) -> Reply | CallError:
        outcome: Reply | CallError
        try:
            outcome = self._provider.call(job.request, self._options.timeout, refused)
        except CallError as call_error:
            outcome = call_error
        except Exception as error:  # nothing that goes wrong with one request may end a thread
            outcome = PermanentError(f"{type(error).__name__}: {error}")
        job.calls += outcome.sent if isinstance(outcome, CallError) else 1
        if isinstance(outcome, Reply) and (problem := self._check(outcome)):
            return PermanentError(problem, outcome.prompt_tokens, outcome.completion_tokens)
        return outcome

    def _next(self) -> RemoteRequest | None:
        """Return the next request to send, once one may be sent; None when there will be none."""
        with self._changed:
            while not self.is_closed:
                wait = None if self._blocked else self._rate_limit.wait()
                if wait == 0:
                    now = time.monotonic()
                    for job in self._waiting:
                        if job.not_before > now or self._has_twin_in_progress(job):
                            continue
                        reserved = self._budget.reserve(job.needed)
                        if reserved is not None:
                            job.reserved, job.round = reserved, self._rate_limit.began()
                            self._waiting.remove(job)
                            self._in_progress.append(job)
                            return job
                    wait = min((job.not_before - now for job in self._waiting if job.not_before > now), default=None)
                self._changed.wait(wait)
            return None

    def _has_twin_in_progress(self, job: RemoteRequest) -> bool:
        return self._cache is not None and any(other.digest == job.digest for other in self._in_progress)

    def _cache_key(self, job: RemoteRequest, refused: frozenset[str]) -> str:
        """Return the cache key of a request: its digest, with the parameters left out of it."""
        left_out = sorted(self._provider.left_out(job.request, refused))
        return digest([job.digest, left_out]) if left_out else job.digest

    def _cached(self, job: RemoteRequest, refused: frozenset[str]) -> Generation | None:
        """Return the cached response to a request, unless it was searched for in vain before."""
        if self._cache is None or job.examines or (cache_key := self._cache_key(job, refused)) == job.searched_key:
            return None
        job.searched_key = cache_key
        response = self._cache.get(self._responder, cache_key)
        return None if response is None else _as_answer(response, job)

    def _store(self, job: RemoteRequest, generation: Generation, refused: frozenset[str]) -> None:
        if self._cache is not None:
            self._cache.put(self._responder, self._cache_key(job, refused), generation)

    def _keep(self, job: RemoteRequest, reply: Reply, refused: frozenset[str]) -> Generation:
        """Return the answer, after caching it."""
        self._add(job, reply)
        self._note(job, reply)
        generation = Generation(
            job.request.id,
            reply.text,
            reply.finish_reason,
            # An examination compares the prompts of single calls.
            prompt_tokens=reply.prompt_tokens if job.examines else job.prompt_tokens,
            completion_tokens=job.completion_tokens,
            calls=job.calls,
        )
        if not job.examines:
            self._store(job, generation, refused)
        return generation

    @staticmethod
    def _add(job: RemoteRequest, outcome: Reply | CallError) -> None:
        """Add a call's tokens to its request's, where the server reported them."""
        if outcome.prompt_tokens is not None:
            job.prompt_tokens = (job.prompt_tokens or 0) + outcome.prompt_tokens
        if outcome.completion_tokens is not None:
            job.completion_tokens = (job.completion_tokens or 0) + outcome.completion_tokens

    def _end(self, job: RemoteRequest, outcome: Reply | CallError | None, answer: Generation | None) -> None:
        """Account for a call that ended or was not needed, and finish, retry or block its request."""
        self._in_progress.remove(job)
        self._rate_limit.ended()
        assumed = job.needed if isinstance(outcome, Reply) else NO_TOKENS
        prompt, completion = (None, None) if outcome is None else (outcome.prompt_tokens, outcome.completion_tokens)
        self._budget.settle(
            job.needed,
            job.reserved,
            assumed.prompt if prompt is None else prompt,
            assumed.completion if completion is None else completion,
        )
        if answer is not None:
            if outcome is not None:
                self._rate_limit.succeeded()
                self._unblock()
            self._answered(job, answer)
            return
        assert isinstance(outcome, CallError)
        self._add(job, outcome)
        delay = self._retry_delay(job, outcome)
        no_server = isinstance(outcome, TransientError) and outcome.unreached and delay is None
        no_key = isinstance(outcome, PermanentError) and outcome.refuses_key
        if (no_key or no_server) and not self._answered_once:
            self._blocked.append((job, outcome))
            return
        if job.cancelled or self.is_closed:
            return
        if delay is None:
            self._done.append(self._error(job, outcome))
        else:
            job.not_before = time.monotonic() + delay
            self._waiting.append(job)

    def _unblock(self) -> None:
        """Turn blocked requests into errors of their own: the server has answered another."""
        self._answered_once = True
        blocked, self._blocked = self._blocked, []
        self._done += [
            self._error(job, call_error) for job, call_error in blocked if not (job.cancelled or self.is_closed)
        ]

    def _answered(self, job: RemoteRequest, generation: Generation) -> None:
        if not job.cancelled and not self.is_closed:
            self._done.append(generation)
        if self._cache is None:
            return
        twins = [other for other in self._waiting if other.digest == job.digest]
        for twin in twins:
            self._waiting.remove(twin)
            self._done.append(_as_answer(generation, twin))

    def _retry_delay(self, job: RemoteRequest, call_error: CallError) -> float | None:
        """Return the seconds after which a request is sent again; None where it is not."""
        if isinstance(call_error, RetryWithoutParameter):
            return 0.0
        job.attempts += 1
        if not isinstance(call_error, TransientError):
            return None
        if call_error.overloaded:
            self._rate_limit.overloaded(job.round)
        if self._is_repeated(job, call_error):
            return None
        if call_error.retry_after is None:
            return None if job.attempts >= self._options.attempts else rate_limit.backoff(job.attempts)
        if call_error.retry_after > rate_limit.MAX_PAUSE_S:
            return None
        self._rate_limit.pause(call_error.retry_after)
        return (
            None
            if job.attempts >= self._options.attempts
            else max(call_error.retry_after, rate_limit.backoff(job.attempts))
        )

    @staticmethod
    def _is_repeated(job: RemoteRequest, call_error: TransientError) -> bool:
        """Return whether the server keeps replying with one fault to a request that it must answer alike."""
        if not call_error.in_reply or job.request.decoding.temperature:
            job.same_faults = 0
            return False
        job.same_faults = job.same_faults + 1 if str(call_error) == job.last_fault else 1
        job.last_fault = str(call_error)
        return job.same_faults >= _SAME_FAULTS

    def _error(self, job: RemoteRequest, call_error: CallError) -> Generation:
        reason = str(call_error)
        if isinstance(call_error, TransientError) and (call_error.retry_after or 0) > rate_limit.MAX_PAUSE_S:
            reason = f"the server asks to wait {call_error.retry_after:.0f} seconds: {reason}"
        return Generation(
            job.request.id,
            "",
            "error",
            prompt_tokens=job.prompt_tokens,
            completion_tokens=job.completion_tokens,
            error=shorten(reason if job.attempts < 2 else f"failed {job.attempts} times, the last time: {reason}"),
            calls=job.calls,
        )

    def _release(self) -> None:
        self._provider.close()
        if self._cache is not None:
            self._cache.close()


def _as_answer(reply: Generation, job: RemoteRequest) -> Generation:
    """Return a response that took no call of its own as the answer to ``job``, with the usage of its earlier calls."""
    return replace(
        reply,
        request_id=job.request.id,
        prompt_tokens=job.prompt_tokens or 0,
        completion_tokens=job.completion_tokens or 0,
        calls=job.calls,
    )
