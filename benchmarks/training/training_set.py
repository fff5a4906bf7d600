"""Training set: a folder of rows in the format of mlx-vlm's trainer, and their images by content.

::

    train.jsonl        rows to learn from
    validation.jsonl   rows of other examples and other images, whose loss is measured
    images/            each image once, named by the sha256 of its bytes
    manifest.json      provenance: builds, options, counts, the test data that it was checked against

A folder with ``train.jsonl`` alone, made elsewhere, can be read too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any

from benchmarks.errors import SourceError
from benchmarks.media import LARGEST_FILE
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.reader_types import RowProblem
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.vocabulary import Media, Message, Part, Text

PARTS = ("train", "validation")
"""The names of the files of rows, without ``.jsonl``."""

IMAGES, MANIFEST = "images", "manifest.json"
FORMAT = 1
_LAYOUT = (
    'train.jsonl with rows such as {"images": ["images/1.png"], "messages": [{"role": "user", "content": ...}, '
    '{"role": "assistant", "content": ...}]}'
)
_ROLES = ("system", "user", "assistant")
_TEXTS = ("group", "question", "kind", "rejected", "benchmark", "condition")
_SHA256 = re.compile("[0-9a-f]{64}")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A row of a training set.

    ``messages`` are the prompt's; an image is named in them by its place in the row. ``images`` are its files, ``digests`` the
    sha256 of the images that they were made from. ``rejected`` is an answer that the target is to be preferred to, if any.
    ``benchmark``, ``condition``, ``references`` and ``strata`` are those of the instance that the row was made of; they are
    empty in sets that were made elsewhere, or by earlier versions.
    ``own_images`` are the pictures of the row's example, which it need not show; None if the row does not state them.
    """

    where: str
    messages: tuple[Message, ...]
    target: str
    images: tuple[Path, ...]
    digests: tuple[str, ...] = ()
    group: str = ""
    question: str = ""
    kind: str = ""
    rejected: str = ""
    benchmark: str = ""
    condition: str = ""
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    strata: Mapping[str, str] = field(default_factory=dict)
    own_images: tuple[Path, ...] | None = None

    @property
    def example(self) -> str:
        """The key of its example: rows of one example state the same group, image or prompt."""
        return self.group or (self.images[0].name if self.images else self.prompt)

    @property
    def all_images(self) -> tuple[Path, ...]:
        """Its images, and those of its example that it does not show."""
        return tuple(dict.fromkeys((*self.images, *(self.own_images or ()))))

    @property
    def prompt(self) -> str:
        """The texts of the prompt, in order."""
        return "\n".join(part.text for message in self.messages for part in message.parts if isinstance(part, Text))

    @property
    def turns(self) -> list[str]:
        """The texts of each of the prompt's messages; the system's message is left out."""
        return [
            "\n".join(part.text for part in message.parts if isinstance(part, Text))
            for message in self.messages
            if message.role != "system"
        ]


