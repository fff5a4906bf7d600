"""Patch of mlx-vlm: LLaVA's processor, which passes the tokenizer's arguments to the image processor.

mlx-vlm calls every processor with ``padding`` and its like, and LLaVA's hands all of them to the image processor, which refuses
those it does not know: every prompt with an image fails. The patch withholds the tokenizer's arguments from the image processor.

Found in 0.7.10; the same fault in another family is https://github.com/Blaizzy/mlx-vlm/issues/870.
``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to repair; then delete it.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "self.image_processor(images, **kwargs)"
_OF_THE_TOKENIZER = frozenset({"padding", "padding_side", "truncation", "max_length", "add_special_tokens"})


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processor: Any = import_module("mlx_vlm.models.llava.processing_llava").LlavaProcessor
    return replace_method(processor, "__call__", _FAULT, _patched)


def _patched(call: Any) -> Any:
    @wraps(call)
    def process(self: Any, images: Any = None, text: Any = None, **options: Any) -> Any:
        own_processor = self.image_processor
        self.image_processor = _ImageArgumentsOnly(own_processor)
        try:
            return call(self, images, text, **options)
        finally:
            self.image_processor = own_processor

    return process


class _ImageArgumentsOnly:
    """An image processor that is called without the tokenizer's arguments."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def __call__(self, images: Any, **options: Any) -> Any:
        return self._processor(
            images, **{name: value for name, value in options.items() if name not in _OF_THE_TOKENIZER}
        )
