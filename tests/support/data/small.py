"""Small sources that the tests write: pictures drawn with Pillow, rows in every layout."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

REAL_DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "cmc_bench"


def picture(number: int, kind: str = "PNG") -> bytes:
    """A small picture that shows ``number``; another number is another picture."""
    image = Image.new("RGB", (48, 32), (number % 256, number // 256 % 256, 200))
    ImageDraw.Draw(image).text((4, 8), str(number), fill="black")
    data = io.BytesIO()
    image.save(data, kind)
    return data.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few hundred bytes that says it is ``width`` times ``height``."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def write_picture(path: Path, number: int, kind: str = "PNG") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture(number, kind))


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def original_chartqa(folder: Path, count: int = 12) -> Path:
    """ChartQA's own layout: half of the golds are years; training data lies beside it."""
    for split in ("val", "test", "train"):
        rows = []
        for i in range(count):
            number = {"val": 0, "test": 1000, "train": 2000}[split] + i
            write_picture(folder / split / "png" / f"{number}.png", number)
            label = str(1950 + 3 * i) if i % 2 else f"{number}.5"
            rows.append({"imgname": f"{number}.png", "query": f"{split} question {i}?", "label": label})
        half = count // 2
        (folder / split / f"{split}_human.json").write_text(json.dumps(rows[:half]), "utf-8")
        (folder / split / f"{split}_augmented.json").write_text(json.dumps(rows[half:]), "utf-8")
    return folder


def mmmu_rows(folder: Path, subjects: Iterable[str] = ("Physics", "History"), count: int = 4) -> Path:
    """MMMU rows in JSON lines: entity and granularity in turn, options as a list and as the text of one."""
    rows = []
    for s, subject in enumerate(subjects):
        for i in range(count):
            number = 100 * s + i
            write_picture(folder / "images" / f"{number}.png", 5000 + number)
            words = [f"entity {number} {letter}" for letter in "abcd"]
            options: Any = words if i % 2 == 0 else [str(number * 10 + k) for k in range(4)]
            rows.append(
                {
                    "id": f"validation_{subject}_{i}",
                    "question": f"<image 1> {subject} {i}?",
                    "options": str(options) if i % 3 else options,
                    "answer": "ABCD"[i % 4],
                    "image_1": f"images/{number}.png",
                    "subfield": "one" if i < 2 else "two",
                }
            )
    write_lines(folder / "rows.jsonl", rows)
    return folder


def own_rows(folder: Path, answers: Iterable[str], question: str = "own question?", **more: Any) -> Path:
    """Rows of a user's own, one picture each; {} in the question is the row's number, else all ask the same one."""
    rows = []
    for i, answer in enumerate(answers):
        write_picture(folder / f"{i}.png", 9000 + i)
        rows.append({"image": f"{i}.png", "question": question.format(i), "answer": answer, **more})
    write_lines(folder / "rows.jsonl", rows)
    return folder
