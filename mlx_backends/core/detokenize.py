"""Decoding of a model's tokens into the text of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.text.reasoning import ends_turn, is_reasoning_marker
from benchmarks.vocabulary import Request
from mlx_backends.core.prompts.chat_prompt import Prompter
from mlx_backends.core.prompts.reasoning_markers import OwnMarkers


class Detokenizer:
    """Decoder of one model's answers, built from its Hugging Face tokenizer.

    ``prompter`` made the prompts; without one, the model has the listed markers of reasoning alone.
    """

    def __init__(self, tokenizer: Any, prompter: Prompter | None = None) -> None:
        self._tokenizer = tokenizer
        self._prompter = prompter
        self._own = OwnMarkers() if prompter is None else prompter.own_markers
        special = {token for token, added_token in tokenizer.added_tokens_decoder.items() if added_token.special}
        special.update(tokenizer.all_special_ids)
        names = {token: str(tokenizer.convert_ids_to_tokens(token)) for token in special}
        self._skipped = {token for token, name in names.items() if not self._is_kept(name)}

    def reply(self, request: Request, tokens: Sequence[int]) -> str:
        """Return the text of the reply to ``request``, which says by itself what is reasoning.

        What the prompt opened (:meth:`Prompter.opened`) stands in front of it.
        """
        return ("" if self._prompter is None else self._prompter.opened(request)) + self.text(tokens)

    def text(self, tokens: Sequence[int]) -> str:
        """Return ``tokens`` decoded all at once, without control tokens but with those around reasoning and turns."""
        visible = [token for token in tokens if token not in self._skipped]
        text: str = self._tokenizer.decode(visible, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return self._own.translated(text)

    def _is_kept(self, token: str) -> bool:
        return is_reasoning_marker(token) or ends_turn(token) or token in self._own
