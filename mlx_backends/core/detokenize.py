"""How a model's tokens become the text of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_THINK_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")


class Detokenizer:
    """Reads the answers of one model, from its Hugging Face tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
        special.update(tokenizer.all_special_ids)
        self._unread = special - {tokenizer.convert_tokens_to_ids(tag) for tag in _THINK_TAGS}

    def text(self, tokens: Sequence[int]) -> str:
        """``tokens`` decoded all at once, without control tokens but with ``<think>`` tags."""
        read = [token for token in tokens if token not in self._unread]
        text: str = self._tokenizer.decode(read, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text
