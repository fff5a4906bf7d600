"""Decoding of a model's tokens into the text of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_THINK_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")


class Detokenizer:
    """Decoder of one model's answers, built from its Hugging Face tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        special = {token for token, added_token in tokenizer.added_tokens_decoder.items() if added_token.special}
        special.update(tokenizer.all_special_ids)
        self._skipped = special - {tokenizer.convert_tokens_to_ids(tag) for tag in _THINK_TAGS}

    def text(self, tokens: Sequence[int]) -> str:
        """Return ``tokens`` decoded all at once, without control tokens but with ``<think>`` tags."""
        visible = [token for token in tokens if token not in self._skipped]
        text: str = self._tokenizer.decode(visible, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text
