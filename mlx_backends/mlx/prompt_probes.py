"""Probes of a loaded vision-language model: a prompt's tensors and logits, and its embeddings at the images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.vocabulary import Media, Request
from mlx_backends.core.engine_probe import Probe, build_probe, split_pixels
from mlx_backends.mlx.metal.metal_fault_recovery import FaultRecovery
from mlx_backends.mlx.mlx_preprocess import Preprocessor
from mlx_backends.mlx.teacher_forcing import TeacherForcing
from mlx_backends.mlx.vision.image_guard import rows_at_images


class PromptProbes:
    """Probes of one loaded model, each repeated once if the GPU fails on it."""

    def __init__(
        self, model: Any, preprocessor: Preprocessor, forcing: TeacherForcing, recovery: FaultRecovery
    ) -> None:
        self._model = model
        self._preprocessor = preprocessor
        self._forcing = forcing
        self._recovery = recovery
        self._last: tuple[Request, Any] | None = None
        """The last request that was probed, and its rows at the images."""

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool) -> Probe:
        """Return the probe of ``request`` with the ``forced`` tokens as its answer."""
        text, tensors, logits = self._recovery.repeat(lambda: self._probe(request, forced))
        parts = [part for message in request.messages for part in message.parts]
        image_count = sum(isinstance(part, Media) and part.modality == "image" for part in parts)
        token_ids = tensors["input_ids"].flatten().tolist()
        return build_probe(request, text, token_ids, split_pixels(tensors, image_count), forced, logits, keep=keep)

    def _probe(self, request: Request, forced: Sequence[int]) -> tuple[str, dict[str, Any], Sequence[Any]]:
        """Return a prompt's text and tensors, and the logits of the ``forced`` tokens; note its rows at the images."""
        self._last = None
        prepared = self._preprocessor.tensors(request)
        if not forced:
            return *prepared, []
        with self.embedded_rows() as rows:
            logits = self._forcing.forced(request, forced)
        self._last = (request, rows[-1]) if rows else None
        return *prepared, logits

    def image_rows(self, request: Request) -> Any | None:
        """Return a prompt's embeddings at its images; see :meth:`mlx_backends.base.Backend.image_rows`."""
        return self._recovery.repeat(lambda: self._image_rows(request))

    def _image_rows(self, request: Request) -> Any | None:
        if self._last is not None and self._last[0] is request:
            return self._last[1]
        _, prepared = self._preprocessor.tensors(request)
        tensors = {name: value for name, value in prepared.items() if value is not None}
        ids, pixels = tensors.pop("input_ids"), tensors.pop("pixel_values", None)
        output = self._model.get_input_embeddings(ids, pixels, mask=tensors.pop("attention_mask", None), **tensors)
        return rows_at_images(ids, output, self._preprocessor.image_tokens())

    @contextmanager
    def embedded_rows(self) -> Iterator[list[Any]]:
        """Yield a list of the rows at the images of each prompt that is embedded within the block."""
        embed, rows = self._model.get_input_embeddings, []

        def embedded(input_ids: Any = None, pixel_values: Any = None, **others: Any) -> Any:
            output = embed(input_ids, pixel_values, **others)
            if input_ids is not None and pixel_values is not None:
                rows.append(rows_at_images(input_ids, output, self._preprocessor.image_tokens()))
            return output

        self._model.get_input_embeddings = embedded
        try:
            yield rows
        finally:
            self._model.get_input_embeddings = embed
