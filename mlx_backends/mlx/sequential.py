"""One request answered by itself, through mlx-vlm's own stream of tokens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.base import Form, Likelihood, Request
from mlx_backends.mlx.preprocess import Preprocessor

Stream = Generator[Any, None, None]


class SequentialAnswers:
    """Answers of a loaded model, nothing else under way. ``processors`` are the logits processors of a request's form."""

    def __init__(
        self,
        model: Any,
        processor: Any,
        preparer: Preprocessor,
        processors: Callable[[Form | Likelihood | None], Iterable[Any]],
    ) -> None:
        self._model = model
        self._processor = processor
        self._preparer = preparer
        self._processors = processors

    def stream(self, request: Request, watches: Sequence[Any] = ()) -> Stream:
        """mlx-vlm's stream of tokens for ``request``, from inputs whose images are known to stand in their places."""
        import mlx.core as mx
        from mlx_vlm import stream_generate

        mx.reset_peak_memory()
        text, inputs = self._preparer.tensors(request)
        inputs["mask"] = inputs.pop("attention_mask", None)
        decoding, seed = request.decoding, int(request.digest[:8], 16)
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
            logits_processors=[*self._processors(request.form), *watches] or None,
        )
        return stream


@dataclass
class SequentialRequest:
    """A request under way: the stream that answers it, once it is started, and what has come out of it."""

    request: Request
    stream: Stream | None = None
    tokens: list[int] = field(default_factory=list)
    prefill_s: float = 0.0
    decode_s: float = 0.0

    def take(self) -> Any | None:
        """Take one token; mlx-vlm's closing response instead, when there are no more."""
        assert self.stream is not None
        for response in self.stream:
            if response.finish_reason in ("stop", "length"):
                return response
            if not response.is_draft:
                self.tokens.append(int(response.token))
            return None
        raise RuntimeError("mlx-vlm ended the answer without saying why")
