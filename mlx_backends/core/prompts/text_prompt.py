"""Prompts of text-only models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.vocabulary import Media, Message
from mlx_backends.core.prompts.chat_prompt import Prompter
from mlx_backends.core.prompts.message_forms import Form, MessageForms, PromptError, Turn
from mlx_backends.models.context_length import ContextLength
from mlx_backends.models.tokenizer_limits import panics_as_errors


class TextPrompter(Prompter):
    """Builder of a text-only model's prompts, from mlx-lm's tokenizer for it."""

    def __init__(self, tokenizer: Any, context: ContextLength | None = None) -> None:
        self._wrapper = tokenizer
        super().__init__(tokenizer._tokenizer, None, context)

    @panics_as_errors()
    def ids(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of the prompt for ``messages``. Raises PromptError where there is none."""
        text = self.prompt(messages).text
        templated = self._wrapper.has_chat_template  # such a template writes every control token itself
        ids = list(self._tokenizer(text, add_special_tokens=not templated)["input_ids"])
        if not ids:
            raise PromptError("the messages yield no tokens.")
        self.check_length(len(ids))
        return ids

    def _has_template(self) -> bool:
        return bool(self._wrapper.has_chat_template)

    def _check_count(self, images: Sequence[Media]) -> None:
        if images:
            raise PromptError(f"this model reads text only, and the request holds media of type {images[0].modality}.")

    def _message_forms(self) -> MessageForms:
        return TextForms(self._wrapper, self._control)


class TextForms(MessageForms):
    """Forms of messages for one text-only model."""

    def __init__(self, tokenizer: Any, control: re.Pattern[str]) -> None:
        self._wrapper = tokenizer
        super().__init__(tokenizer._tokenizer, None, {}, control)

    def _declared(self, turns: Sequence[Turn]) -> str:
        joined_turns = [(role, "".join(piece for piece in pieces if isinstance(piece, str))) for role, pieces in turns]
        return self.rendered([{"role": role, "content": text} for role, text in joined_turns])

    def _plain_forms(self) -> Iterator[Form]:
        def listed(turns: Sequence[Turn]) -> str:
            lists = [[{"type": "text", "text": str(piece)} for piece in pieces] for _, pieces in turns]
            return self.rendered(
                [{"role": turn[0], "content": parts} for turn, parts in zip(turns, lists, strict=True)]
            )

        yield listed

    def rendered(self, messages: list[dict[str, Any]]) -> str:
        if not self._wrapper.has_chat_template:
            return super().rendered(messages)
        rendered = self._wrapper.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        if not isinstance(rendered, str):
            raise PromptError("its chat template does not return text")
        return rendered
