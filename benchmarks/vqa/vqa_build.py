"""The build of OK-VQA and GQA: published questions and their images in, one row per question out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.build import Build, BuildOptions, BuildWriter
from benchmarks.errors import MediaError, SourceError, SpecError, did_you_mean
from benchmarks.media import MISSING, image_suffix, load_image, read_image
from benchmarks.rows.files import SkippedRow
from benchmarks.rows.sources import top_reasons
from benchmarks.vocabulary import digest
from benchmarks.vqa.vqa_sources import ReadSource, VqaQuestion

REPEATED = "repeated: another question has its image, question and answers"

_FOLDERS = (".", "val2014", "images", "val2017", "train2017")


def build(name: str, read: ReadSource, sources: Sequence[tuple[str, str]], out: Path, options: BuildOptions) -> Build:
    """Build the questions whose images exist into ``out``; see ``Benchmark.build``. ``options.per_stratum`` is not used.

    Raises SpecError for unknown source names, SourceError if there are no questions or no images at all.
    """
    folders: dict[str, list[Path]] = {name: [], "images": []}
    for source, place in sources:
        if source and source not in folders:
            raise SpecError(f"{name} has no source {source!r}; {did_you_mean(source, folders)}")
        folders[source or name].append(Path(place).expanduser())
    if not folders[name]:
        raise SpecError(f"give --source {name}=FOLDER; see `rashomon benchmarks {name}`.")
    places = [folder / inner for folder in (*folders["images"], *folders[name]) for inner in _FOLDERS]
    types: Counter[str] = Counter()
    seen: set[str] = set()
    with BuildWriter(out) as writer:
        images: dict[str, tuple[str, str] | str] = {}
        for folder in folders[name]:
            for question in read(folder):
                row = (
                    question if isinstance(question, SkippedRow) else _row(name, question, seen, places, images, writer)
                )
                if isinstance(row, SkippedRow):
                    writer.add_skipped(row.source, row.row, row.reason)
                    continue
                seen.add(row["id"])
                types[row["type"]] += 1
                writer.add_row(row)
        if not seen:
            raise SourceError(f"no question of {name} can be used ({top_reasons(writer.skipped)}).")
        manifest = {
            "benchmark": name,
            "seed": options.seed,
            "types": dict(sorted(types.items())),
            "skipped": {source: dict(sorted(counts.items())) for source, counts in sorted(writer.skipped.items())},
        }
        return writer.finish(manifest, replace=options.replace)


def _row(
    name: str,
    question: VqaQuestion,
    seen: set[str],
    places: Sequence[Path],
    images: dict[str, tuple[str, str] | str],
    writer: BuildWriter,
) -> dict[str, Any] | SkippedRow:
    """Return the build's row of a question, or the reason for skipping it; each image is read once."""
    key = f"{name}-{digest([question.group, question.question, question.answers])[:16]}"
    if key in seen:
        return SkippedRow(name, question.row, REPEATED)
    if question.group not in images:
        images[question.group] = _image(question, places, writer)
    image = images[question.group]
    if isinstance(image, str):
        return SkippedRow(name, question.row, image)
    return {
        "id": key,
        "group": f"{name}-{question.group}",
        "image": image[0],
        "suffix": image[1],
        "question": question.question,
        "answers": list(question.answers),
        "type": question.type,
    }


def _image(question: VqaQuestion, places: Sequence[Path], writer: BuildWriter) -> tuple[str, str] | str:
    """Return the sha256 and suffix of a question's image, or the reason why it cannot be used."""
    data = question.image
    try:
        if data is None:
            file = next(
                (place / name for place in places for name in question.images if (place / name).is_file()), None
            )
            if file is None:
                return f"the image {MISSING}"
            data = read_image(file)
        load_image(data)
    except MediaError as error:
        return f"the image {error.reason}"
    media = writer.add_media(data, image_suffix(data) or "")
    return media.sha256, media.suffix
