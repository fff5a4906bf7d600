"""COCO captions (Lin et al., 2014) in their original layout, one per image, in a seeded order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import MediaError, SourceError
from benchmarks.media import MISSING, image_suffix, load_image, read_image
from benchmarks.text.json_replies import LONGEST_LINE, short_line
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file
from benchmarks.vocabulary import digest

LAYOUT = "a folder with annotations/captions_*.json and the images in train2017/ or val2017/ beside annotations/"
NO_CAPTION = f"no caption: none is one line of at least 3 words and at most {LONGEST_LINE} characters"
NO_NAME = "no image: its entry has no plain file name"

_FOLDERS = ("train2017", "val2017", "train2014", "val2014", ".")


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption with its image. ``number`` counts the image's captions from 1; ``image`` is the image's file."""

    image_id: int
    number: int
    text: str
    image: Path

    @property
    def row(self) -> str:
        """The caption's place in the source, for a report."""
        return f"image {self.image_id}, caption {self.number}"


@dataclass(frozen=True, slots=True)
class UnusableCaption:
    """An image without a usable caption or file, and the reason."""

    image_id: int
    reason: str

    @property
    def row(self) -> str:
        return f"image {self.image_id}"


class CocoFolder:
    """The captions in a folder. Raises SourceError if it has another layout."""

    def __init__(self, folder: Path) -> None:
        files = [file for place in (folder / "annotations", folder) for file in sorted(place.glob("captions_*.json"))]
        if not files:
            raise SourceError(f"{folder} has no COCO captions; expected {LAYOUT}.")
        self._folder = folder
        self._names: dict[int, str] = {}
        self._captions: defaultdict[int, list[str]] = defaultdict(list)
        for file in files:
            self._read(file)
        if not self._captions:
            raise SourceError(f"the files captions_*.json in {folder} hold no caption; get them again from COCO.")

    def images(self, seed: int) -> list[int]:
        """Return the ids of the images that have captions, in an order that ``seed`` decides."""
        return sorted(self._captions, key=lambda image_id: digest([seed, "image", image_id]))

    def captions(self, seed: int) -> Iterator[Caption | UnusableCaption]:
        """Yield one caption per image; ``seed`` decides the caption and the order.

        Images are checked for existence only when their turn comes.
        """
        for image_id in self.images(seed):
            usable = self.usable(image_id)
            if usable:
                yield self.caption(
                    image_id, *min(usable, key=lambda numbered: digest([seed, "caption", image_id, *numbered]))
                )
            else:
                yield UnusableCaption(image_id, NO_CAPTION)

    def usable(self, image_id: int) -> list[tuple[int, str]]:
        """Return the image's usable captions with their numbers."""
        numbered = enumerate(self._captions[image_id], 1)
        lines = ((number, short_line(text)) for number, text in numbered)
        return [(number, text) for number, text in lines if text is not None and len(text.split()) >= 3]

    def caption(self, image_id: int, number: int, text: str) -> Caption | UnusableCaption:
        """Return the caption with its loadable image, or the reason why the image cannot be used."""
        name = self._names.get(image_id, "")
        if not name or name != Path(name).name or "\\" in name or not name.isprintable():
            return UnusableCaption(image_id, NO_NAME)
        for place in _FOLDERS:
            file = self._folder / place / name
            try:
                if not file.is_file():
                    continue
                load_image(file)
            except OSError:
                continue
            except MediaError as error:
                return UnusableCaption(image_id, f"the image {error.reason}")
            return Caption(image_id, number, text, file)
        return UnusableCaption(image_id, f"the image {MISSING}")

    def _read(self, file: Path) -> None:
        try:
            content = read_json_file(file, MAX_SOURCE_BYTES)
        except (OSError, OutsideJSONError) as error:
            raise SourceError(
                f"{file} cannot be read ({error.__class__.__name__}); get COCO's captions again."
            ) from error
        if not isinstance(content, dict):
            raise SourceError(f"{file} is not a file of COCO captions; expected {LAYOUT}.")
        for entry in _objects(content.get("images")):
            if _is_id(entry.get("id")) and isinstance(entry.get("file_name"), str):
                self._names.setdefault(entry["id"], entry["file_name"])
        numbered = [
            a for a in _objects(content.get("annotations")) if _is_id(a.get("image_id")) and _is_id(a.get("id"))
        ]
        for entry in sorted(numbered, key=lambda a: int(a["id"])):
            text = entry.get("caption")
            if isinstance(text, str) and text not in self._captions[entry["image_id"]]:
                self._captions[entry["image_id"]].append(text)


def read_caption_image(caption: Caption) -> tuple[bytes, str] | None:
    """Return the bytes and suffix of a caption's image, or None if it was changed or removed meanwhile."""
    try:
        data = read_image(caption.image)
    except MediaError:
        return None
    suffix = image_suffix(data)
    return None if suffix is None else (data, suffix)


def _objects(value: Any) -> Iterable[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
