"""Sequential answers: one request at a time, through mlx-vlm's own stream of tokens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.vocabulary import AnyForm, Request
from mlx_backends.core.loglikelihood import CandidateScoring
from mlx_backends.core.observed_answers import AnswerObserver
from mlx_backends.core.saved_work import Reuse
from mlx_backends.mlx.metal.metal_fault_recovery import dropping
from mlx_backends.mlx.mlx_preprocess import Preprocessor

Stream = Generator[Any, None, None]


class SequentialAnswers:
    """Answers of a loaded model, one at a time. ``processors`` returns the logits processors of a request's form.

    While ``reuse`` is not None, it counts the prompts that are read.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        preprocessor: Preprocessor,
        processors: Callable[[AnyForm | None], Iterable[Any]],
        kv_bits: int | None = None,
    ) -> None:
        self._model = model
        self._processor = processor
        self._preprocessor = preprocessor
        self._processors = processors
        self._kv_bits = kv_bits
        self.reuse: Reuse | None = None

    def stream(self, request: Request, recorders: Sequence[Any] = (), *, observers: Sequence[Any] = ()) -> Stream:
        """Return mlx-vlm's stream of tokens for ``request``, from inputs whose images are checked to be in place.

        ``observers`` are shown the logits before the request's form restricts them, ``recorders`` afterwards.
        """
        import mlx.core as mx
        from mlx_vlm import stream_generate

        mx.reset_peak_memory()
        if self.reuse is not None:
            counted = self._preprocessor.inputs(request)
            self.reuse.read_alone(counted.prefixes, counted.media)
        text, inputs = self._preprocessor.tensors(request)
        inputs["mask"] = inputs.pop("attention_mask", None)
        decoding, seed = request.decoding, request.sampling_seed
        mx.random.seed(seed)
        stream: Stream = stream_generate(
            self._model,
            self._processor,
            text,
            **inputs,
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            top_k=0,
            seed=seed,
            logits_processors=[*observers, *self._processors(request.unscored.form), *recorders] or None,
            **self._cache_options(),
        )
        return stream

    def prompt_tokens(self, request: Request) -> int:
        """Return the number of a prompt's tokens."""
        return int(self._preprocessor.tensors(request)[1]["input_ids"].size)

    def _cache_options(self) -> dict[str, Any]:
        """Return mlx-vlm's options for a quantised cache; none without one."""
        if self._kv_bits is None:
            return {}
        from mlx_backends.mlx.kv_quantization import PREFILL_TOKENS, make_vlm_cache

        return {
            "prompt_cache": make_vlm_cache(self._model.language_model, self._kv_bits),
            "prefill_step_size": PREFILL_TOKENS,
        }


@dataclass
class SequentialRequest:
    """A request in progress: the stream that answers it, once started, and the tokens it has yielded."""

    request: Request
    stream: Stream | None = None
    tokens: list[int] = field(default_factory=list)
    scoring: CandidateScoring | None = None
    observer: AnswerObserver | None = None
    prefill_s: float = 0.0
    decode_s: float = 0.0
    faults: int = 0
    """The number of times the GPU failed on this request alone."""

    def next_token(self) -> Any | None:
        """Read one token; return mlx-vlm's closing response when there are no more, else None."""
        assert self.stream is not None
        for response in self.stream:
            if response.finish_reason in ("stop", "length"):
                return response
            if not response.is_draft:
                self.tokens.append(int(response.token))
            return None
        raise RuntimeError("mlx-vlm ended the answer without saying why")

    def close(self) -> None:
        """Drop the stream, and what it has computed ahead."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with dropping():
                stream.close()


class NoText:
    """Stand-in for mlx-vlm's streaming detokenizer, which drops bytes and fails on tokens beyond the vocabulary."""

    last_segment = ""

    def reset(self) -> None: ...

    def add_token(self, token: int, skip_special_token_ids: Sequence[int] = ()) -> None: ...

    def finalize(self) -> None: ...
