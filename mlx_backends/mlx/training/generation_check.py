"""Check along a training: the model answers some held-out rows with the adapter as it is, and the answers are judged.

The prompt and the way of answering are an evaluation's, one request at a time and greedily. A loss says how likely the answers
to learn are; only generated answers show a model that has collapsed, for example by giving one answer always.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from time import perf_counter
from typing import Any

from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.mlx.metal.metal_fault_recovery import settle
from mlx_backends.mlx.sequential_answers import NoText, SequentialAnswers, SequentialRequest
from mlx_backends.mlx.training.training_inputs import TrainingInputs
from mlx_backends.mlx.vision.vision_cache import CachedVisionTower
from mlx_backends.training_settings import (
    AGREEMENT,
    CHECK_TOKENS,
    CONFLICT,
    NOT_TAUGHT,
    TAUGHT,
    UNDECIDED,
    UNKNOWN,
    CheckReport,
    CheckRows,
)


class GenerationCheck:
    """The check of a model in training; ``inputs`` are of the rows of ``check``, and ``tower`` has their images' features."""

    def __init__(
        self, model: Any, processor: Any, inputs: TrainingInputs, check: CheckRows, tower: CachedVisionTower
    ) -> None:
        self._model, self._inputs, self._check, self._tower = model, inputs, check, tower
        self._max_tokens = CHECK_TOKENS + max(map(inputs.answer_tokens, range(len(inputs))))
        tokenizer = getattr(processor, "tokenizer", processor)
        self._detokenizer = Detokenizer(tokenizer, inputs.preprocessor.prompter)
        processor.detokenizer = NoText()
        self._answers = SequentialAnswers(model, processor, inputs.preprocessor, lambda form: ())

    def run(self, step: int, stop: Callable[[], bool]) -> CheckReport | None:
        """Return the report of the model after update ``step``; None if ``stop`` comes first.

        Neither the weights nor the state of the random numbers change. Raises ModelError for a row that cannot be read.
        """
        start = perf_counter()
        marks: dict[str, str] = {}
        outcomes: dict[str, Counter[str]] = {}
        with self._evaluating():
            for index, row in enumerate(self._check.rows):
                answer = self._answer(index, stop)
                if answer is None:
                    return None
                outcome, is_taught = self._check.judge(row, *answer)
                mark = UNDECIDED if is_taught is None else TAUGHT if is_taught else NOT_TAUGHT
                kind = row.kind if row.kind in (CONFLICT, AGREEMENT) else UNKNOWN
                marks[kind] = marks.get(kind, "") + mark
                outcomes.setdefault(kind, Counter())[outcome] += 1
        counts = {kind: dict(outcome) for kind, outcome in outcomes.items()}
        return CheckReport(step, marks, counts, perf_counter() - start, self._check.names)

    def run_with(self, weights: list[tuple[str, Any]], step: int, stop: Callable[[], bool]) -> CheckReport | None:
        """Return the report of the model with the adapter of update ``step``, and put its own back; None as :meth:`run`."""
        from mlx.utils import tree_flatten

        own = tree_flatten(self._model.trainable_parameters())
        self._model.load_weights(weights, strict=False)
        try:
            return self.run(step, stop)
        finally:
            self._model.load_weights(own, strict=False)

    def answer_tokens(self, index: int) -> tuple[int, ...]:
        """Return the tokens that the model answers a row with, including the one that ends the answer."""
        with self._evaluating():
            tokens, _ = self._generated(index, lambda: False) or ((), False)
        return tokens

    def _answer(self, index: int, stop: Callable[[], bool]) -> tuple[str, bool] | None:
        """Return the answer to a row, and whether it was cut off; None if ``stop`` comes first."""
        generated = self._generated(index, stop)
        if generated is None:
            return None
        tokens, is_cut_off = generated
        answer = tokens if is_cut_off else tokens[:-1]
        return self._detokenizer.reply(self._inputs.request(index), answer), is_cut_off

    def _generated(self, index: int, stop: Callable[[], bool]) -> tuple[tuple[int, ...], bool] | None:
        request = self._inputs.request(index, self._max_tokens)
        prepared = self._inputs.preprocessor.inputs(request)
        tensors = {name: value for name, value in prepared.tensors.items() if value is not None}
        ids, pixels, mask = (tensors.pop(name, None) for name in ("input_ids", "pixel_values", "attention_mask"))
        if prepared.images:  # the first token must not encode them, since the tower may repeat what does
            embed = partial(self._model.get_input_embeddings, ids, pixels, mask=mask, **tensors)
            self._tower.embed(embed, prepared.images)
        work = SequentialRequest(request, self._answers.stream(request))
        try:
            last = self._tower.embed(work.next_token, prepared.images)
            while last is None:
                if stop():
                    return None
                last = work.next_token()
        finally:
            work.close()
        settle()
        tokens = work.tokens if last.token_ids is None else map(int, last.token_ids)
        return tuple(tokens), last.finish_reason != "stop"

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Let the model answer as in an evaluation; what libraries print does not go to standard output."""
        import mlx.core as mx

        random_state: Any = mx.random.state
        high, low = random_state[0].tolist()
        self._model.eval()
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            mx.random.seed(high << 32 | low)  # a state is the two halves of a seed, and cannot be assigned
            mx.clear_cache()
