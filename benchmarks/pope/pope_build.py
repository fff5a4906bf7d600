"""POPE's published questions and COCO's images, and the build made of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.errors import MediaError, SourceError, SpecError, did_you_mean
from benchmarks.media import MISSING, image_suffix, load_image, read_image
from benchmarks.pope.pope_constants import SETTINGS
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.json_rows import read_json_lines
from benchmarks.rows.sources import format_times
from benchmarks.vocabulary import digest

_POPE = "pope"
LAYOUT = (
    "a folder with coco_pope_random.json, coco_pope_popular.json and coco_pope_adversarial.json, and COCO's images beside "
    "them, in val2014/, val2017/ or train2017/, or in a folder of their own (--source images=FOLDER)"
)

NOT_A_ROW = "the line is not a question: it needs image, text and label"
NO_ID = "the image's name is not COCO's"
REPEATED = "repeated: another row of the setting has its image and question"

_FOLDERS = (".", "val2014", "val2017", "train2017", "train2014", "images")
_NAME = re.compile(r"(?:COCO_(?:val|train)2014_)?([0-9]{12})\.jpg")
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class PopeQuestion:
    """A question of POPE; ``answer`` is yes or no."""

    row: str
    setting: str
    image_id: int
    image_name: str
    text: str
    answer: str

    @property
    def id(self) -> str:
        """The question's id, equal on every machine."""
        return f"pope-{digest([self.setting, self.image_id, self.text])[:16]}"


def build(sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Build the questions whose images exist into ``out``; see ``Benchmark.build``. ``options.per_stratum`` is not used.

    Raises SpecError for unknown source names, SourceError if there are no questions or no images at all.
    """
    folders: dict[str, list[Path]] = {"pope": [], "images": []}
    for name, place in sources:
        if name not in folders:
            raise SpecError(f"pope has no source {name!r}; {did_you_mean(name, folders)}")
        folders[name].append(Path(place).expanduser())
    if not folders["pope"]:
        raise SpecError(f"give --source pope=FOLDER: {LAYOUT}.")
    places = [folder / name for folder in (*folders["images"], *folders["pope"]) for name in _FOLDERS]
    skipped: Counter[str] = Counter()
    per_setting: Counter[str] = Counter()
    with BuildWriter(out) as writer:
        images = _Images(places, writer)
        seen: set[str] = set()
        for folder in folders["pope"]:
            for question in read_questions(folder):
                row = question if isinstance(question, SkippedRow) else _row(question, seen, images)
                if isinstance(row, SkippedRow):
                    writer.add_skipped(row.source, row.row, row.reason)
                    skipped[row.reason] += 1
                    continue
                seen.add(row["id"])
                per_setting[row["setting"]] += 1
                writer.add_row(row)
        if not seen:
            reasons = "; ".join(f"{format_times(n)}: {reason}" for reason, n in skipped.most_common(3))
            raise SourceError(f"no question of POPE can be used ({reasons}); expected {LAYOUT}.")
        manifest = {
            "benchmark": "pope",
            "seed": options.seed,
            "settings": {setting: per_setting[setting] for setting in SETTINGS},
            "skipped": dict(sorted(skipped.items())),
        }
        return writer.finish(manifest, replace=options.replace)


def read_questions(folder: Path) -> Iterator[PopeQuestion | SkippedRow]:
    """Yield the rows of the three files in ``folder``, setting by setting. Raises SourceError if none of the files exists."""
    files = [(setting, file) for setting in SETTINGS if (file := folder / f"coco_pope_{setting}.json").is_file()]
    if not files:
        raise SourceError(f"{folder} has no questions of POPE; expected {LAYOUT}.")
    for setting, file in files:
        for number, fields in read_json_lines(file):
            yield _question(setting, f"{file.name}:{number}", fields)


def _question(setting: str, row: str, fields: Any) -> PopeQuestion | SkippedRow:
    """Return the question in a line's JSON, or the reason why it is unusable."""
    if not isinstance(fields, dict):
        return SkippedRow(_POPE, row, NOT_A_ROW)
    name, text, answer = (fields.get(key) for key in ("image", "text", "label"))
    if not (isinstance(name, str) and isinstance(text, str) and isinstance(answer, str)):
        return SkippedRow(_POPE, row, NOT_A_ROW)
    text, answer = text.strip(), answer.strip().casefold()
    if answer not in ("yes", "no") or not 0 < len(text) <= _LONGEST or not text.isprintable():
        return SkippedRow(_POPE, row, NOT_A_ROW)
    match = _NAME.fullmatch(name)
    return PopeQuestion(row, setting, int(match[1]), name, text, answer) if match else SkippedRow(_POPE, row, NO_ID)


class _Images:
    """Images of the questions: each is looked up once, under its name of 2014 or of 2017, and added to the build."""

    def __init__(self, places: Sequence[Path], writer: BuildWriter) -> None:
        self._places = places
        self._writer = writer
        self._images: dict[int, tuple[str, str] | str] = {}

    def of(self, question: PopeQuestion) -> tuple[str, str] | str:
        """Return the image's sha256 and suffix, or the reason why it cannot be used."""
        if question.image_id not in self._images:
            self._images[question.image_id] = self._load(question)
        return self._images[question.image_id]

    def _load(self, question: PopeQuestion) -> tuple[str, str] | str:
        # The images of 2014 and 2017 are the same, under different names.
        names = dict.fromkeys((question.image_name, f"{question.image_id:012d}.jpg"))
        file = next((place / name for place in self._places for name in names if (place / name).is_file()), None)
        if file is None:
            return f"the image {MISSING}"
        try:
            data = read_image(file)
            load_image(data)
        except MediaError as error:
            return f"the image {error.reason}"
        media = self._writer.add_media(data, image_suffix(data) or "")
        return media.sha256, media.suffix


def _row(question: PopeQuestion, seen: Collection[str], images: _Images) -> dict[str, str] | SkippedRow:
    """Return the build's row of a question, or the reason for skipping it."""
    if question.id in seen:
        return SkippedRow(_POPE, question.row, REPEATED)
    image = images.of(question)
    if isinstance(image, str):
        return SkippedRow(_POPE, question.row, image)
    return {
        "id": question.id,
        "setting": question.setting,
        "image_id": str(question.image_id),
        "image": image[0],
        "suffix": image[1],
        "question": question.text,
        "answer": question.answer,
    }
