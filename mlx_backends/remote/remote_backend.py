"""Remote backend: concurrent calls of a provider's API, each counted, and none repeated for a cached answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.vocabulary import Generation, Request
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.options import RemoteOptions
from mlx_backends.remote.api_budget import request_size
from mlx_backends.remote.api_calls import RemoteCalls, RemoteRequest
from mlx_backends.remote.api_provider import LIMIT_NAMES, Provider, Reply
from mlx_backends.remote.endpoint_examination import (
    EXAMINATION,
    Conversation,
    EndpointCheck,
    Evidence,
    Examiner,
    has_pictures,
    spot_interval,
)
from mlx_backends.remote.remote_errors import EndpointChangedError
from mlx_backends.remote.remote_media import EncodedMedia
from mlx_backends.remote.server_watch import ServerWatch
from mlx_backends.remote.several_servers import SeveralServers


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
        self._calls = RemoteCalls(
            provider, options, responder, info.model, key_variable, check=self._other_model, note=self._note_reply
        )
        self.capacity = self._calls.capacity
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
        if self._calls.is_closed:
            raise RuntimeError("the remote engine is closed")
        if self._calls.in_flight() - (self._conversation is not None) >= self.capacity:
            raise RuntimeError("the remote engine already holds as many requests as its capacity")
        job = RemoteRequest(request, request.digest)
        cached = self._examined(job) or self._calls.cached(job)
        if cached is not None:
            self._calls.answer(cached)
            return
        job.needed = request_size(request, self._media)
        if self._examiner is not None:
            self._sent[request.id] = has_pictures(request)
        self._calls.submit(job)

    def step(self) -> Sequence[Generation]:
        done = self._calls.finished()
        return done if self._examiner is None else self._watched(done)

    def cancel(self, request_id: str) -> None:
        """Drop a request. A call in progress for it runs to its end, and its response is cached."""
        self._calls.cancel(request_id)

    def close(self) -> None:
        """Answer nothing more; calls in progress end by themselves."""
        self._calls.close()

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
            for generation in self._calls.finished():
                problem = self._reply_to(generation)
                if problem is not None:
                    return problem
        self._conversation = None
        return None

    def _ask(self, conversation: Conversation, request: Request) -> None:
        self._conversation, self._asked_at = conversation, time.monotonic()
        self._calls.submit(RemoteRequest(request, request.digest, request_size(request, self._media), examines=True))

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

    def _examined(self, job: RemoteRequest) -> Generation | None:
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
        self._calls.store(job, real)
        return replace(real, request_id=job.request.id)

    # --- in the threads of the calls ---

    def _other_model(self, reply: Reply) -> str:
        return self._watch.other_model(reply)

    def _note_reply(self, job: RemoteRequest, reply: Reply) -> None:
        if self._examiner is None:
            return
        if not job.examines:
            self._watch.note_size(reply, job.needed.prompt)
        elif reply.image_tokens:
            self._examiner.counted.add(job.request.id)