@dataclass(frozen=True)
class TrainingSet:
    """A training set on disk."""

    path: Path
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> TrainingSet:
        """Open the training set in folder ``path``. Raises SourceError if it has no rows to learn from."""
        if not is_training_set(path):
            raise SourceError(f"{path} is not a training set: it needs {_LAYOUT}. `rashomon training` writes one.")
        return cls(path, read_manifest(path))

    @property
    def builds(self) -> frozenset[str]:
        """The digests of the builds that its manifest says it was made from."""
        builds = self.manifest.get("builds")
        return (
            frozenset(value for value in builds if isinstance(value, str)) if isinstance(builds, list) else frozenset()
        )

    @cached_property
    def image_digests(self) -> Mapping[Path, str]:
        """The sha256 of the bytes of each image, in the order of the rows.

        Raises SourceError for a row that cannot be used, and for an image that is not the one that was written.
        """
        digests: dict[Path, str] = {}
        is_own = self.manifest.get("format") == FORMAT
        for image in (image for part in PARTS for row in self.rows(part) for image in row.all_images):
            if image in digests:
                continue
            try:
                with image.open("rb") as stream:
                    digests[image] = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise SourceError(f"{image} cannot be read ({error.strerror}); put the image in its place.") from error
            if is_own and _SHA256.fullmatch(image.stem) and image.stem != digests[image]:
                raise SourceError(f"{image} was changed after it was written; write the training set again.")
        return digests

    @cached_property
    def digest(self) -> str:
        """The sha256 of its rows and images. Raises SourceError as :attr:`image_digests`."""
        contents = hashlib.sha256()
        for name in PARTS:
            file = self.path / f"{name}.jsonl"
            if file.is_file():
                with file.open("rb") as stream:
                    contents.update(hashlib.file_digest(stream, "sha256").digest())
        for image_digest in self.image_digests.values():
            contents.update(bytes.fromhex(image_digest))
        return contents.hexdigest()

    def rows(self, part: str) -> Iterator[ChatRow]:
        """Yield the rows of ``train`` or ``validation``. Raises SourceError at a row that cannot be used, with the reason."""
        file = self.path / f"{part}.jsonl"
        if not file.is_file():
            return
        for number, fields in read_json_lines(file):
            where = f"{file.name}:{number}"
            try:
                if isinstance(fields, RowProblem):
                    raise fields
                yield _parsed(fields, where, self.path)
            except RowProblem as problem:
                raise SourceError(
                    f"{self.path}: {where}: {problem}; correct the row. A training set has {_LAYOUT}."
                ) from problem


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in a folder; empty if there is none, or it cannot be read."""
    try:
        manifest = read_json_file(folder / MANIFEST)
    except (OSError, OutsideJSONError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def is_training_set(path: Path) -> bool:
    """Return whether a folder has rows to learn from."""
    return os.path.isfile(path / f"{PARTS[0]}.jsonl")


def _parsed(fields: Any, where: str, folder: Path) -> ChatRow:
    if not isinstance(fields, Mapping):
        raise RowProblem("the row is not a JSON object")
    images = fields.get("images", fields.get("image", []))
    paths = _image_paths([images] if isinstance(images, str) else images, folder)
    own = fields.get("own_images")
    own_paths = None if own is None else _image_paths(own, folder)
    if any(key in fields for key in ("audio", "audios", "video", "videos")):
        raise RowProblem("the row has sound or video, which cannot be trained on here")
    turns = fields.get("messages", fields.get("conversations"))
    if not isinstance(turns, list) or len(turns) < 2:
        raise RowProblem("the row has no messages, or only one")
    messages, target = _messages(turns, paths)
    texts = {key: str(fields.get(key) or "") for key in _TEXTS}
    references, strata = _references(fields.get("references")), _strata(fields.get("strata"))
    values = [value for answers in references.values() for value in answers] + [*strata.values()]
    parts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    if any(_SURROGATE.search(text) for text in (target, *parts, *texts.values(), *values)):
        raise RowProblem("a text has half of a surrogate pair, which is no character")
    known = fields.get("image_digests")
    digests = tuple(value for value in known if isinstance(value, str)) if isinstance(known, list) else ()
    return ChatRow(
        where,
        messages,
        target,
        paths,
        digests,
        references=references,
        strata=strata,
        own_images=own_paths,
        **texts,
    )


def _references(value: Any) -> dict[str, tuple[str, ...]]:
    """Return the answers that each source of a row supports; empty for what is no such mapping."""
    sources = value.items() if isinstance(value, Mapping) else ()
    lists = {source: answers for source, answers in sources if isinstance(answers, list)}
    return {source: tuple(answer for answer in answers if isinstance(answer, str)) for source, answers in lists.items()}


def _strata(value: Any) -> dict[str, str]:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, Mapping) else {}


def _image_paths(images: Any, folder: Path) -> tuple[Path, ...]:
    """Return the files of a row's images. Raises RowProblem for one that cannot be used."""
    if not isinstance(images, list) or not all(isinstance(image, str) and image for image in images):
        raise RowProblem("the images are not a list of files")
    paths = tuple(folder / image for image in images)
    if missing := next((path for path in paths if not os.path.isfile(path)), None):
        raise RowProblem(f"the image {missing.name!r} is missing")
    if large := next((path for path in paths if path.stat().st_size > LARGEST_FILE), None):
        raise RowProblem(f"the image {large.name!r} has more than {LARGEST_FILE >> 20} MiB")
    return paths


def _messages(turns: Sequence[Any], paths: Sequence[Path]) -> tuple[tuple[Message, ...], str]:
    """Return the prompt's messages and the target, which is the last turn."""
    media = [Media(f"{number:064x}", path.suffix) for number, path in enumerate(paths)]
    waiting = list(media)
    messages = []
    for turn in turns:
        role = turn.get("role") if isinstance(turn, Mapping) else None
        if role not in _ROLES:
            raise RowProblem(f"the role of a message is not one of {', '.join(_ROLES)}")
        messages.append(Message(role, tuple(_content(turn.get("content"), waiting))))
    if messages[-1].role != "assistant":
        raise RowProblem("the last message is not the assistant's")
    if all(message.role == "system" for message in messages[:-1]):
        raise RowProblem("there is no message before the answer, except the system's")
    target = "".join(part.text for part in messages[-1].parts if isinstance(part, Text)).strip()
    if not target:
        raise RowProblem("the answer to learn is empty")
    if len(waiting) == len(media):  # the texts say nothing of images, which mlx-vlm then puts first
        first = next(place for place, message in enumerate(messages) if message.role != "system")
        messages[first] = Message(messages[first].role, (*media, *messages[first].parts))
    elif waiting:
        raise RowProblem("the messages name fewer images than the row has")
    return tuple(messages[:-1]), target


def _content(content: Any, waiting: list[Media]) -> Iterator[Part]:
    if not isinstance(content, str | list | NoneType):
        raise RowProblem("a message's content is neither text nor a list")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "image":
            if not waiting:
                raise RowProblem("the messages name more images than the row has")
            yield waiting.pop(0)
        elif kind == "text" and isinstance(text := part.get("text", part.get("content")), str):
            yield Text(text)
        else:
            raise RowProblem("a message's content is neither text nor an image")
