"""Prompts: a request's messages as the text a model reads, with every image, audio clip and video in its place.

The chat template never sees the texts. It is given a unique placeholder for each, the result is checked, and only then are
the placeholders replaced. So no template rewrites a text or is steered by it, and whether the media stand where the parts say
does not depend on the texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.text.reasoning import opened_reasoning
from benchmarks.vocabulary import Media, Message, Modality, Request, Text
from mlx_backends.core.prompts.message_forms import (
    MODALITIES,
    Markers,
    MessageForms,
    Piece,
    PromptError,
    Turn,
    in_order,
    without_system,
)
from mlx_backends.core.prompts.mlx_vlm_formatting import prompt_utils
from mlx_backends.core.prompts.reasoning_markers import own_markers
from mlx_backends.core.prompts.template_process import TemplateLimitError
from mlx_backends.models.context_length import ContextLength

_LITERALS = ("<image>", "<video>", "<audio>", "<think>", "</think>")
_PROCESSOR_TOKENS = ("image_token", "video_token", "audio_token", "boi_token", "eoi_token")
_NUMBERED = r"<\|(?:image|video|audio)_\d+\|>"
_CONTROL_SHAPE = re.compile(r"<\|.+\|>", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER = re.compile(r"Rashomon(\d{6})Text")
_SPLIT = "\0"
_FRAME = "\1"
_TIME = re.compile(r"(?:<?(?:\d+[.:])*\d+(?:seconds|s)?>?)?")
"""Text that a processor writes between the frames of a video, apart from white space and control tokens."""

_TURN_TOKEN = re.compile(
    r"<\|(?:im_(?:start|end)|(?:start|end)_header_id|eot_id|\w{0,40}(?:start|end|begin)_of_\w{1,40})\|>|<(?:start|end)_of_turn>",
    re.IGNORECASE,
)
"""Control tokens by their names, such as ``<|im_start|>``, ``<|start_header_id|>`` and ``<|eot_id|>``."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text for the model, its media in order, and the text before, between and after their markers."""

    text: str
    media: tuple[Media, ...]
    segments: tuple[str, ...]

    @property
    def images(self) -> tuple[Media, ...]:
        return self.of("image")

    def of(self, modality: Modality) -> tuple[Media, ...]:
        """Return its media of one modality, in order."""
        return tuple(media for media in self.media if media.modality == modality)


