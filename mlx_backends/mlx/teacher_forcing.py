"""A vision-language model led through tokens that are given: what its canary, its probes and likelihoods compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.base import Message, Request, Text
from mlx_backends.core.batch_invariance import ForcedAnswer, ReferenceAnswer, Watch, Way
from mlx_backends.mlx.preprocess import Preprocessor
from mlx_backends.mlx.sequential import SequentialAnswers, SequentialRequest

_PADDED = 2


class TeacherForcing:
    """Leads a loaded model, ``alone`` or in rows."""

    def __init__(self, model: Any, processor: Any, preparer: Preprocessor, alone: SequentialAnswers) -> None:
        self._model = model
        self._processor = processor
        self._preparer = preparer
        self._alone = alone

    def case(self, request: Request) -> ReferenceAnswer:
        """``request`` answered by itself."""
        import numpy as np

        watch, work = Watch(), SequentialRequest(request)
        work.stream = self._alone.stream(request, [watch])
        while (last := work.take()) is None:
            pass
        tokens = work.tokens if last.token_ids is None else list(map(int, last.token_ids))
        return ReferenceAnswer(request, tokens, np.stack(watch.logits[: len(tokens)]))

    def forced(self, request: Request, tokens: Sequence[int]) -> Any:
        """The logits, of the shape (tokens, vocabulary), when the model is led through ``tokens`` by itself."""
        import numpy as np

        led = ForcedAnswer(tokens)
        free = replace(request, form=None, decoding=replace(request.decoding, max_tokens=len(tokens), temperature=0.0))
        for _ in self._alone.stream(free, [led]):
            pass
        return np.stack(led.logits[: len(tokens)])

    def padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """The first cases, each beside a longer row that pads it; prompts are read one by one."""
        from mlx_backends.mlx.vlm_batch import VLMRows

        found = []
        for case in cases[:_PADDED]:
            words = len(self._preparer.inputs(case.request).content) + 16
            longer = replace(case.request, messages=(Message("user", (Text("and " * words),)),))
            beside = ReferenceAnswer(longer, case.tokens, None)
            found.append(self.led(VLMRows(self._model, self._processor, 2, share=False, join=False), [case, beside])[0])
        return found

    def way(self, width: int, *, share: bool) -> Way:
        from mlx_backends.mlx.vlm_batch import VLMRows

        def answer(cases: Sequence[ReferenceAnswer]) -> list[Any]:
            some = max(min(width, len(cases) - 1), min(width, 2))  # so that one of them joins late
            return self.led(VLMRows(self._model, self._processor, some, share=share), cases)

        return answer

    def led(self, rows: Any, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """The logits of ``cases`` when ``rows`` lead them through their tokens."""
        import numpy as np

        from mlx_backends.mlx.vlm_batch import VLMRow

        try:
            led = [ForcedAnswer(case.tokens) for case in cases]
            begun = [
                VLMRow(self._preparer.inputs(case.request), len(case.tokens), [leader])
                for case, leader in zip(cases, led, strict=True)
            ]
            for row in begun:
                rows.add(row)
            while any(row.finished is None for row in begun):
                rows.work()
                for row in begun:
                    if row.failed is not None:
                        raise row.failed
            return [np.stack(leader.logits) for leader in led]
        finally:
            rows.close()
