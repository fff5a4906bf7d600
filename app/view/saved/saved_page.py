"""The page with its contents, as the text of one file.

The contents are in elements that are no scripts: as JSON, what the page draws first and then blocks of instances with their rows
of the list, which are parsed when they are displayed; then every medium once, as a ``data:`` URI. Only a block is in memory.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from app.report.samples.thumbnails import LONGEST_SIDE
from app.view.contents.page_contents import Contents
from app.view.contents.page_json import to_json
from app.view.contents.page_media import SIDE, TYPES, MediaFile, draw_preview
from app.view.contents.page_types import Head, Index, Medium, Overview, ViewedAnswer, ViewedInstance
from app.view.saved.page_document import document_parts
from benchmarks.errors import MediaError
from benchmarks.media import MISSING, read_media

MediaChoice = Literal["thumbnails", "full", "none"]

_BLOCK = 200
"""The number of instances in a block."""
_STRETCHES, _STRETCH = 8, 12
"""The instances that the size of a file is estimated from; neighbours share their media."""
_PIECE = 3 << 18
"""The bytes of a medium in a piece of text; base64 has four characters for three."""


def saved_page(
    contents: Contents, media: MediaChoice = "thumbnails", *, overview: Overview | None = None, canonical: bool = False
) -> Iterator[str]:
    """Yield the text of the file in pieces.

    ``overview`` replaces that of the contents. ``canonical`` leaves out times, token counts, and what rests on times and memory.
    """
    head = contents.head()
    saver = _Saver(contents, media, canonical)
    before, after = document_parts()
    yield before
    yield saver.first(head, overview or contents.overview())
    with contents.held_open():
        for start in range(0, head.instances, _BLOCK):
            yield from saver.block(start // _BLOCK, range(start, min(start + _BLOCK, head.instances)))
    yield from saver.media()
    yield after


def estimated_size(contents: Contents, media: MediaChoice) -> int:
    """Return about how many bytes the file is going to have, from some of the instances."""
    head = contents.head()
    saver = _Saver(contents, media, canonical=False)
    starts = range(0, head.instances, max(_STRETCH, head.instances // _STRETCHES))
    sample = [number for start in starts for number in range(start, min(start + _STRETCH, head.instances))]
    with contents.held_open():
        varying = sum(len(piece.encode()) for piece in (*saver.block(0, sample), *saver.media()))
    fixed = sum(len(piece.encode()) for piece in (*document_parts(), saver.first(head, contents.overview())))
    return fixed + varying * head.instances // max(1, len(sample))


class _Saver:
    """Writer of the contents; it numbers the media in the order in which the instances have them."""

    def __init__(self, contents: Contents, choice: MediaChoice, canonical: bool) -> None:
        self._contents, self._choice, self._canonical = contents, choice, canonical
        self._media: dict[tuple[MediaFile, bool], str] = {}

    def first(self, head: Head, overview: Overview) -> str:
        """Return the element with what the page draws first."""
        index = self._contents.index()
        if self._canonical:
            index, overview = _canonical_index(index, head.instances), _canonical_overview(overview)
        runs = tuple(replace(run, writable=False, read_only="") for run in head.runs)
        contents = {
            "head": replace(head, saved=True, runs=runs, revision=0),
            "index": replace(index, revision=0),
            "overview": replace(overview, revision=0),
            "block": _BLOCK,
        }
        return _element("contents", contents)

    def block(self, place: int, numbers: Sequence[int]) -> Iterator[str]:
        """Yield the elements of instances and of their rows in the list."""
        yield _element(f"rows-{place}", self._contents.rows(numbers))
        yield _element(f"instances-{place}", [*map(self._instance, self._contents.read_instances(numbers))])

    def media(self) -> Iterator[str]:
        """Yield the elements of the media of the instances so far; a medium that cannot be read has none."""
        for (file, is_original), name in self._media.items():
            try:
                data = self._original(file) if is_original else self._preview(file)
            except MediaError:
                continue
            kind = TYPES[file.medium.suffix] if is_original else "image/webp"
            yield f'<script type="text/plain" id="{name}">data:{kind};base64,'
            for start in range(0, len(data), _PIECE):
                yield b64encode(data[start : start + _PIECE]).decode("ascii")
            yield "</script>\n"

    def _instance(self, instance: ViewedInstance) -> ViewedInstance:
        answers = instance.answers
        if self._canonical:
            answers = tuple(None if answer is None else _canonical_answer(answer) for answer in answers)
        return replace(instance, media=tuple(map(self._medium, instance.media)), answers=answers)

    def _medium(self, medium: Medium) -> Medium:
        file = self._contents.media.file(medium.preview) if medium.preview else None
        if file is None or self._choice == "none":
            return replace(medium, original=None, preview=None)
        original = self._name(file, True) if self._choice == "full" and medium.original else None
        is_picture = medium.modality == "image" and not medium.marks
        return replace(
            medium, original=original, preview=original if original and is_picture else self._name(file, False)
        )

    def _name(self, file: MediaFile, is_original: bool) -> str:
        return self._media.setdefault((file, is_original), f"media-{len(self._media)}")

    def _preview(self, file: MediaFile) -> bytes:
        return draw_preview(file, SIDE if self._choice == "full" else LONGEST_SIDE)

    @staticmethod
    def _original(file: MediaFile) -> bytes:
        path = file.path
        if path is None:
            raise MediaError(f"the {file.medium.modality}", MISSING)
        return read_media(path, file.medium)


def _canonical_index(index: Index, instances: int) -> Index:
    unknown = b64encode(bytes(4 * instances)).decode("ascii")
    return replace(index, runs=tuple(replace(run, tokens=unknown, seconds=unknown) for run in index.runs))


def _canonical_overview(overview: Overview) -> Overview:
    pairs = tuple(replace(pair, verdict=()) for pair in overview.pairs)
    return replace(overview, pairs=pairs, remarks=(), comparison=(), recommendation=(), next=())


def _canonical_answer(answer: ViewedAnswer) -> ViewedAnswer:
    return replace(answer, seconds=None, prompt_tokens=None, completion_tokens=None, origin=None)


def _element(name: str, value: object) -> str:
    """Return an element with JSON in which nothing can end it, begin a comment, or end a line of a script."""
    text = to_json(value).decode("utf-8")
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{text}</script>\n'
