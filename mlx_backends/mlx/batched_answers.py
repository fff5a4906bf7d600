"""Batched answers of a vision-language model: requests prepared ahead in a thread, and answered in rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any

from benchmarks.vocabulary import Decoding, Generation, Request
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.error_text import one_line
from mlx_backends.core.loglikelihood import CandidateScoring
from mlx_backends.core.metal_faults import DeviceLostError, metal_fault, out_of_memory
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery, raising_root_cause, root_cause, settle
from mlx_backends.mlx.metal.metal_switches import SERIAL_IMAGES, InlineExecutor, is_on
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.mlx.mlx_preprocess import PreparedInputs
from mlx_backends.mlx.vlm_batch import VLMRows
from mlx_backends.mlx.vlm_row import VLMRow

_SLICE_S = 0.05

_TOGETHER_S = 0.5
"""Longest time that a device with nothing to do waits for a whole batch of prepared requests."""


@dataclass(eq=False)
class _Work:
    """A request whose row is prepared, and its cost so far.

    ``forced`` are the rows that score its candidates as continuations of the same prompt, None until the answer is known.
    """

    request: Request
    row: VLMRow
    scoring: CandidateScoring | None = None
    forced: Sequence[VLMRow] | None = None
    prefill_s: float = 0.0
    decode_s: float = 0.0
    peak_memory: int = 0

    @property
    def rows(self) -> Sequence[VLMRow]:
        """The row of its answer, then those of its candidates."""
        return (self.row, *(self.forced or ()))

    @property
    def is_finished(self) -> bool:
        """True once all rows are."""
        is_started = self.scoring is None or self.forced is not None
        return is_started and all(row.finished is not None for row in self.rows)

    @property
    def is_failed(self) -> bool:
        """True if a row could not be answered in a batch."""
        return any(row.failed is not None for row in self.rows)


class BatchedAnswers:
    """Answers to up to ``width`` requests in a batch, with as many more prepared while the model works.

    ``rows`` makes the rows for a width, which is halved where memory runs short. ``prepare`` makes a request's inputs; it is
    called in a thread. ``processors`` makes the logits processors of its form, ``scoring`` what scores its candidates, if it has
    any, and ``detokenizer`` decodes tokens. A request that
    fails in a batch is not an error yet: it is put into ``sequential``, to be answered alone. After a fault of the GPU, all
    requests in progress are.
    """

    def __init__(
        self,
        rows: Callable[[int], VLMRows],
        width: int,
        prepare: Callable[[Request], PreparedInputs],
        processors: Callable[[Request], list[Any]],
        scoring: Callable[[Request], CandidateScoring | None],
        detokenizer: Detokenizer,
        limits: MemoryLimits,
        recovery: FaultRecovery,
    ) -> None:
        self._make = rows
        self._rows = rows(width)
        self._prepare = prepare
        self._processors = processors
        self._scoring = scoring
        self._detokenizer = detokenizer
        self._limits = limits
        self._recovery = recovery
        self._pool: Executor = InlineExecutor() if is_on(SERIAL_IMAGES) else ThreadPoolExecutor(1, "prepare")
        self._preparing: deque[tuple[Request, Future[PreparedInputs]]] = deque()
        self._started: list[_Work] = []
        self.sequential: deque[Request] = deque()

    @property
    def capacity(self) -> int:
        return 2 * self._rows.width

    @property
    def busy(self) -> int:
        """Return how many requests are in progress or being prepared."""
        return len(self._preparing) + len(self._started)

    def submit(self, request: Request) -> None:
        self._preparing.append((request, self._pool.submit(self._prepared, request)))

    def _prepared(self, request: Request) -> PreparedInputs:
        with raising_root_cause():  # in the thread that computed: streams are a thread's own
            return self._prepare(request)

    def step(self) -> Sequence[Generation]:
        deadline = perf_counter() + _SLICE_S
        try:
            done = list(self._start_prepared())
            while self._started and not done:
                done = self._advance()
                if done or perf_counter() > deadline:
                    break
                done = list(self._start_prepared())
        except BaseException:
            self._restart(self._rows.width)
            self._started = []
            raise
        return done

    def cancel(self, request_id: str) -> None:
        self.sequential = deque(request for request in self.sequential if request.id != request_id)
        for request, prepared in [pair for pair in self._preparing if pair[0].id == request_id]:
            prepared.cancel()
            self._preparing.remove((request, prepared))
        for work in [work for work in self._started if work.request.id == request_id]:
            self._started.remove(work)
            self._drop(work)

    def abandon(self, width: int | None = None) -> None:
        """Move all rows to ``sequential``, because what they have computed may be wrong; ``width`` is that of the next ones."""
        self.sequential.extend(work.request for work in self._started)
        self._started = []
        self._restart(width or self._rows.width)

    def close(self) -> None:
        for _, prepared in self._preparing:
            prepared.cancel()
        self._pool.shutdown()
        self._preparing.clear()
        self._started = []
        self._rows.close()

    def _start_prepared(self) -> Iterator[Generation]:
        """Start the rows of prepared requests, in the order of submission; yield errors of those that cannot be prepared.

        A batch starts together: rows that start one after another take more steps, for as long as answers are equally long.
        """
        if self._rows.is_idle and (missing := self._rows.width - len(self._started)) > 0:
            wait([prepared for _, prepared in islice(self._preparing, missing)], timeout=_TOGETHER_S)
        while self._preparing and self._preparing[0][1].done():
            request, prepared = self._preparing.popleft()
            try:
                processors = [
                    *self._processors(request),
                    *sampling_processors(request.decoding, request.sampling_seed),
                ]
                work = self._work(request, prepared.result(), processors)
            except Exception as error:  # a request that fails must not end the run
                if metal_fault(error) is not None:
                    self.sequential.append(request)
                    self._recover(error)
                    return
                yield Generation(request.id, "", "error", error=one_line(error))
            else:
                self._rows.add(work.row)
                self._started.append(work)

    def _work(self, request: Request, inputs: PreparedInputs, processors: Sequence[Any]) -> _Work:
        """Return a request with the row of its answer."""
        scoring, limit = self._scoring(request), request.decoding.max_tokens
        if scoring is None:
            return _Work(request, VLMRow(inputs, limit, processors, is_continued=request.is_continued))
        # The answer is observed before a token is drawn.
        return _Work(request, VLMRow(inputs, limit, [scoring.answer, *processors], is_continued=True), scoring)

    def _start_forced(self, work: _Work) -> None:
        """Start the rows that score the candidates of an answered request, before others, while its prompt is cached."""
        assert work.scoring is not None
        work.scoring.start(self._detokenizer.text(_answer(work.row)))
        work.forced = [VLMRow(work.row.inputs, len(row.tokens), [row]) for row in work.scoring.forced]
        for row in reversed(work.forced):
            self._rows.add(row, first=True)

    def _drop(self, work: _Work) -> None:
        for row in work.rows:
            self._rows.drop(row)

    def _advance(self) -> list[Generation]:
        """Do one step and return the finished answers."""
        import mlx.core as mx

        mx.reset_peak_memory()
        started = perf_counter()
        try:
            worked = self._rows.work()
            if any(work.is_finished for work in self._started):
                settle()
        except Exception as error:
            self._recover(root_cause(error))
            return []
        self._share_cost(worked, perf_counter() - started, int(mx.get_peak_memory()))
        for work in self._started:
            if work.row.finished is not None and work.scoring is not None and work.forced is None:
                self._start_forced(work)
        done = [work for work in self._started if work.is_finished]
        for work in self._started:
            if work.is_failed:
                self._drop(work)
                self.sequential.append(work.request)
        self._started = [work for work in self._started if not work.is_finished and not work.is_failed]
        generations = [self._generation(work) for work in done]
        if done:
            self._limits.relieve()
        return generations

    def _share_cost(self, worked: Sequence[VLMRow], seconds: float, peak: int) -> None:
        """Divide the time of a step among the rows that moved on."""
        for work in self._started:
            work.peak_memory = max(work.peak_memory, peak)
            for row in work.rows:
                if row in worked and len(row.tokens) > 1:
                    work.decode_s += seconds / len(worked)
                elif row in worked:
                    work.prefill_s += seconds / len(worked)

    def _recover(self, error: Exception) -> None:
        """Abandon all rows, so that only the request at fault becomes an error; halve the width where memory ran out.

        Raises DeviceLostError where the GPU does not compute any more.
        """
        self.abandon(max(1, self._rows.width // 2) if out_of_memory(error) else None)
        if metal_fault(error) is not None and not self._recovery.recover(error):
            raise DeviceLostError(error) from error

    def _restart(self, width: int) -> None:
        self._rows.close()
        self._rows = self._make(width)

    def _generation(self, work: _Work) -> Generation:
        row = work.row
        answer = _answer(row)
        memory = self._limits.usage()
        return Generation(
            work.request.id,
            self._detokenizer.reply(work.request, answer),
            "stop" if row.finished == "stop" else "length",
            tokens=tuple(row.tokens),
            prompt_tokens=len(row.inputs.content),
            completion_tokens=len(row.tokens),
            prefill_s=work.prefill_s,
            decode_s=work.decode_s,
            peak_memory=work.peak_memory,
            active_memory=memory.active,
            cache_memory=memory.cache,
            scores=work.scoring.scores(answer) if work.scoring else (),
        )


def _answer(row: VLMRow) -> Sequence[int]:
    """Return the tokens of a finished answer, without the one that ended it."""
    return row.tokens[:-1] if row.finished == "stop" else row.tokens


def sampling_processors(decoding: Decoding, seed: int) -> list[Any]:
    """Return logits processors that sample one answer's tokens as mlx-vlm does for it alone; none for a greedy one.

    The processor leaves one token, because BatchGenerator has one sampler for all its rows.
    """
    if decoding.temperature == 0:
        return []
    import mlx.core as mx
    from mlx_vlm.generate import ar

    sampler = ar._PositionedTargetSampler(temperature=decoding.temperature, top_p=decoding.top_p, top_k=0, seed=seed)
    drawn = 0

    def draw(tokens: Any, logits: Any) -> Any:
        nonlocal drawn
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        token = sampler.sample_target(logprobs, row_ids=[0], positions=[drawn])
        drawn += 1
        return mx.where(mx.arange(logits.shape[-1]) == token[:, None], logits, mx.array(-float("inf"), logits.dtype))

    return [draw]
