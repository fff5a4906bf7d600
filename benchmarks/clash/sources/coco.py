"""COCO captions (Lin et al., 2014) in their original layout, one caption an image, in an order that the seed decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.base import digest
from benchmarks.errors import MediaError, SourceError
from benchmarks.media import MISSING, image_suffix, load_image, read_image
from benchmarks.text.json_replies import LONGEST, short_line
from benchmarks.untrusted.safe_json import MAX_SOURCE_BYTES, OutsideJSONError, read_json_file

LAYOUT = "a folder with annotations/captions_*.json and the images in train2017/ or val2017/ beside annotations/"
NO_CAPTION = f"no caption: none is one line of at least 3 words and at most {LONGEST} characters"
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
        """Which one it is, as a person would find it."""
        return f"image {self.image_id}, caption {self.number}"


@dataclass(frozen=True, slots=True)
class UnusableCaption:
    """An image of the annotations that has nothing to construct from, and why."""

    image_id: int
    reason: str

    @property
    def row(self) -> str:
        return f"image {self.image_id}"


class CocoFolder:
    """The captions in a folder. Raises SourceError where it is not of the layout."""

    def __init__(self, folder: Path) -> None:
        found = [file for place in (folder / "annotations", folder) for file in sorted(place.glob("captions_*.json"))]
        if not found:
            raise SourceError(f"{folder} has no COCO captions; expected {LAYOUT}.")
        self._folder = folder
        self._names: dict[int, str] = {}
        self._captions: defaultdict[int, list[str]] = defaultdict(list)
        for file in found:
            self._read(file)
        if not self._captions:
            raise SourceError(f"the files captions_*.json in {folder} hold no caption; get them again from COCO.")

    def images(self, seed: int) -> list[int]:
        """The ids of the images that have captions, in an order that ``seed`` decides."""
        return sorted(self._captions, key=lambda each: digest([seed, "image", each]))

    def captions(self, seed: int) -> Iterator[Caption | UnusableCaption]:
        """One caption of every image, which one and in which order ``seed`` decides.

        Whether an image is there is looked up when its turn comes.
        """
        for image_id in self.images(seed):
            usable = self.usable(image_id)
            if usable:
                yield self.caption(image_id, *min(usable, key=lambda each: digest([seed, "caption", image_id, *each])))
            else:
                yield UnusableCaption(image_id, NO_CAPTION)

    def usable(self, image_id: int) -> list[tuple[int, str]]:
        """The image's captions that can be worked with, by their number."""
        numbered = enumerate(self._captions[image_id], 1)
        lines = ((number, short_line(text)) for number, text in numbered)
        return [(number, text) for number, text in lines if text is not None and len(text.split()) >= 3]

    def caption(self, image_id: int, number: int, text: str) -> Caption | UnusableCaption:
        """The caption with its image, which can be loaded, or why the image cannot be used."""
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
            whole = read_json_file(file, MAX_SOURCE_BYTES)
        except (OSError, OutsideJSONError) as error:
            raise SourceError(
                f"{file} cannot be read ({error.__class__.__name__}); get COCO's captions again."
            ) from error
        if not isinstance(whole, dict):
            raise SourceError(f"{file} is not a file of COCO captions; expected {LAYOUT}.")
        for entry in _objects(whole.get("images")):
            if _is_id(entry.get("id")) and isinstance(entry.get("file_name"), str):
                self._names.setdefault(entry["id"], entry["file_name"])
        numbered = [a for a in _objects(whole.get("annotations")) if _is_id(a.get("image_id")) and _is_id(a.get("id"))]
        for entry in sorted(numbered, key=lambda a: int(a["id"])):
            text = entry.get("caption")
            if isinstance(text, str) and text not in self._captions[entry["image_id"]]:
                self._captions[entry["image_id"]].append(text)


def read_picture(caption: Caption) -> tuple[bytes, str] | None:
    """The bytes and the suffix of a caption's image, or None where it was changed or went away meanwhile."""
    try:
        data = read_image(caption.image)
    except MediaError:
        return None
    suffix = image_suffix(data)
    return None if suffix is None else (data, suffix)


def _objects(value: Any) -> Iterable[dict[str, Any]]:
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
