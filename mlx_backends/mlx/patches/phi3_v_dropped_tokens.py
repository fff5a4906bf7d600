"""Patch of mlx-vlm: Phi-3 Vision's prompts, which lose the first token after every image.

The model's own processor encodes each text between images with a token that begins a prompt, and drops it from all but the first.
mlx-vlm encodes these texts without that token, and drops the first one all the same. The patch puts a token there to drop.

Found in 0.7.10; not yet reported. ``tests/mlx_backends/mlx/test_model_patches.py`` fails as soon as the patch finds nothing to
repair; then delete it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from importlib import import_module
from typing import Any

from mlx_backends.mlx.patches.replace_method import replace_method

_FAULT = "offset = 0 if i == 0 else 1"
_NO_SPECIAL = "add_special_tokens=(i == 0)"


def apply_patch() -> bool:
    """Patch the installed mlx-vlm, in this process, and return whether it needed that."""
    processor: Any = import_module("mlx_vlm.models.phi3_v.processing_phi3_v").Phi3VProcessor
    return _NO_SPECIAL in inspect.getsource(processor._convert_images_texts_to_inputs) and replace_method(
        processor, "_convert_images_texts_to_inputs", _FAULT, _patched
    )


def _patched(convert: Any) -> Any:
    @wraps(convert)
    def convert_whole(self: Any, *arguments: Any, **options: Any) -> Any:
        own_tokenizer = self.tokenizer
        self.tokenizer = _FirstTokenToDrop(own_tokenizer)
        try:
            return convert(self, *arguments, **options)
        finally:
            self.tokenizer = own_tokenizer

    return convert_whole


class _FirstTokenToDrop:
    """A tokenizer that begins what it encodes without special tokens with a token that is to be dropped."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return tokens if add_special_tokens else [self._tokenizer.bos_token_id, *tokens]
