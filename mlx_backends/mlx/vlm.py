"""Vision-language models through mlx-vlm: one request at a time, or several where the canary found that the same."""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.base import Generation, Likelihood, Media, Request
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.core.batch_invariance import ALONE, BATCHED, BatchInvariance, ReferenceAnswer, Way, answered, prove
from mlx_backends.core.constrained_decoding import Constrainer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.loglikelihood import score
from mlx_backends.core.probe import Probe, made, pictures
from mlx_backends.mlx.load import one_line
from mlx_backends.mlx.memory_limits import MemoryLimits
from mlx_backends.mlx.preprocess import Preprocessor
from mlx_backends.mlx.sequential import SequentialAnswers, SequentialRequest
from mlx_backends.mlx.teacher_forcing import TeacherForcing

if TYPE_CHECKING:
    from mlx_backends.mlx.batched import BatchedAnswers

WIDTH = 8
"""How many requests are answered together, where nobody says otherwise."""

AHEAD = 2
"""It takes so many times as many: the others are prepared meanwhile."""

TOGETHER = "together, with common beginnings read once"
SHARED = "one at a time, with common beginnings read once"

_SLICE_S = 0.05


class VLMBackend(Backend):
    """A loaded vision-language model.

    A model's own generation settings never apply, and sampling is seeded from the request's digest, which covers
    ``decoding.seed``. One request is answered at a time and nothing is kept from one to the next, until :meth:`prove` has
    found that answers are the same otherwise. Whatever goes wrong while answering becomes a Generation with an error.

    Of a Generation, ``tokens`` are all that the model gave, the one that ended the answer included; ``text`` is
    decoded from the whole of them, without control tokens but with ``<think>`` tags; ``prefill_s`` runs from the
    prepared inputs to the first token, vision encoder included; ``peak_memory`` is MLX's, from before the images are
    opened to the last token. Of requests answered together, times are their share of what was spent, and
    ``peak_memory`` is the highest while they were under way.
    """

    def __init__(
        self, info: EngineInfo, media: MediaPath, model: Any, processor: Any, *, width: int | None = None
    ) -> None:
        """``width``: how many requests may be answered together."""
        self.info = info
        self.width = width or WIDTH
        self.proof: BatchInvariance | None = None
        self._model = model
        self._processor = processor
        self._tokenizer = getattr(processor, "tokenizer", processor)
        own = copy.deepcopy(self._tokenizer)  # a tokenizer cannot be used in two threads at once, and one is preparing
        self._reader = Detokenizer(own)
        self._constrainer = Constrainer(own, _ends(self._tokenizer, model.config))
        processor.detokenizer = _NoText()
        with redirect_stdout(sys.stderr):
            self._preparer = Preprocessor(processor, model.config, media)
        self._alone = SequentialAnswers(model, processor, self._preparer, self._constrainer.processors)
        self._leader = TeacherForcing(model, processor, self._preparer, self._alone)
        self._limits = MemoryLimits.here()
        self._work: SequentialRequest | None = None
        self._together: BatchedAnswers | None = None

    @property
    def remarks(self) -> Sequence[str]:
        proven = () if self.proof is None else self.proof.remarks(self.info.model)
        return (*proven, *self._preparer.clips.remarks(self.info.model))

    @property
    def widest(self) -> int:
        return AHEAD * self.width

    @property
    def prefilled(self) -> int:
        """How many prompt tokens have been computed since :meth:`prove`."""
        return 0 if self._together is None else self._together.prefilled

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if self._together is not None:
            if self._in_flight >= self.capacity:
                raise RuntimeError(f"the model takes at most {self.capacity} requests at a time")
            if isinstance(request.form, Likelihood):
                self._together.alone.append(request)
            else:
                self._together.submit(request)
        elif self._work is not None:
            raise RuntimeError("the model answers one request at a time")
        else:
            self._work = SequentialRequest(request)

    @property
    def _in_flight(self) -> int:
        others = 0 if self._together is None else self._together.busy + len(self._together.alone)
        return others + (self._work is not None)

    def step(self) -> Sequence[Generation]:
        if self._together is not None and self._work is None:
            if self._together.alone:  # before anything else is begun
                self._work = SequentialRequest(self._together.alone.popleft())
            else:
                with redirect_stdout(sys.stderr):
                    found = self._together.step()
                self.capacity = self._together.capacity
                return found
        work = self._work
        if work is None:
            return []
        try:
            with redirect_stdout(sys.stderr):
                if isinstance(work.request.form, Likelihood):
                    done: Generation | None = self._likeliest(work.request, work.request.form)
                else:
                    last = self._advance(work)
                    done = last and self._generation(work, last)
        except Exception as error:  # a request that fails must not end the run
            done = Generation(work.request.id, "", "error", error=one_line(error))
        except BaseException:
            self.cancel(work.request.id)
            raise
        if done is None:
            return []
        self.cancel(work.request.id)
        self._limits.relieve()
        return [done]

    def cancel(self, request_id: str) -> None:
        if self._work is not None and self._work.request.id == request_id:
            stream, self._work = self._work.stream, None
            if stream is not None:
                stream.close()
        if self._together is not None:
            self._together.cancel(request_id)

    def exact(self) -> None:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        if self._together is not None:
            self._together.close()
        self._together = self.proof = None
        self.capacity = 1

    def prove(self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False) -> BatchInvariance | None:
        self.exact()
        with redirect_stdout(sys.stderr):
            if not (cases := answered(requests, self._leader.case, stop)):
                return None
            ways: dict[str, Way] = {}
            if (width := self._width(requests, [case.request for case in cases])) > 1:
                ways[TOGETHER] = self._leader.way(width, share=True)
                ways[BATCHED] = self._leader.way(width, share=False)
            ways[SHARED] = self._leader.way(1, share=True)
            self.proof = prove(cases, self._leader.padded, ways)
            if self.proof.way in (TOGETHER, SHARED):
                self.proof = replace(self.proof, lacks=self._lacks())
            if self.proof.way != ALONE:
                self._begin_together(1 if self.proof.way == SHARED else width, share=self.proof.way != BATCHED)
        return self.proof

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        with redirect_stdout(sys.stderr):
            text, tensors = self._preparer.tensors(request)
            logits = self._leader.forced(request, forced) if forced else []
        parts = [part for message in request.messages for part in message.parts]
        shown = sum(isinstance(part, Media) and part.modality == "image" for part in parts)
        token_ids = tensors["input_ids"].flatten().tolist()
        return made(request, text, token_ids, pictures(tensors, shown), forced, logits, keep=keep)

    def close(self) -> None:
        if self._work is not None:
            self.cancel(self._work.request.id)
        if self._together is not None:
            self._together.close()
        self._model = self._processor = self._tokenizer = self._together = None
        del self._preparer, self._reader, self._constrainer, self._alone, self._leader
        gc.collect()
        import mlx.core as mx

        mx.clear_cache()

    def _advance(self, work: SequentialRequest) -> Any | None:
        """Read the prompt, or decode for a few tens of milliseconds; mlx-vlm's last word, once it has said it."""
        if work.stream is None:
            work.stream = self._alone.stream(work.request)
            started = perf_counter()
            last = work.take()
            work.prefill_s = perf_counter() - started
            return last
        started = perf_counter()
        while (last := work.take()) is None and perf_counter() - started < _SLICE_S:
            pass
        work.decode_s += perf_counter() - started
        return last

    def _begin_together(self, width: int, *, share: bool) -> None:
        from mlx_backends.mlx.batched import BatchedAnswers
        from mlx_backends.mlx.vlm_batch import VLMRows

        self._together = BatchedAnswers(
            lambda width: VLMRows(self._model, self._processor, width, share=share),
            width,
            self._preparer.inputs,
            lambda request: list(self._constrainer.processors(request.form)),
            self._reader.text,
            self._limits,
        )
        self.capacity = self._together.capacity

    def _width(self, requests: Sequence[Request], tried: Sequence[Request]) -> int:
        """How many of ``requests`` fit beside the model, if a prompt twice as long as those that were tried is still to come."""
        from mlx.utils import tree_flatten

        from mlx_backends.core import images
        from mlx_backends.mlx import prefix_cache, vision_cache, vlm_batch
        from mlx_backends.models import memory_estimate

        weights = sum(value.nbytes for _, value in tree_flatten(self._model.parameters()))
        longest = max(len(self._preparer.inputs(request).content) for request in tried)
        return memory_estimate.width(
            self._model.config,
            weights + prefix_cache.KEPT_BYTES + vision_cache.KEPT_BYTES + images.KEPT_BYTES,
            2 * longest,
            max(request.decoding.max_tokens for request in requests),
            memory_estimate.device_info(),
            most=self.width,
            read_at_once=vlm_batch.END_TOKENS,
        )

    def _lacks(self) -> str:
        """What this model cannot have of reading common beginnings once, in a sentence."""
        from mlx_vlm.models.cache import make_prompt_cache

        from mlx_backends.mlx.prefix_cache import whole_only

        why = whole_only(make_prompt_cache(self._model.language_model))
        return why and (
            f"{self.info.model} uses a beginning again only as a whole, where requests known at the time part, and reads it "
            f"once more where others do: {why}."
        )

    def _likeliest(self, request: Request, form: Likelihood) -> Generation:
        """The likeliest of the options, the prompt read once for all of them where the canary allows that."""
        import mlx.core as mx

        from mlx_backends.mlx.vlm_batch import VLMRows

        shared = self.proof is not None and self.proof.way in (TOGETHER, SHARED)
        started = perf_counter()
        mx.reset_peak_memory()

        def led(sequences: Sequence[Sequence[int]]) -> Sequence[Any]:
            if shared and len(sequences) > 1:
                free = replace(request, form=None)
                rows = VLMRows(self._model, self._processor, 1, share=True)
                return self._leader.led(rows, [ReferenceAnswer(free, list(tokens), None) for tokens in sequences])
            return [self._leader.forced(request, tokens) for tokens in sequences]

        found = score(form, self._tokenizer, led)
        tokens = int(self._preparer.tensors(request)[1]["input_ids"].size)
        return found.generation(request, tokens, perf_counter() - started, self._limits.usage().peak)

    def _generation(self, work: SequentialRequest, last: Any) -> Generation:
        stopped = last.finish_reason == "stop"
        memory = self._limits.usage()
        tokens = tuple(work.tokens if last.token_ids is None else map(int, last.token_ids))
        return Generation(
            work.request.id,
            self._reader.text(tokens[:-1] if stopped else tokens),
            "stop" if stopped else "length",
            tokens=tokens,
            prompt_tokens=int(last.prompt_tokens),
            completion_tokens=len(tokens),
            prefill_s=work.prefill_s,
            decode_s=work.decode_s,
            peak_memory=memory.peak,
            active_memory=memory.active,
            cache_memory=memory.cache,
        )


class _NoText:
    """Stands in for mlx-vlm's streaming detokenizer, which drops bytes and fails on tokens beyond the vocabulary."""

    last_segment = ""

    def reset(self) -> None: ...

    def add_token(self, token: int, skip_special_token_ids: Sequence[int] = ()) -> None: ...

    def finalize(self) -> None: ...


def _ends(tokenizer: Any, config: Any) -> list[int]:
    """The tokens that end an answer, as mlx-vlm finds them before each."""
    criteria = tokenizer.stopping_criteria
    criteria.reset(config.eos_token_id)
    return list(criteria.eos_token_ids)
