"""Vision-language models through mlx-vlm: one request at a time, nothing carried from one to the next."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.base import Generation, Request
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.constrain import Constrainer
from mlx_backends.loading import one_line
from mlx_backends.prompt import Prompter
from mlx_backends.reading import Reader

_SLICE_S = 0.05

Stream = Generator[Any, None, None]


class VLM(Backend):
    """A loaded vision-language model.

    An answer depends on its request alone: no prompt or vision cache is kept, a model's own generation settings never
    apply, and sampling is seeded from the request's digest, which covers ``decoding.seed``. Whatever goes wrong while
    answering becomes a Generation with an error.

    Of a Generation, ``tokens`` are all that the model gave, the one that ended the answer included; ``text`` is
    decoded from the whole of them, without control tokens but with ``<think>`` tags; ``prefill_s`` runs from the
    prepared inputs to the first token, vision encoder included; ``peak_memory`` is MLX's, from before the images are
    opened to the last token.
    """

    capacity = 1

    def __init__(self, info: EngineInfo, media: MediaPath, model: Any, processor: Any) -> None:
        self.info = info
        self._media = media
        self._model = model
        self._processor = processor
        self._tokenizer = getattr(processor, "tokenizer", processor)
        self._reader = Reader(self._tokenizer)
        self._constrainer = Constrainer(self._tokenizer, _ends(self._tokenizer, model.config))
        processor.detokenizer = _NoText()
        with redirect_stdout(sys.stderr):
            self._prompter = Prompter(processor, model.config)
        self._work: _Work | None = None

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if self._work is not None:
            raise RuntimeError("the model answers one request at a time")
        self._work = _Work(request)

    def step(self) -> Sequence[Generation]:
        work = self._work
        if work is None:
            return []
        try:
            with redirect_stdout(sys.stderr):
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
        return [done]

    def cancel(self, request_id: str) -> None:
        if self._work is not None and self._work.request.id == request_id:
            stream, self._work = self._work.stream, None
            if stream is not None:
                stream.close()

    def close(self) -> None:
        if self._work is not None:
            self.cancel(self._work.request.id)
        self._model = self._processor = self._tokenizer = None
        del self._prompter, self._reader, self._constrainer
        gc.collect()
        import mlx.core as mx

        mx.clear_cache()

    def _advance(self, work: _Work) -> Any | None:
        """Read the prompt, or decode for a few tens of milliseconds; mlx-vlm's last word, once it has said it."""
        if work.stream is None:
            work.stream = self._stream(work.request)
            started = perf_counter()
            last = work.take()
            work.prefill_s = perf_counter() - started
            return last
        started = perf_counter()
        while (last := work.take()) is None and perf_counter() - started < _SLICE_S:
            pass
        work.decode_s += perf_counter() - started
        return last

    def _stream(self, request: Request) -> Stream:
        """mlx-vlm's stream of tokens for ``request``, from inputs whose images are known to stand in their places."""
        import mlx.core as mx
        from mlx_vlm import stream_generate
        from mlx_vlm.utils import prepare_inputs, should_add_special_tokens

        from benchmarks.media import load_image, read_media

        mx.reset_peak_memory()
        config, decoding = self._model.config, request.decoding
        prompt = self._prompter.prompt(request.messages)
        images = [load_image(read_media(self._media(image), image), decoding.max_pixels) for image in prompt.images]
        first = self._tokenizer.bos_token
        opened = bool(first) and prompt.text.startswith(first)  # by the template; a second one would be a fault
        inputs = prepare_inputs(
            self._processor,
            images=images or None,
            prompts=prompt.text,
            image_token_index=getattr(config, "image_token_index", None),
            add_special_tokens=not opened and should_add_special_tokens(config.model_type, self._processor),
        )
        self._prompter.check_inputs(prompt, inputs)
        inputs["mask"] = inputs.pop("attention_mask", None)
        seed = int(request.digest[:8], 16)
        mx.random.seed(seed)
        stream: Stream = stream_generate(
            self._model,
            self._processor,
            prompt.text,
            **inputs,
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            top_k=0,
            seed=seed,
            logits_processors=self._constrainer.processors(request.form) or None,
        )
        return stream

    def _generation(self, work: _Work, last: Any) -> Generation:
        import mlx.core as mx

        stopped = last.finish_reason == "stop"
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
            peak_memory=int(mx.get_peak_memory()),
        )


@dataclass
class _Work:
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
