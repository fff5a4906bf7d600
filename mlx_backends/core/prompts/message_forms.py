"""Forms in which a chat template is given messages with media, and the markers that it writes for these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Media, Modality
from mlx_backends.core.prompts.mlx_vlm_formatting import prompt_utils
from mlx_backends.core.prompts.template_process import TemplateLimitError

MODALITIES: tuple[Modality, ...] = ("image", "audio", "video")


Piece = str | Media
Turn = tuple[str, tuple[Piece, ...]]
Content = str | list[dict[str, str]]
Form = Callable[[Sequence[Turn]], str]
"""Function that renders turns."""

Markers = Mapping[Modality, re.Pattern[str]]


class PromptError(ModelError):
    """Messages that this model's chat template or processor cannot represent faithfully."""


class MessageForms:
    """Forms of messages for one model: ``all`` in the order in which they are tried.

    ``placeholders`` are the strings that stand for media in a text; ``control`` matches the model's control tokens.
    """

    def __init__(
        self, processor: Any, config: Any, placeholders: Mapping[Modality, Sequence[str]], control: re.Pattern[str]
    ) -> None:
        self._processor = processor
        self._config = config
        self._placeholders = placeholders
        self._control = control
        self.all: list[Form] = [self._declared, *self._plain_forms()]

    def _declared(self, turns: Sequence[Turn]) -> str:
        messages = [{"role": role, "content": _list(p) if _has_media(p) else "".join(map(str, p))} for role, p in turns]
        count = Counter(piece.modality for _, pieces in turns for piece in pieces if isinstance(piece, Media))
        counts = {"num_images": count["image"], "num_audios": count["audio"]}
        return _text(prompt_utils().apply_chat_template(self._processor, self._config, messages, **counts))

    def _plain_forms(self) -> Iterator[Form]:
        def inline(pieces: Sequence[Piece]) -> str:
            return "".join(p if isinstance(p, str) else self._placeholders[p.modality][0] for p in pieces)

        def rendering(content: Callable[[Sequence[Piece]], Content]) -> Form:
            return lambda turns: self.rendered([{"role": role, "content": content(pieces)} for role, pieces in turns])

        yield rendering(_list)
        yield rendering(lambda pieces: _list(pieces) if _has_media(pieces) else inline(pieces))
        yield rendering(inline)
        yield rendering(lambda pieces: _list([inline(pieces)]))

    def rendered(self, messages: list[dict[str, Any]]) -> str:
        """Return what the chat template makes of messages in mlx-vlm's own form."""
        return _text(prompt_utils().get_chat_template(self._processor, messages, add_generation_prompt=True))

    def markers(self, form: Form) -> Markers:
        """Return the markers that ``form`` writes for media, by modality; of those that share a marker, only images."""
        markers = {modality: marker for modality in MODALITIES if (marker := self._marker(form, modality)) is not None}
        patterns = Counter(marker.pattern for marker in markers.values())
        return {
            modality: marker
            for modality, marker in markers.items()
            if modality == "image" or patterns[marker.pattern] == 1
        }

    def _marker(self, form: Form, modality: Modality) -> re.Pattern[str] | None:
        """Return the marker that ``form`` writes before a text for a medium, numbers aside; None where it writes none."""
        placeholder = "Rashomon000000Text"
        try:
            before, placed, _ = form([("user", (Media("0" * 64, "", modality), placeholder))]).partition(placeholder)
            text_alone, placed_alone, _ = form([("user", (placeholder,))]).partition(placeholder)
        except TemplateLimitError:
            raise
        except Exception:  # a form without media may still carry texts
            return None
        marker = before.removeprefix(text_alone).strip()
        if not placed or not placed_alone or not self._control.search(marker):
            return None
        return re.compile(re.sub(r"\d+", r"\\d+", re.escape(marker)))


def without_system(turns: Sequence[Turn]) -> list[Turn]:
    """Return ``turns`` with the system's text before the first user turn, for templates without a system role."""
    system = tuple(piece for role, pieces in turns if role == "system" for piece in pieces)
    others = [turn for turn in turns if turn[0] != "system"]
    if not system or not others or others[0][0] != "user":
        return list(turns)
    return [("user", (*system, "\n\n", *others[0][1])), *others[1:]]


def _has_media(pieces: Sequence[Piece]) -> bool:
    return any(isinstance(piece, Media) for piece in pieces)


def _list(pieces: Sequence[Piece]) -> list[dict[str, str]]:
    """Return a content list, with each text under both keys that templates read."""
    return [{"type": "text", "text": p, "content": p} if isinstance(p, str) else {"type": p.modality} for p in pieces]


def _text(rendered: object) -> str:
    if not isinstance(rendered, str):
        raise PromptError("its chat template does not return text")
    return rendered


def in_order(rendered: str, turns: Sequence[Turn], markers: Markers) -> bool:
    """Return whether placeholders and media markers stand in ``rendered`` each once and in the order of ``turns``."""
    pieces = [piece for _, turn in turns for piece in turn]
    labels = [piece.modality if isinstance(piece, Media) else piece.strip() or None for piece in pieces]
    expected = [mark for mark in labels if mark is not None]
    groups = [f"(?P<{modality}>{marker.pattern})" for modality, marker in markers.items()]
    pattern = re.compile("|".join([r"(?P<word>Rashomon\d{6}Text)", *groups]))
    matches = [mark[0] if mark.lastgroup == "word" else mark.lastgroup for mark in pattern.finditer(rendered)]
    printed_list = "'type':" in rendered or '"type":' in rendered  # a content list that the template printed as it is
    return matches == expected and not printed_list
