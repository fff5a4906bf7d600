"""Teacher forcing of a vision-language model, for the batch-invariance check, probes and likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from benchmarks.vocabulary import Message, Request, Text
from mlx_backends.core.batch_invariance import AnsweringMode, ReferenceAnswer
from mlx_backends.core.logits_recorders import ForcedAnswer, LogitsRecorder
from mlx_backends.mlx.metal.metal_fault_recovery import raising_root_cause, settle
from mlx_backends.mlx.mlx_preprocess import PreparedInputs, Preprocessor
from mlx_backends.mlx.sequential_answers import SequentialAnswers, SequentialRequest

if TYPE_CHECKING:
    from mlx_backends.core.saved_work import Reuse
    from mlx_backends.mlx.prompt_reading import SharedWork
    from mlx_backends.mlx.vlm_batch import VLMRows


class TeacherForcing:
    """Teacher forcing of a loaded model, sequentially or in a batch."""

    def __init__(self, preprocessor: Preprocessor, sequential: SequentialAnswers, rows: Callable[..., VLMRows]) -> None:
        """Take the sequential answers of the model, and the function that makes rows: ``RowFactory.for_check``."""
        self._preprocessor = preprocessor
        self._sequential = sequential
        self._rows = rows

    def case(self, request: Request) -> ReferenceAnswer:
        """Return the reference answer of ``request``, computed sequentially."""
        import numpy as np

        recorder, work = LogitsRecorder(), SequentialRequest(request)
        work.stream = self._sequential.stream(request, [recorder])
        while (last := work.next_token()) is None:
            pass
        settle()
        tokens = work.tokens if last.token_ids is None else list(map(int, last.token_ids))
        return ReferenceAnswer(request, tokens, np.stack(recorder.logits[: len(tokens)]))

    def forced(self, request: Request, tokens: Sequence[int]) -> Any:
        """Return the logits, of the shape (tokens, vocabulary), when the model is forced through ``tokens`` sequentially."""
        import numpy as np

        forcing = ForcedAnswer(tokens)
        unconstrained = replace(
            request, form=None, decoding=replace(request.decoding, max_tokens=len(tokens), temperature=0.0)
        )
        for _ in self._sequential.stream(unconstrained, [forcing]):
            pass
        settle()
        return np.stack(forcing.logits[: len(tokens)])

    def padded(self, cases: Sequence[ReferenceAnswer], width: int = 2) -> list[Any]:
        """Return the logits of the cases, next to a longer row that pads them; prompts are read one by one.

        Cases may stand in one batch, of at most ``width`` rows, but two.
        """
        size = max(1, width - 1)
        return [logits for start in range(0, len(cases), size) for logits in self._padded(cases[start : start + size])]

    def _padded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        longest = max(cases, key=lambda case: len(self._preprocessor.inputs(case.request).content))
        tokens = max((case.tokens for case in cases), key=len)  # so that it is there to the end
        neighbour = ReferenceAnswer(self._longer(longest.request), tokens, None)
        rows = self._rows(len(cases) + 1, share=False, join=False)
        return self.force_rows(rows, [*cases, neighbour])[: len(cases)]

    def unpadded(self, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """Return the logits of each case, next to a row of equal length, which needs no padding; prompts are read one by one."""
        return [self._force_equal(self._rows(2, share=False, join=False, equal=True), [case])[0] for case in cases]

    def mode(
        self, width: int, new_work: Callable[[], tuple[SharedWork, Reuse]] | None, *, equal: bool = False
    ) -> AnsweringMode:
        """Return the function that forces cases in rows of ``width``, with shared prefixes read once.

        These are kept in what ``new_work`` returns; nothing is shared with None. With ``equal``, batches hold rows of equal
        length only, and each case has such a neighbour.
        """

        def force(cases: Sequence[ReferenceAnswer]) -> list[Any]:
            work = None if new_work is None else new_work()
            share = work is not None
            if equal:
                return self._force_equal(self._rows(width, share=share, equal=True, work=work), cases)
            rows_wide = max(min(width, len(cases) - 1), min(width, 2))  # so that one of them joins late
            return self.force_rows(self._rows(rows_wide, share=share, work=work), cases)

        return force

    def shared(self, cases: Sequence[ReferenceAnswer], work: tuple[SharedWork, Reuse]) -> list[Any]:
        """Return the logits of ``cases``, forced one after the other on the caches of ``work``."""
        return self.force_rows(self._rows(1, share=True, work=work), cases)

    def _force_equal(self, rows: VLMRows, cases: Sequence[ReferenceAnswer]) -> list[Any]:
        """Return the logits of ``cases``, forced in ``rows`` with a text of the same length for each."""
        texts = [self._preprocessor.inputs(self._longer(case.request)) for case in cases]
        lengths = [len(self._preprocessor.inputs(case.request).content) for case in cases]
        return self.force_rows(rows, cases, [_cut(text, length) for text, length in zip(texts, lengths, strict=True)])

    def _longer(self, request: Request) -> Request:
        """Return a request with a text that is longer than the prompt of ``request``."""
        words = len(self._preprocessor.inputs(request).content) + 16
        return replace(request, messages=(Message("user", (Text("and " * words),)),))

    def force_rows(
        self, rows: VLMRows, cases: Sequence[ReferenceAnswer], neighbours: Sequence[PreparedInputs] = ()
    ) -> list[Any]:
        """Return the logits of ``cases``, forced in ``rows`` with ``neighbours``, which are given their tokens."""
        import numpy as np

        from mlx_backends.mlx.vlm_row import VLMRow

        try:
            with raising_root_cause():
                processors = [ForcedAnswer(case.tokens) for case in cases]
                started = [
                    VLMRow(self._preprocessor.inputs(case.request), len(case.tokens), [processor])
                    for case, processor in zip(cases, processors, strict=True)
                ]
                started += [
                    VLMRow(inputs, len(case.tokens), [ForcedAnswer(case.tokens)])
                    for inputs, case in zip(neighbours, cases, strict=False)
                ]
                for row in started:
                    rows.add(row)
                while any(row.finished is None for row in started):
                    rows.work()
                    for row in started:
                        if row.failed is not None:
                            raise row.failed
                settle()
                return [np.stack(processor.logits) for processor in processors]
        finally:
            rows.close()


def _cut(inputs: PreparedInputs, length: int) -> PreparedInputs:
    """Return a text's first ``length`` tokens."""
    tensors = {
        name: value[:, :length] if getattr(value, "shape", ()) == inputs.ids.shape else value
        for name, value in inputs.tensors.items()
    }
    return replace(inputs, tensors=tensors, content=inputs.content[:length], prefixes=inputs.prefixes[:length])
