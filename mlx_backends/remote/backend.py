"""Remote backend: concurrent calls of a provider's API, each counted, and none repeated for a cached answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from benchmarks.errors import ModelError, NoAnswerError
from benchmarks.vocabulary import Generation, Request, digest
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import rate_limit
from mlx_backends.remote.budget import NO_TOKENS, Budget, RequestSize, request_size
from mlx_backends.remote.errors import (
    CallError,
    EndpointChangedError,
    PermanentError,
    RetryWithoutParameter,
    TransientError,
    shorten,
)
from mlx_backends.remote.examination import (
    EXAMINATION,
    Conversation,
    EndpointCheck,
    Evidence,
    Examiner,
    has_pictures,
    spot_interval,
)
from mlx_backends.remote.media import EncodedMedia
from mlx_backends.remote.provider import LIMIT_NAMES, Provider, Reply
from mlx_backends.remote.server_watch import ServerWatch
from mlx_backends.remote.several import SeveralServers

_STEP_S = 0.05
_SAME_FAULTS = 3
"""Calls after which a fault that a server repeats is the answer to a request; a fault that passes seldom comes back so often."""


@dataclass(eq=False)
class _Job:
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


class RemoteBackend(Backend):
    """Answers through ``provider`` with ``options``.

    ``responder`` identifies all that decides a response besides its request, ``key_variable`` holds the key.

    A call that fails transiently is retried, up to ``options.attempts`` calls in all (a call that only finds out which
    parameters the server accepts is not counted as an attempt); then the request is answered by an error that says why.
    ``calls`` and tokens of a Generation are the sum over all calls that were made for it. Of two equal requests in progress,
    the second takes the first's response, where responses are cached: under the request and the parameters left out of it because
    the server refuses them. ``step`` raises BudgetError when nothing is in progress and no request fits below the ceiling, and
    ModelError when the server refuses the key, or there is no server, before anything was answered: then no more calls are made.
    """

    def __init__(
        self,
        info: EngineInfo,
        provider: Provider | SeveralServers,
        media: EncodedMedia,
        options: RemoteOptions,
        responder: str,
        key_variable: str,
    ) -> None:
        self.info = info
        self.opened_at = time.time()
        self._provider = provider
        self._media = media
        self._options = options
        self._responder = responder
        self._key_variable = key_variable
        self._max_threads = max(1, options.concurrency)
        # Twice the threads, so that requests waiting for a retry do not hold up the others.
        self.capacity = 2 * self._max_threads
        self._budget = Budget(options)
        self._rate_limit = rate_limit.RateLimit(self._max_threads)
        self._cache = None if options.replies is None else ResponseCache(options.replies)
        self._changed = threading.Condition()
        self._waiting: list[_Job] = []
        self._in_progress: list[_Job] = []
        self._done: list[Generation] = []
        self._answered_once = False
        self._blocked: list[tuple[_Job, CallError]] = []
        self._threads = 0
        self._closed = False
        single = isinstance(provider, Provider) and bool(info.versions.get("server"))
        self._watch = ServerWatch(single, requested=info.model.partition(":")[2])
        self._examiner: Examiner | None = None
        self._conversation: Conversation | None = None
        self._asked_at = 0.0
        self._real: Generation | None = None
        self._real_digest = ""
        self._sent: dict[str, bool] = {}
        """The requests in progress that need a call, and whether they show pictures."""

        self._confirmed = 0
        self._unconfirmed: list[str] = []
        self._pictured = 0
        """The number of unconfirmed answers to requests with pictures."""

        self._being_confirmed: list[str] = []
        self._pictured_being_confirmed = 0

    @property
    def remarks(self) -> Sequence[str]:
        # The limit has two names, and is always sent under one of them.
        left_out = sorted(self._provider.refused - set(LIMIT_NAMES))
        servers = self._provider.remarks if isinstance(self._provider, SeveralServers) else []
        left_out_remarks = [f"{self.info.model} refuses {name}, which was left out." for name in left_out]
        examined = [self.endpoint_check.remark] if self.endpoint_check and self.endpoint_check.remark else []
        return [*left_out_remarks, *servers, *examined, *self._watch.remarks]

    def submit(self, request: Request) -> None:
        with self._changed:
            if self._closed:
                raise RuntimeError("the remote engine is closed")
            if self._in_flight() - (self._conversation is not None) >= self.capacity:
                raise RuntimeError("the remote engine already holds as many requests as its capacity")
        job = _Job(request, request.digest)
        cached = self._examined(job) or self._cached(job, self._provider.refused)
        if cached is None:
            job.needed = request_size(request, self._media)
        with self._changed:
            if cached is not None:
                self._done.append(cached)
                return
            if self._examiner is not None:
                self._sent[request.id] = has_pictures(request)
            self._wait(job)

    def _wait(self, job: _Job) -> None:
        with self._changed:
            self._waiting.append(job)
            if self._threads < min(self._max_threads, self._in_flight()):
                self._threads += 1
                # A daemon, so that a call in progress does not keep the process from ending.
                threading.Thread(target=self._work, name="rashomon-remote", daemon=True).start()
            self._changed.notify_all()

    def step(self) -> Sequence[Generation]:
        done = self._finished()
        return done if self._examiner is None else self._watched(done)

    def _finished(self) -> Sequence[Generation]:
        """Return what has finished, an examination's replies included, after waiting for it a moment."""
        with self._changed:
            if not self._done and self._in_flight():
                self._changed.wait_for(lambda: self._done or self._stuck() or self._locked_out(), _STEP_S)
            done, self._done = self._done, []
            if not done and (cause := self._locked_out()):
                if isinstance(cause, PermanentError):
                    message = f"the provider refuses the key; set {self._key_variable} again"
                    raise ModelError(f"{self.info.model}: {message} ({cause}).")
                message = "the server cannot be reached; check that it runs and that its address is right"
                raise NoAnswerError(f"{self.info.model}: {message} ({cause}).")
            if not done and (stuck := self._stuck()):
                raise self._budget.exceeded(stuck.needed)
            return done

    # --- examination of the server ---

    @property
    def endpoint_check(self) -> EndpointCheck | None:
        """The result of the examination so far; None without one."""
        return None if self._examiner is None else self._examiner.check

    def resume_examination(self, check: EndpointCheck) -> None:
        """Take over the result of an earlier process, so that the server is only checked now and then."""
        self._examiner = Examiner(self._media, check)
        self._watch.model = check.model

    def examine(
        self, request: Request, stop: Callable[[], bool] = lambda: False, required: Evidence = ""
    ) -> EndpointCheck | None:
        """Examine the server by a ``request`` with pictures, with nothing in flight; None if ``stop`` returns True.

        The server must show the ``required`` evidence. The answer to ``request`` is kept until the run
        submits it. Raises as :meth:`step`.
        """
        self._examiner = examiner = Examiner(self._media, required=required)
        self._real, self._real_digest = None, request.digest
        problem = self._converse(examiner.first(request), stop)
        if problem is None:
            self._examiner = None
            return None
        if self._watch.take_change():  # the answer to ``request`` came from another model
            self._real_digest = ""
        examiner.check = replace(examiner.check, problem=problem)
        return examiner.check

    def confirm(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Check that the pictures of the last answers were seen, with nothing in flight. Raises as :meth:`step`."""
        if self._conversation is not None and (problem := self._await_end(stop)):
            raise self._changed_error(problem)
        if self._examiner is None or not self._pictured or not self._examiner.is_worth_repeating:
            return
        self._begin_confirmation()
        if problem := self._converse(self._examiner.spot(), stop):
            raise self._changed_error(problem)

    def _converse(self, conversation: Conversation, stop: Callable[[], bool]) -> str | None:
        """Return the problem that a check finds, with nothing else in flight; None if it was stopped."""
        self._ask(conversation, next(conversation))
        return self._await_end(stop)

    def _await_end(self, stop: Callable[[], bool]) -> str | None:
        """Return the problem that the check in progress finds; None if it was stopped."""
        while not stop():
            for generation in self._finished():
                problem = self._reply_to(generation)
                if problem is not None:
                    return problem
        self._conversation = None
        return None

    def _ask(self, conversation: Conversation, request: Request) -> None:
        self._conversation, self._asked_at = conversation, time.monotonic()
        self._wait(_Job(request, request.digest, request_size(request, self._media), examines=True))

    def _reply_to(self, generation: Generation) -> str | None:
        """Hand a reply to the check that asked for it; return the problem it finds, empty for none, None if it goes on."""
        conversation, examiner = self._conversation, self._examiner
        assert conversation is not None
        assert examiner is not None
        seconds = time.monotonic() - self._asked_at
        examiner.check = examiner.check.with_usage(generation, model=self._watch.model, seconds=seconds)
        if self._real is None:  # the first request of an examination is one of the run
            self._real = generation
        try:
            self._ask(conversation, conversation.send(generation))
        except StopIteration as end:
            self._conversation = None
            return str(end.value)
        return None

    def _watched(self, done: Sequence[Generation]) -> Sequence[Generation]:
        """Return the answers among ``done``, and check the server now and then. Raises EndpointChangedError."""
        answers = [generation for generation in done if not generation.request_id.startswith(EXAMINATION)]
        for generation in answers:
            pictured = self._sent.pop(generation.request_id, None)
            if pictured is not None and generation.finish_reason != "error":
                self._unconfirmed.append(generation.request_id.rpartition("#")[0])
                self._pictured += pictured
        for generation in done:
            if generation.request_id.startswith(EXAMINATION) and self._conversation is not None:
                problem = self._reply_to(generation)
                if problem == "":
                    self._confirmed += self._pictured_being_confirmed
                    self._being_confirmed = []
                elif problem:
                    raise self._changed_error(problem)
        if problem := self._watch.take_change():
            raise self._changed_error(problem)
        if self._watch.problem and not (self._examiner and self._examiner.check.problem):  # else the user insists
            raise self._changed_error(self._watch.problem)
        due = spot_interval(self._confirmed)
        examiner = self._examiner
        if examiner and self._conversation is None and self._pictured >= due and examiner.is_worth_repeating:
            self._begin_confirmation()
            spot = examiner.spot()
            self._ask(spot, next(spot))
        return answers

    def _begin_confirmation(self) -> None:
        self._being_confirmed, self._unconfirmed = self._unconfirmed, []
        self._pictured_being_confirmed, self._pictured = self._pictured, 0

    def _changed_error(self, problem: str) -> EndpointChangedError:
        unconfirmed = list(dict.fromkeys([*self._being_confirmed, *self._unconfirmed]))
        if self._examiner is not None:
            self._examiner.check = replace(self._examiner.check, problem=problem)
        return EndpointChangedError(
            f"{self.info.model}: {problem}. The {len(unconfirmed)} answers since the last check are set aside; repair the "
            "server and resume the run.",
            unconfirmed,
        )

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
            self._closed = True
            self._waiting.clear()
            self._done.clear()
            self._changed.notify_all()
            last = self._threads == 0
        if last:
            self._release()

    def _in_flight(self) -> int:
        running = sum(not job.cancelled for jobs in (self._in_progress, self._blocked_jobs()) for job in jobs)
        return len(self._waiting) + len(self._done) + running

    def _blocked_jobs(self) -> list[_Job]:
        return [job for job, _ in self._blocked]

    def _locked_out(self) -> CallError | None:
        """Return why no request can succeed, where the server has answered none and no call in progress can change that."""
        return self._blocked[0][1] if self._blocked and not self._in_progress else None

    def _stuck(self) -> _Job | None:
        """Return a request that exceeds the budget, where no other is within it or in progress."""
        if self._in_progress or not self._waiting or any(self._budget.allows(job.needed) for job in self._waiting):
            return None
        return self._waiting[0]

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

    def _call(self, job: _Job, refused: frozenset[str]) -> Reply | CallError:
        outcome: Reply | CallError
        try:
            outcome = self._provider.call(job.request, self._options.timeout, refused)
        except CallError as call_error:
            outcome = call_error
        except Exception as error:  # nothing that goes wrong with one request may end a thread
            outcome = PermanentError(f"{type(error).__name__}: {error}")
        job.calls += outcome.sent if isinstance(outcome, CallError) else 1
        if isinstance(outcome, Reply) and (problem := self._watch.other_model(outcome)):
            return PermanentError(problem, outcome.prompt_tokens, outcome.completion_tokens)
        return outcome

    def _next(self) -> _Job | None:
        """Return the next request to send, once one may be sent; None when there will be none."""
        with self._changed:
            while not self._closed:
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

    def _has_twin_in_progress(self, job: _Job) -> bool:
        return self._cache is not None and any(other.digest == job.digest for other in self._in_progress)

    def _cache_key(self, job: _Job, refused: frozenset[str]) -> str:
        """Return the cache key of a request: its digest, with the parameters left out of it."""
        left_out = sorted(self._provider.left_out(job.request, refused))
        return digest([job.digest, left_out]) if left_out else job.digest

    def _examined(self, job: _Job) -> Generation | None:
        """Return the answer to a request that the examination sent, with its usage, for the first time it is requested."""
        real, examiner = self._real, self._examiner
        if real is None or examiner is None or job.digest != self._real_digest:
            return None
        self._real_digest = ""
        if real.finish_reason == "error":
            return None
        examiner.check = examiner.check.with_usage(real, -1)
        self._unconfirmed.append(job.request.instance_id)
        self._pictured += 1
        if self._cache is not None:
            self._cache.put(self._responder, self._cache_key(job, self._provider.refused), real)
        return replace(real, request_id=job.request.id)

    def _cached(self, job: _Job, refused: frozenset[str]) -> Generation | None:
        """Return the cached response to a request, unless it was searched for in vain before."""
        if self._cache is None or job.examines or (cache_key := self._cache_key(job, refused)) == job.searched_key:
            return None
        job.searched_key = cache_key
        response = self._cache.get(self._responder, cache_key)
        return None if response is None else _as_answer(response, job)

    def _keep(self, job: _Job, reply: Reply, refused: frozenset[str]) -> Generation:
        """Return the answer, after caching it."""
        self._add(job, reply)
        if job.examines and self._examiner is not None and reply.image_tokens:
            self._examiner.counted.add(job.request.id)
        if not job.examines and self._examiner is not None:
            self._watch.note_size(reply, job.needed.prompt)
        generation = Generation(
            job.request.id,
            reply.text,
            reply.finish_reason,
            # An examination compares the prompts of single calls.
            prompt_tokens=reply.prompt_tokens if job.examines else job.prompt_tokens,
            completion_tokens=job.completion_tokens,
            calls=job.calls,
        )
        if self._cache is not None and not job.examines:
            self._cache.put(self._responder, self._cache_key(job, refused), generation)
        return generation

    @staticmethod
    def _add(job: _Job, outcome: Reply | CallError) -> None:
        """Add a call's tokens to its request's, where the server reported them."""
        if outcome.prompt_tokens is not None:
            job.prompt_tokens = (job.prompt_tokens or 0) + outcome.prompt_tokens
        if outcome.completion_tokens is not None:
            job.completion_tokens = (job.completion_tokens or 0) + outcome.completion_tokens

    def _end(self, job: _Job, outcome: Reply | CallError | None, answer: Generation | None) -> None:
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
        if job.cancelled or self._closed:
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
            self._error(job, call_error) for job, call_error in blocked if not (job.cancelled or self._closed)
        ]

    def _answered(self, job: _Job, generation: Generation) -> None:
        if not job.cancelled and not self._closed:
            self._done.append(generation)
        if self._cache is None:
            return
        twins = [other for other in self._waiting if other.digest == job.digest]
        for twin in twins:
            self._waiting.remove(twin)
            self._done.append(_as_answer(generation, twin))

    def _retry_delay(self, job: _Job, call_error: CallError) -> float | None:
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
    def _is_repeated(job: _Job, call_error: TransientError) -> bool:
        """Return whether the server keeps replying with one fault to a request that it must answer alike."""
        if not call_error.in_reply or job.request.decoding.temperature:
            job.same_faults = 0
            return False
        job.same_faults = job.same_faults + 1 if str(call_error) == job.last_fault else 1
        job.last_fault = str(call_error)
        return job.same_faults >= _SAME_FAULTS

    def _error(self, job: _Job, call_error: CallError) -> Generation:
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


def _as_answer(reply: Generation, job: _Job) -> Generation:
    """Return a response that took no call of its own as the answer to ``job``, with the usage of its earlier calls."""
    return replace(
        reply,
        request_id=job.request.id,
        prompt_tokens=job.prompt_tokens or 0,
        completion_tokens=job.completion_tokens or 0,
        calls=job.calls,
    )
