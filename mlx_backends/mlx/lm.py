"""Text-only models through mlx-lm: several requests in one batch where that changes no answer."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from benchmarks.base import Decoding, Generation, Media, Message, Request, Text
from mlx_backends.base import Backend, EngineInfo
from mlx_backends.core.batch_invariance import (
    ALONE,
    BatchInvariance,
    ForcedAnswer,
    ReferenceAnswer,
    Watch,
    answered,
    prove,
)
from mlx_backends.core.chat_prompt import Prompter, PromptError, Turn
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.mlx.lm_batch import TextRow, rows_for
from mlx_backends.mlx.load import one_line
from mlx_backends.mlx.memory_limits import MemoryLimits
from mlx_backends.models.tokenizer_limits import panics_as_errors

WIDTH = 8
"""How many requests are answered together, by a model that is proven to answer them so as it does alone."""

TOGETHER = "together"

_SLICE_S = 0.05
_MIN_TEMPERATURE = 0.01  # mlx-vlm's; below it the scaled logits overflow


class LMBackend(Backend):
    """A loaded text-only model.

    An answer depends on its request alone: nothing is kept from one to the next, sampling is seeded from the request's
    digest, and only models whose batches are proven equal take more than one request (:mod:`mlx_backends.mlx.lm_batch`).
    Whatever goes wrong while answering becomes a Generation with an error; a batch that fails is asked again one by one, so
    that a request cannot spoil its neighbours.

    Of a Generation, ``tokens`` are all that the model gave, the one that ended the answer included; ``prefill_s`` and
    ``decode_s`` are the request's share of the time spent up to and after its first token, so that their sum over all
    requests is the time it took; ``peak_memory`` is MLX's while the request was under way, its neighbours included.
    """

    def __init__(self, info: EngineInfo, model: Any, tokenizer: Any, *, width: int | None = None) -> None:
        """``tokenizer`` is mlx-lm's wrapper, which knows what ends an answer; ``width`` bounds how many are answered together."""
        self.info = info
        self._ends = frozenset(tokenizer.eos_token_ids)
        self._prompter = TextPrompter(tokenizer)
        self._reader = Detokenizer(tokenizer._tokenizer)
        self._constrainer = Constrainer(tokenizer._tokenizer, self._ends)
        self._limits = MemoryLimits.here()
        self._model = model
        self._width = width or WIDTH
        self._rows = rows_for(model, self._ends, self._width)
        self.capacity = self._widest = self._rows.width
        self.proof: BatchInvariance | None = None
        self._waiting: list[Request] = []
        self._begun: list[_Work] = []
        self._single: set[str] = set()
        """The requests that are asked by themselves, because a batch that they were part of failed."""

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if len(self._waiting) + len(self._begun) >= self.capacity:
            raise RuntimeError(f"the model answers at most {self.capacity} requests at a time")
        self._waiting.append(request)

    def step(self) -> Sequence[Generation]:
        until = perf_counter() + _SLICE_S
        try:
            with redirect_stdout(sys.stderr):
                done = list(self._begin())
                while self._begun and not done:
                    done = self._advance()
                    if perf_counter() > until:
                        break
        except BaseException:
            self._waiting, self._begun = [], []
            self._restart()
            raise
        self._single -= {generation.request_id for generation in done}
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = [request for request in self._waiting if request.id != request_id]
        for work in [work for work in self._begun if work.request.id == request_id]:
            self._begun.remove(work)
            self._rows.drop(work.row)
        self._single.discard(request_id)

    @property
    def remarks(self) -> Sequence[str]:
        return () if self.proof is None else self.proof.remarks(self.info.model)

    @property
    def widest(self) -> int:
        return self._widest

    def exact(self) -> None:
        self._use(1)
        self.proof = None

    def prove(self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False) -> BatchInvariance | None:
        self._use(self._width)
        self.proof = None
        if self.capacity == 1:
            return None
        with redirect_stdout(sys.stderr):
            if not (cases := answered(requests, self._case, stop)):
                return None
            self.proof = prove(cases, self._padded, {TOGETHER: lambda cases: self._led(self._width, cases)})
        if self.proof.way == ALONE:
            self._use(1)
        return self.proof

    def close(self) -> None:
        self._waiting, self._begun = [], []
        if self._model is not None:
            self._rows.close()
            self._model = None
            del self._rows, self._prompter, self._reader, self._constrainer
        gc.collect()
        import mlx.core as mx

        mx.clear_cache()

    def _use(self, width: int) -> None:
        """Answer up to ``width`` requests together from now on."""
        if self._waiting or self._begun:
            raise RuntimeError("the model is answering")
        self._rows.close()
        self._rows = rows_for(self._model, self._ends, width)
        self.capacity = self._rows.width

    def _case(self, request: Request) -> ReferenceAnswer:
        """``request`` answered by itself."""
        import numpy as np

        watch, row = Watch(), self._row(request)
        row.processors = [watch]
        self._finish(1, [row])
        return ReferenceAnswer(request, row.tokens, np.stack(watch.logits[: len(row.tokens)]))

    def _padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """Each case beside a longer row that pads it."""
        found = []
        for case in cases:
            words = len(self._row(case.request).prompt) + 16
            longer = replace(case.request, messages=(Message("user", (Text("and " * words),)),))
            found.append(self._led(2, [case, ReferenceAnswer(longer, case.tokens, None)])[0])
        return found

    def _led(self, width: int, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """The logits of ``cases`` when they are led through their tokens, up to ``width`` together."""
        import numpy as np

        led = [ForcedAnswer(case.tokens) for case in cases]
        rows = [self._row(case.request) for case in cases]
        for row, case, leader in zip(rows, cases, led, strict=True):
            row.processors, row.max_tokens = [leader], len(case.tokens)
        self._finish(width, rows)
        return [np.stack(leader.logits) for leader in led]

    def _finish(self, width: int, rows: Sequence[TextRow]) -> None:
        """Have ``rows`` answered, up to ``width`` together."""
        together = rows_for(self._model, self._ends, width)
        try:
            waiting = list(rows)
            while any(row.finished is None for row in rows):
                begun = [row for row in rows if row.finished is None and row not in waiting]
                while waiting and len(begun) < together.width:
                    begun.append(waiting.pop(0))
                    together.add(begun[-1])
                together.work()
        finally:
            together.close()

    def _begin(self) -> Iterator[Generation]:
        """Begin what waits, as far as it may join what is under way; the errors of requests that cannot be asked."""
        while self._waiting and not (self._begun and {self._waiting[0].id, self._begun[0].request.id} & self._single):
            request = self._waiting.pop(0)
            try:
                row = self._row(request)
                self._rows.add(row)
            except Exception as error:  # a request that fails must not end the run
                yield _failed(request, error)
            else:
                self._begun.append(_Work(request, row))

    def _row(self, request: Request) -> TextRow:
        decoding = request.decoding
        return TextRow(
            self._prompter.ids(request.messages),
            decoding.max_tokens,
            _sampler(decoding, int(request.digest[:8], 16)),
            self._constrainer.processors(request.form),
        )

    def _advance(self) -> list[Generation]:
        """Read a piece of the new prompts and give the other rows a token each; the answers that are whole now."""
        import mlx.core as mx

        mx.reset_peak_memory()
        started = perf_counter()
        try:
            self._rows.work()
        except Exception as error:
            return self._broken(error)
        share = (perf_counter() - started) / len(self._begun)
        for work in self._begun:
            work.count(share, int(mx.get_peak_memory()))
        done = [work for work in self._begun if work.row.finished is not None]
        self._begun = [work for work in self._begun if work.row.finished is None]
        generations = [self._generation(work) for work in done]
        if done:
            self._limits.relieve()
        return generations

    def _broken(self, error: Exception) -> list[Generation]:
        """Rows fail together: it is an error of the only one there is, else each of them is asked again by itself."""
        requests = [work.request for work in self._begun]
        self._begun = []
        self._restart()
        if len(requests) == 1:
            return [_failed(requests[0], error)]
        self._single.update(request.id for request in requests)
        self._waiting = requests + self._waiting
        return []

    def _restart(self) -> None:
        self._rows.close()
        self._rows = rows_for(self._model, self._ends, self.capacity)

    def _generation(self, work: _Work) -> Generation:
        row = work.row
        stopped = row.finished == "stop"
        memory = self._limits.usage()
        return Generation(
            work.request.id,
            self._reader.text(row.tokens[:-1] if stopped else row.tokens),
            "stop" if stopped else "length",
            tokens=tuple(row.tokens),
            prompt_tokens=len(row.prompt),
            completion_tokens=len(row.tokens),
            prefill_s=work.prefill_s,
            decode_s=work.decode_s,
            peak_memory=work.peak_memory,
            active_memory=memory.active,
            cache_memory=memory.cache,
        )


@dataclass
class _Work:
    """A request under way, and what it has cost."""

    request: Request
    row: TextRow
    prefill_s: float = 0.0
    decode_s: float = 0.0
    peak_memory: int = 0

    def count(self, seconds: float, peak_memory: int) -> None:
        """Count a piece of work that has just been done."""
        if len(self.row.tokens) > 1:
            self.decode_s += seconds
        else:
            self.prefill_s += seconds
        self.peak_memory = max(self.peak_memory, peak_memory)


def _failed(request: Request, error: Exception) -> Generation:
    return Generation(request.id, "", "error", error=one_line(error))


class TextPrompter(Prompter):
    """Makes the prompts of a text-only model, from mlx-lm's tokenizer for it."""

    def __init__(self, tokenizer: Any) -> None:
        self._wrapper = tokenizer
        super().__init__(tokenizer._tokenizer, None)

    @panics_as_errors()
    def ids(self, messages: Sequence[Message]) -> list[int]:
        """The token ids that ``messages`` are put to the model as. Raises PromptError where that cannot be done."""
        text = self.prompt(messages).text
        templated = self._wrapper.has_chat_template  # such a template writes every control token itself
        found = list(self._tokenizer(text, add_special_tokens=not templated)["input_ids"])
        if not found:
            raise PromptError("the messages come to no token at all.")
        return found

    def _check_count(self, images: Sequence[Media]) -> None:
        if images:
            raise PromptError(
                f"this model reads text only, and the request holds a medium of type {images[0].modality}."
            )

    def _declared(self, turns: Sequence[Turn]) -> str:
        joined = [(role, "".join(piece for piece in pieces if isinstance(piece, str))) for role, pieces in turns]
        return self._rendered([{"role": role, "content": text} for role, text in joined])

    def _plain_forms(self) -> Iterator[Callable[[Sequence[Turn]], str]]:
        def listed(turns: Sequence[Turn]) -> str:
            lists = [[{"type": "text", "text": str(piece)} for piece in pieces] for _, pieces in turns]
            return self._rendered(
                [{"role": turn[0], "content": parts} for turn, parts in zip(turns, lists, strict=True)]
            )

        yield listed
        yield lambda turns: self._declared(_without_system(turns))
        yield lambda turns: listed(_without_system(turns))

    def _rendered(self, messages: list[dict[str, Any]]) -> str:
        if not self._wrapper.has_chat_template:
            return super()._rendered(messages)
        rendered = self._wrapper.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        if not isinstance(rendered, str):
            raise PromptError("it does not make a text of them")
        return rendered


def _without_system(turns: Sequence[Turn]) -> list[Turn]:
    """``turns`` with the system's text in front of the first user turn, for templates that know no such role."""
    system = tuple(piece for role, pieces in turns if role == "system" for piece in pieces)
    others = [turn for turn in turns if turn[0] != "system"]
    if not system or not others or others[0][0] != "user":
        return list(turns)
    return [("user", (*system, "\n\n", *others[0][1])), *others[1:]]


def _sampler(decoding: Decoding, seed: int) -> Callable[[Any], Any]:
    """What chooses the tokens of one answer from their log-probabilities of shape (1, vocabulary).

    Temperature, then top-p, as mlx-vlm has them; the draws are the answer's own, whatever else is sampled beside it.
    """
    import mlx.core as mx
    from mlx_lm.sample_utils import apply_top_p, greedy_sampler

    if decoding.temperature == 0:
        greedy: Callable[[Any], Any] = greedy_sampler  # the same for all, so that a batch needs one call
        return greedy
    temperature = max(decoding.temperature, _MIN_TEMPERATURE)
    key = mx.random.key(seed)

    def sample(logprobs: Any) -> Any:
        nonlocal key
        key, now = mx.random.split(key)
        scaled = logprobs.astype(mx.float32) / temperature
        scaled = scaled - mx.logsumexp(scaled, axis=-1, keepdims=True)
        if 0 < decoding.top_p < 1:
            scaled = apply_top_p(scaled, decoding.top_p)
        return mx.random.categorical(scaled, key=now)

    return sample
