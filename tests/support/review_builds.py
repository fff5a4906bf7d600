"""Constructed builds for reviews: of each benchmark a small one, by scripted writers, from drawn pictures and short media."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.build import Build, BuildOptions
from benchmarks.clash import Clash
from benchmarks.cmc_bench import CMCBench
from benchmarks.contra4 import Contra4
from benchmarks.mmkc_bench import MMKCBench
from benchmarks.vocabulary import Generation, Request, Text
from tests.support.charts import draw_sources
from tests.support.contra4_writer import writes
from tests.support.data.contra4 import Scripted
from tests.support.data.small import write_lines, write_picture
from tests.support.media import cloud, sound, video
from tests.support.scripted_writer import Refused, reply
from tests.support.text_models import CachedModel

THINGS = ("dog", "cat", "bus", "bench", "kite")
COLOURS = ("red", "blue", "wooden", "three", "old")
PLACES = ("in a park", "near a lake", "by the sea", "on a road")


def clash_build(folder: Path, images: int = 240, per_stratum: int = 40) -> Build:
    """CLASH's construction from captions: objects and attributes, ``per_stratum`` each."""
    source, annotations = folder / "coco", []
    for number in range(images):
        write_picture(source / "val2017" / f"{number:012d}.jpg", number, "JPEG")
        colour, thing = COLOURS[number % 5], THINGS[number // 5 % 5]
        place = PLACES[number // 25 % 4]
        annotations += [
            {"id": 2 * number, "image_id": number, "caption": f"A {colour} {thing} {place}, with number {number}."},
            {"id": 2 * number + 1, "image_id": number, "caption": f"A man looks at {thing} {number} {place}."},
        ]
    files = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in range(images)]
    (source / "annotations").mkdir()
    (source / "annotations" / "captions_small.json").write_text(
        json.dumps({"images": files, "annotations": annotations})
    )
    options = BuildOptions(writer=CachedModel(_scripted), per_stratum=per_stratum)
    return Clash().build([("coco", str(source))], folder / "build", options)


def mmkc_build(folder: Path, count: int = 40) -> Build:
    """MMKC-Bench's construction: two edits of each of ``count`` true texts."""
    rows = []
    for number in range(count):
        paths = [f"image/{number}-{n}.png" for n in (1, 2, 3)]
        for place, path in enumerate(paths):
            write_picture(folder / "knowledge" / path, 3 * number + place)
        name = f"Tower {number}"
        text = f"This is the {name}. {name} is a landmark."
        query = "What is the building in the image?"
        rows.append(
            {
                "instance": name,
                "image_path": paths,
                "description": text,
                "answer": name,
                "kind": "ER",
                "open_query": query,
            }
        )
    write_lines(folder / "knowledge" / "knowledge.jsonl", rows)
    options = BuildOptions(writer=Scripted("scripted", _edits))
    return MMKCBench().build([("knowledge", str(folder / "knowledge"))], folder / "build", options)


def cmc_build(folder: Path) -> Build:
    """CMC-Bench's construction from drawn charts and diagrams, of which it reserves a fifth for manual checks."""
    draw_sources(folder / "charts")
    return CMCBench().build([("", str(folder / "charts"))], folder / "build", BuildOptions())


def contra4_build(folder: Path, per_stratum: int = 5) -> Build:
    """Contra4's construction from captioned media; every fifth file of each modality is damaged, so it cannot be played."""
    place, rows = folder / "captioned", []
    kinds = {
        "image": ("coco_val", "{:012d}.jpg", b""),
        "audio": ("clotho", "{}.wav", sound()),
        "pc": ("pointllm", "{}_8192.npz", cloud()),
        "video": ("msrvtt_test", "video{}.mp4", video()),
    }
    for modality, (source, file, data) in kinds.items():
        for number in range(1, 16):
            path = place / source / file.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            if modality == "image":
                write_picture(path, number, "JPEG")
            else:
                path.write_bytes(data)
            name = f"video{number}" if modality == "video" else f"{number}.wav" if modality == "audio" else str(number)
            words = " ".join(f"{word}{number}" for word in ("big", "loud", "slow", "old", "far")[: 1 + number % 5])
            rows.append({"source": source, "id": name, "modality": modality, "caption": f"A {words} {modality} scene"})
    write_lines(place / "captions.jsonl", rows)
    options = BuildOptions(
        writer=Scripted("writer", writes), checkers=(Scripted("agrees", writes),), per_stratum=per_stratum
    )
    build = Contra4().build([("captioned", str(place))], folder / "build", options)
    for number, path in enumerate(sorted((build.path / "media").iterdir())):
        if number % 5 == 0:
            path.write_bytes(b"damaged")
    return build


def _scripted(request: Request) -> Generation:
    part = request.messages[0].parts[0]
    assert isinstance(part, Text)
    try:
        text, finish = reply(part.text, request.decoding.temperature)
    except Refused as error:
        return Generation(request.id, "", "error", error=str(error))
    return Generation(request.id, text, "length" if finish == "length" else "stop")


def _edits(prompt: str) -> str:
    text = re.findall(r"^Input: (.*)$", prompt, re.MULTILINE)[-1]
    name = re.findall(r"This is the (.*?)\.", text)[-1]
    number = name.rpartition(" ")[2]
    return "".join(f"{n}. {text.replace(name, f'{other} {number}')}\n" for n, other in ((1, "Bridge"), (2, "Palace")))
