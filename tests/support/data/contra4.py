"""Small Contra4 sources that the tests write, of the real media and captions beside the project where there are any."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.text_model import TextModel
from benchmarks.vocabulary import Generation, Request, Text
from tests.support.data.small import write_picture
from tests.support.media import cloud, sound, video

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared"
DATA = SHARED / "data" / "contra4"
COCO = SHARED / "data" / "clash" / "coco"

real_rows = pytest.mark.skipif(not DATA.is_dir(), reason="the published rows are not beside the project")


def example(source: str, name: str | int, caption: str) -> dict[str, Any]:
    return {"source": source, "id": name, "caption": caption, "url": "", "meta": {}}


def row(
    name: str, examples: Sequence[tuple[str, str, str | int, str]], answer: str = "A", **more: Any
) -> dict[str, Any]:
    """A row of the published layout; of each example the modality, the source, the id and the caption."""
    return {
        "id": name,
        "selection_type": "random",
        "q_type": f"mc_{len(examples)}",
        "examples": [example(*item[1:]) for item in examples],
        "modalities": [item[0] for item in examples],
        "question": "Which scene is louder?",
        "answer": answer,
        **more,
    }


PLAIN: list[tuple[str, str, str | int, str]] = [
    ("image", "coco_val", 139, "A room with a chair"),
    ("audio", "clotho", "bark.wav", "A dog barks twice"),
    ("pc", "pointllm", "abc", "A white teapot"),
    ("video", "msrvtt_test", "video7", "a man plays the drums"),
]


def write_source(folder: Path, rows: Sequence[Any], file: str = "test.json") -> Path:
    """A published folder with the media of ``PLAIN``, small but whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(json.dumps(rows))
    for name in ("coco_val", "clotho", "pointllm", "msrvtt_test"):
        (folder / name).mkdir(exist_ok=True)
    write_picture(folder / "coco_val" / "000000000139.jpg", 1, "JPEG")
    (folder / "clotho" / "bark.wav").write_bytes(sound())
    (folder / "pointllm" / "abc_8192.npz").write_bytes(cloud())
    (folder / "msrvtt_test" / "video7.mp4").write_bytes(video())
    return folder


def mixed_rows(folder: Path) -> Path:
    """Rows of the real audio, video and 3D files and COCO pictures, in every combination of modalities, beside their media."""
    labels = [json.loads(line) for line in (DATA / "audio" / "labels.jsonl").read_text("utf-8").splitlines()]

    captions = {item["image_id"]: item["caption"] for item in _annotations()}
    pictures = sorted((COCO / "val2017").glob("*.jpg"))
    material: dict[str, list[Any]] = {
        "audio": [
            ("audio", "audio", Path(item["file"]).name, f"The sound of {item['label'].lower()}") for item in labels
        ],
        "pc": [("pc", "pc", path.name, f"A 3D model of {path.stem}") for path in sorted((DATA / "pc").iterdir())],
        "image": [
            ("image", "coco_val", int(path.stem), captions[int(path.stem)])
            for path in pictures
            if int(path.stem) in captions
        ],
        "video": [
            ("video", "video", path.name, path.stem.replace("_", " ")) for path in sorted((DATA / "video").iterdir())
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("audio", "pc", "video"):
        (folder / name).symlink_to(DATA / name)
    (folder / "coco_val").symlink_to(COCO / "val2017")
    rows = []
    turns = {name: itertools.cycle(item) for name, item in material.items()}
    for size in (2, 3, 4):
        for group in itertools.combinations(material, size):
            for number in range(3):
                name = f"{'-'.join(group)}-{number}"
                negatives = ("random", "similarity")[number % 2]
                rows.append(
                    row(name, [next(turns[item]) for item in group], "ABCD"[number % size], selection_type=negatives)
                )
    (folder / "test.json").write_text(json.dumps(rows))
    return folder


def _annotations() -> Iterator[dict[str, Any]]:
    yield from json.loads((COCO / "annotations" / "captions_val2017.json").read_text())["annotations"]


def copy_rows(folder: Path, count: int) -> Path:
    """The first of the published test rows, without media."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = json.loads((DATA / "test.json").read_text("utf-8"))[:count]
    (folder / "test.json").write_text(json.dumps(rows))
    return folder


def prompt(request: Request) -> str:
    return "".join(part.text for message in request.messages for part in message.parts if isinstance(part, Text))


class Scripted(TextModel):
    """A model that is a function of the prompt; ``asked`` are the prompts that it really was asked."""

    def __init__(self, name: str, reply: Callable[[str], str | None]) -> None:
        self.name = name
        self.asked: list[str] = []
        self.requests: list[Request] = []
        self._reply = reply

    def generate(self, requests: Any) -> Iterator[Generation]:
        for request in reversed(list(requests)):
            self.asked.append(prompt(request))
            self.requests.append(request)
            text = self._reply(self.asked[-1])
            if text is None:
                yield Generation(request.id, "", "error", error="it broke")
            else:
                yield Generation(request.id, text, "stop")