class Prompter:
    """Builder of one model's prompts, from its processor and configuration: mlx-vlm's, or those of transformers."""

    def __init__(self, processor: Any, config: Any, context: ContextLength | None = None) -> None:
        self._processor = processor
        self._config = config
        self._context = context
        self._tokenizer = getattr(processor, "tokenizer", processor)
        control = _control_tokens(processor, self._tokenizer)
        self._control = re.compile("|".join([*map(re.escape, sorted(control, key=len, reverse=True)), _NUMBERED]))
        self._vocabulary: dict[str, int] = self._tokenizer.get_vocab()
        self._control_ids = {self._vocabulary[token] for token in control if token in self._vocabulary}
        self._control_ids.discard(self._tokenizer.unk_token_id)  # any text may hold a character that is unknown
        self._placeholders = {modality: self._named(f"{modality}_token") for modality in MODALITIES}
        self._placeholders["image"].append("<image>")
        forms = self._message_forms()
        self._forms = [(form, forms.markers(form)) for form in forms.all]
        self.own_markers = own_markers(forms.rendered)
        self._opened: dict[Hashable, str] = {}
        """The reasoning that prompts open, by the shape of their messages, which is all that a chat template sees."""

    def remarks(self, model: str) -> tuple[str, ...]:
        """Return a sentence for readers of the answers of ``model`` where no chat template marks who speaks."""
        if self._has_template():
            return ()
        return (
            f"{model} has no chat template, so it read its prompts as plain text; a model tuned for dialogue answers them "
            "otherwise.",
        )

    def check_template(self, model: str) -> None:
        """Raise ModelError if the template of ``model`` marks turns by control tokens that its tokenizer reads as text.

        Only names are looked at that every family has as one token: others, such as ``[INST]`` and ``<|user|>``, are plain
        text to some models.
        """
        try:
            text = self.prompt([Message("user", (Text("a"),))]).text if self._has_template() else ""
        except ModelError:  # as each request's own prompt will
            return
        for token in dict.fromkeys(_TURN_TOKEN.findall(text)):
            if len(self._ids(token)) != 1:
                raise ModelError(
                    f"the chat template of {model} writes {token!r}, and its tokenizer has no such token, so chat_template or "
                    "tokenizer.json is of another model; fetch the model again."
                )

    def _message_forms(self) -> MessageForms:
        return MessageForms(self._processor, self._config, self._placeholders, self._control)

    def _has_template(self) -> bool:
        return any(getattr(part, "chat_template", None) for part in (self._processor, self._tokenizer))

    def _named(self, name: str) -> list[str]:
        tokens = (getattr(owner, name, None) for owner in (self._processor, self._tokenizer))
        return [token for token in tokens if isinstance(token, str) and token]

    def neutralise(self, text: str) -> str:
        """Return ``text`` with a space after the first character of everything this model would read as a control token.

        ``<|im_end|>`` becomes ``< |im_end|>``. Lone surrogates, which no tokenizer takes, become U+FFFD.
        """
        text = _SURROGATE.sub("\ufffd", text)
        while self._control.search(text):
            text = self._control.sub(lambda token: f"{token[0][0]} {token[0][1:]}", text)
        return text

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """Return the prompt for ``messages``, in the first form that keeps every text and medium in its place.

        The forms are, in this order, the message format mlx-vlm declares for the model, content lists, and the model's
        placeholders written into the text. Where none does, the system's text is put before the first user turn, for templates
        without a system role. Raises PromptError where that does not help either.
        """
        texts: list[str] = []
        turns: list[Turn] = [(message.role, tuple(self._pieces(message, texts))) for message in messages]
        media = tuple(piece for _, pieces in turns for piece in pieces if isinstance(piece, Media))
        modalities = {medium.modality for medium in media}
        self._check_count(media)
        reason = f"no {' or '.join(sorted(modalities))} can be put into its prompt"
        ways = [turns]
        if (merged := without_system(turns)) != turns:
            ways.append(merged)
        for shown, (form, markers) in product(ways, self._forms):
            if not modalities <= markers.keys():
                continue
            try:
                rendered = form(shown)
            except TemplateLimitError:
                raise
            except Exception as error:  # templates can raise anything
                reason = f"its chat template refuses the messages ({' '.join(str(error).split())[:120]})"
                continue
            if in_order(rendered, shown, markers):
                self._opened[_shape(messages)] = opened_reasoning(self.own_markers.translated(_end(rendered)))
                return self._filled(rendered, {modality: markers[modality] for modality in modalities}, texts, media)
            reason = f"its chat template does not keep the texts and {_media_names(modalities)} in their order"
        raise PromptError(f"this model cannot be given this prompt: {reason}.")

    def opened(self, request: Request) -> str:
        """Return the marker by which the prompt of ``request`` opens reasoning, to the prompt's end; "" if it opens none.

        So for an answer in a given form, which holds no reasoning. Raises PromptError where there is no prompt.
        """
        if request.unscored.form is not None:
            return ""
        if (shape := _shape(request.messages)) not in self._opened:
            self.prompt(request.messages)
        return self._opened[shape]

    def check_inputs(self, prompt: Prompt, inputs: Mapping[str, Any]) -> None:
        """Raise PromptError unless ``inputs``, as prepared for the model, are the prompt with its media expanded.

        That is, it is not too long for the model, and its segments stand whole and in order, with a medium's tokens between
        every two and nowhere else. A video's tokens may have the times of its frames among them.
        """
        vocabulary = range(len(self._tokenizer))
        media_tokens, frames = self.media_tokens(inputs), self.tokens_of("video")
        tokens: list[int] = inputs["input_ids"].flatten().tolist()
        self.check_length(len(tokens), sum(token in media_tokens or token not in vocabulary for token in tokens))
        runs: list[list[int]] = [[]]
        separators = []
        for token in tokens:
            if token in media_tokens or token not in vocabulary:
                separators.append(_FRAME if token in frames else _SPLIT)
                runs.append([])
            else:
                runs[-1].append(token)
        texts = [self._decoded(run) if run else "" for run in runs]  # an image leaves hundreds of empty runs
        text = self._without_times("".join(chain.from_iterable(zip(texts, [*separators, ""], strict=True))))
        segments = [self._decoded(self._ids(segment)) for segment in prompt.segments]
        position = 0
        for number, segment in enumerate(segments):
            image = text.find(_SPLIT, position) + 1
            position = text.find(segment, image) if number else text.find(segment, 0, image - 1 if image else None)
            if position < 0 or (number and not image):
                raise PromptError("the processor lost or moved a part of the prompt; it may be too long for the model.")
            position += len(segment)
        if _SPLIT in text[position:] or not text.endswith(segments[-1]):
            raise PromptError("the processor added to the end of the prompt, or put an image where none was asked for.")

    def check_length(self, tokens: int, media_tokens: int = 0) -> None:
        """Raise PromptError for a prompt of ``tokens``, ``media_tokens`` of them media, that the model's context cannot hold."""
        if self._context is None:
            return
        if tokens - (0 if self._context.counts_media else media_tokens) > self._context.tokens:
            raise PromptError(
                f"the prompt is longer than the {self._context.tokens:,} tokens that this model was made for; "
                "shorten its texts or choose a model with a longer context."
            )

    def media_tokens(self, inputs: Mapping[str, Any]) -> set[int]:
        """Return the tokens that stand for media in ``inputs``, as prepared for the model."""
        tokens = set().union(*map(self.tokens_of, MODALITIES))
        return tokens | (self._control_ids & {inputs.get("image_token_index")})

    def replaced_tokens(self) -> set[int]:
        """Return the tokens of images and videos that the model's configuration names; the encoder's output replaces them."""
        words = [f"{modality}_token_{word}" for modality in ("image", "video") for word in ("id", "index")]
        return self._control_ids & {getattr(self._config, word, None) for word in words}

    def tokens_of(self, modality: Modality) -> set[int]:
        """Return the tokens that stand for media of one modality."""
        tokens = {getattr(self._config, f"{modality}_token_{word}", None) for word in ("id", "index")}
        tokens |= set(map(self._vocabulary.get, self._placeholders[modality]))
        return self._control_ids & tokens  # a default may name any token

    def _without_times(self, decoded: str) -> str:
        """Return ``decoded`` with the tokens of each video as one, and without what a processor writes between its frames."""
        pieces = re.split(f"({_FRAME}+)", decoded)
        parts = [pieces[0]]
        for number in range(1, len(pieces), 2):
            text = pieces[number + 1]
            is_last = number + 2 >= len(pieces)
            within_video = not is_last and _SPLIT not in text and _TIME.fullmatch(self._control.sub("", text))
            parts.append("" if within_video else _SPLIT + text)
        return "".join(parts)

    # --- messages ---------------------------------------------------------------------------------

    def _pieces(self, message: Message, texts: list[str]) -> Iterator[Piece]:
        """Yield a message's parts, each text replaced by a placeholder and collected in ``texts``."""
        pending = ""
        for part in (*message.parts, None):
            if isinstance(part, Text):
                pending += part.text  # neighbours are joined first: a control token can be split over two parts
                continue
            text = self.neutralise(pending)
            if core := text.strip():
                head, tail = text.split(core, 1)
                yield f"{head}Rashomon{len(texts):06d}Text{tail}"
                texts.append(core)
            elif text:
                yield text
            pending = ""
            if part is not None:
                yield part

    def _check_count(self, media: Sequence[Media]) -> None:
        count = Counter(medium.modality for medium in media)
        if other := next((modality for modality in count if modality not in MODALITIES), None):
            raise PromptError(f"no model takes media of type {other}, and the request holds one.")
        if count["image"] > 1 and self._config.model_type in prompt_utils().SINGLE_IMAGE_ONLY_MODELS:
            raise PromptError(f"this model takes one image per prompt, and the request holds {count['image']}.")
        if count["audio"] > 1 and not getattr(self._processor, "supports_multiple_audio", False):
            raise PromptError(f"this model takes one audio clip per prompt, and the request holds {count['audio']}.")

    def _filled(self, rendered: str, markers: Markers, texts: Sequence[str], media: tuple[Media, ...]) -> Prompt:
        def fill(piece: str) -> str:
            return _PLACEHOLDER.sub(lambda word: texts[int(word[1])], piece)

        marker = re.compile("|".join(pattern.pattern for pattern in markers.values()))
        prompt = Prompt(fill(rendered), media, tuple(map(fill, marker.split(rendered) if markers else [rendered])))
        if self._controls(prompt.text) != self._controls(rendered):
            raise PromptError("a text holds a control token of this model that could not be neutralised.")
        return prompt

    # --- tokens -------------------------------------------------------------------------------------

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _controls(self, text: str) -> list[int]:
        return [token for token in self._ids(text) if token in self._control_ids]

    def _decoded(self, tokens: Sequence[int]) -> str:
        """Return tokens as text without white space, which processors add and take away around media."""
        text = self._tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return "".join(text.split()).replace(_SPLIT, "").replace(_FRAME, "")


def _shape(messages: Sequence[Message]) -> Hashable:
    return tuple((m.role, tuple("" if isinstance(part, Text) else part.modality for part in m.parts)) for m in messages)


def _end(rendered: str) -> str:
    """Return what a chat template writes behind the last text."""
    return _PLACEHOLDER.split(rendered)[-1]


def _control_tokens(processor: Any, tokenizer: Any) -> set[str]:
    """Return the strings that ``processor`` or ``tokenizer`` read as something other than text."""
    added_tokens = tokenizer.added_tokens_decoder.values()
    tokens = {str(token) for token in added_tokens if token.special or _CONTROL_SHAPE.fullmatch(str(token))}
    tokens.update(tokenizer.all_special_tokens, _LITERALS)
    attributes = (getattr(owner, name, None) for owner in (processor, tokenizer) for name in _PROCESSOR_TOKENS)
    tokens.update(token for token in attributes if isinstance(token, str))
    return {token for token in tokens if len(token) > 1 and not token.isspace()}


def _media_names(modalities: Iterable[Modality]) -> str:
    return (
        " and ".join(
            {"image": "images", "audio": "sounds", "video": "videos"}[modality] for modality in sorted(modalities)
        )
        or "images"
    )
