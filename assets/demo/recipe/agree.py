"""Whether PyTorch and MLX give the same tokens: greedy, fp32, on prompts about the held-out charts.

``torch`` answers with the training's own model and writes what it said; ``mlx`` answers with the exported fp32 folder
through mlx-vlm and compares. They need not run in one environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assets.demo.recipe.text import prompted, says
from benchmarks.base import Instance, Media
from benchmarks.cmc_bench.prompts import parts

HELD_OUT = Path(__file__).parent.parent / "held_out"
LONGEST = 16


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with or without its chart and a passage."""

    question: str
    picture: Path | None
    stated: str | None


def asked(count: int, held_out: Path = HELD_OUT) -> Iterator[Asked]:
    """``count`` questions: for each chart, the chart alone, both agreeing, both in conflict, and the passage alone."""
    lines = (held_out / "rows.jsonl").read_text("utf-8").splitlines()
    for number, line in enumerate(lines * (1 + count // len(lines))):
        if number == count:
            return
        row = json.loads(line)
        value = int(row["answer"])
        picture: Path | None = held_out / row["image"]
        form = (number + number // len(lines)) % 4
        stated = (None, says(value), says(109 - value), says(value))[form]
        yield Asked(row["question"], None if form == 3 else picture, stated)


def with_torch(checkpoint: Path, count: int) -> list[list[int]]:
    """The tokens of each answer by PyTorch, the end of the answer included."""
    import numpy as np
    import torch
    from PIL import Image

    from assets.demo.recipe.model import ChartReader, Shape
    from assets.demo.recipe.text import Row
    from assets.demo.recipe.train import LENGTH, Encoder

    torch.set_num_threads(1)  # one short row at a time is no work for two
    encoder = Encoder()
    model = ChartReader(Shape(vocabulary=encoder.tokenizer.get_vocab_size()))
    model.load_state_dict(torch.load(checkpoint, map_location="cpu")["model"])
    found = []
    for each in asked(count):
        row = Row("", prompted(each.question, each.stated, image=each.picture is not None), "")
        batch = encoder.batch([row], LENGTH)
        ids, last = batch.ids.clone(), int(batch.places[0])
        positions = batch.positions.clone()
        positions[:, 0, last + 1 :] = positions[:, :1, last, None][:, 0] + torch.arange(1, LENGTH - last)
        shown = None
        if each.picture is not None:
            shown = torch.from_numpy(np.array(Image.open(each.picture))[None]).float() / 127.5 - 1
        said: list[int] = []
        while len(said) < LONGEST and encoder.end not in said:
            with torch.no_grad():
                hidden, _, _ = model.trunk(ids, positions, shown, batch.slots if shown is not None else None)
                token = int(model.lm_head(hidden[0, last]).argmax())
            said.append(token)
            last += 1
            if last < LENGTH:
                ids[0, last] = token
        found.append(said)
    return found


def with_mlx(folder: Path, count: int) -> list[list[int]]:
    """The tokens of each answer by MLX."""
    from assets.demo.recipe.evaluate import answer
    from mlx_backends.registry import load_backend

    kept: dict[str, Path] = {}
    backend = load_backend(str(folder), lambda media: kept[media.sha256])
    found = []
    for number, each in enumerate(asked(count)):
        media = None
        if each.picture is not None:
            media = Media(hashlib.sha256(each.picture.read_bytes()).hexdigest(), ".png")
            kept[media.sha256] = each.picture
        shown = parts("paper", each.question, media, each.stated)
        found.append(list(answer(backend, Instance(str(number), "", "", each.question, shown)).tokens))
    backend.close()
    return found


def main() -> None:
    """Answer with PyTorch into a file, or with MLX and compare with that file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("library", choices=("torch", "mlx"))
    parser.add_argument("model", type=Path, help="the checkpoint, or the float32 folder")
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=200)
    given = parser.parse_args()
    if given.library == "torch":
        given.file.write_text(json.dumps(with_torch(given.model, given.count)), "utf-8")
        return
    theirs = json.loads(given.file.read_text("utf-8"))
    ours = with_mlx(given.model, given.count)
    same = sum(a == b for a, b in zip(ours, theirs, strict=True))
    print(f"{same} of {len(theirs)} answers are the same tokens")


if __name__ == "__main__":
    main()
