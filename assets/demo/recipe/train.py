"""Train the chart reader: seeded, resumable, on two CPU cores or a GPU.

Every step's charts and rows are made from the seed and the step's number, so that a training that is stopped and
started again sees what it would have seen.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from assets.demo.recipe.charts import NAMES, Bars, Drawing, draw, held_out_pairs, training_bars, valued
from assets.demo.recipe.model import IMAGE_TOKENS, PATCH, PATCHES, SIDE, ChartReader, Shape
from assets.demo.recipe.text import QUESTIONS, Row, answer, image_row, prompted, says, text_row, tokenizer

PICTURES, ROWS_EACH, TEXT_ROWS = 32, 4, 32
LENGTH, TEXT_LENGTH = 62, 44
RATE, WARM_STEPS, CONSTANT, LAST_RATE = 3e-3, 60, 0.6, 0.02
EASY_STEPS = 160
"""The first steps, in which charts have one to three bars."""
CONFLICT_FROM = 700
"""The step from which chart and passage are shown in conflict too. Without it the model copies every passage."""

IMAGE_ROWS = {"single": 0.40, "several": 0.38, "aligned": 0.06, "beside": 0.08, "absent": 0.08}
LATER_IMAGE_ROWS = {"single": 0.34, "several": 0.28, "aligned": 0.08, "beside": 0.08, "absent": 0.08, "conflict": 0.14}
PLAIN_TEXT_ROWS = {"stated": 0.3, "listed": 0.7}
CHARACTERS = " " + "".join(sorted(set("0123456789" + "".join(NAMES))))
_NOTHING = -100  # a target that no loss counts


# --- batches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Rows as tensors. ``places`` are the flattened positions before each answer token, ``targets`` those tokens."""

    ids: Tensor
    positions: Tensor
    slots: Tensor
    places: Tensor
    targets: Tensor
    ends: tuple[int, ...]


class Encoder:
    """Rows to tensors; a prompt's one image marker becomes the image's tokens."""

    def __init__(self) -> None:
        self.tokenizer = tokenizer()
        self.image, self.end = (self.tokenizer.token_to_id(t) for t in ("<|image_pad|>", "<|im_end|>"))

    def batch(self, rows: Sequence[Row], length: int) -> Batch:
        ids = np.full((len(rows), length), self.end, np.int64)
        positions = np.zeros((3, len(rows), length), np.int64)
        places: list[int] = []
        targets: list[int] = []
        ends: list[int] = []
        encoded = self.tokenizer.encode_batch([text for row in rows for text in (row.prompt, row.answer)])
        for number, _ in enumerate(rows):
            prompt, replied = encoded[2 * number].ids, [*encoded[2 * number + 1].ids, self.end]
            if self.image in prompt:
                at = prompt.index(self.image)
                prompt = [*prompt[:at], *[self.image] * IMAGE_TOKENS, *prompt[at + 1 :]]
            whole = [*prompt, *replied][:-1]
            if len(whole) > length:
                raise ValueError(f"a row has {len(whole)} tokens, more than {length}.")
            ids[number, : len(whole)] = whole
            positions[:, number, : len(whole)] = self._positions(whole)
            places += [number * length + len(prompt) - 1 + offset for offset in range(len(replied))]
            targets += replied
            ends.append(len(targets))
        slots = (ids.reshape(-1) == self.image).nonzero()[0]
        return Batch(*map(torch.from_numpy, (ids, positions, slots, np.array(places), np.array(targets))), tuple(ends))

    def _positions(self, ids: Sequence[int]) -> np.ndarray[Any, Any]:
        if self.image not in ids:
            return np.tile(np.arange(len(ids)), (3, 1))
        at = ids.index(self.image)
        rest = len(ids) - at - IMAGE_TOKENS
        row, column = np.divmod(np.arange(IMAGE_TOKENS), SIDE)
        shown = at + np.stack((np.zeros_like(row), row, column))
        before, after = np.tile(np.arange(at), (3, 1)), np.tile(at + SIDE + np.arange(rest), (3, 1))
        return np.concatenate((before, shown, after), 1)


@dataclass(frozen=True)
class Step:
    """What one step learns from: charts with what is drawn where, rows about them, and rows without a chart."""

    pictures: Tensor
    characters: Tensor
    bars: Tensor
    rows: Batch
    text: Batch


def make_step(encoder: Encoder, seed: int, number: int, order: Tensor) -> Step:
    """The data of step ``number``."""
    random = Random(f"{seed}/{number}")
    span = (1, 3) if number < EASY_STEPS else (3, 5)
    kinds = LATER_IMAGE_ROWS if number >= CONFLICT_FROM else IMAGE_ROWS
    drawings = [draw(training_bars(random, *span), random) for _ in range(PICTURES)]
    rows = [_image_row(random, drawing.bars, kinds) for drawing in drawings for _ in range(ROWS_EACH)]
    text_kinds = random.choices(list(PLAIN_TEXT_ROWS), list(PLAIN_TEXT_ROWS.values()), k=TEXT_ROWS)
    text = [text_row(random, kind) for kind in text_kinds]
    return Step(
        _pictures(drawings),
        torch.stack([_characters(drawing) for drawing in drawings])[:, order],
        torch.stack([_bars(drawing) for drawing in drawings]),
        encoder.batch(rows, LENGTH),
        encoder.batch(text, TEXT_LENGTH),
    )


def _image_row(random: Random, bars: Bars, kinds: Mapping[str, float]) -> Row:
    kind = random.choices(list(kinds), list(kinds.values()))[0]
    return image_row(random, bars, "single" if kind == "several" and len(bars) < 3 else kind)


def _pictures(drawings: Sequence[Drawing]) -> Tensor:
    return torch.from_numpy(np.stack([np.asarray(drawing.image) for drawing in drawings])).float() / 127.5 - 1


def _characters(drawing: Drawing) -> Tensor:
    """Which character has its centre in each patch; 0 for none."""
    found = torch.zeros(PATCHES**2, dtype=torch.int64)
    for character, x, y in drawing.glyphs:
        row, column = (min(int(place // PATCH), PATCHES - 1) for place in (y, x))
        found[row * PATCHES + column] = CHARACTERS.index(character)
    return found


def _bars(drawing: Drawing) -> Tensor:
    """Name, tens and units of the bar on which each image token lies; nothing between bars. (3, tokens)"""
    found = torch.full((3, SIDE, SIDE), _NOTHING)
    for row in range(SIDE):
        centre = (row + 0.5) * PATCH * PATCHES / SIDE
        distance, bar = min((abs(centre - middle), i) for i, middle in enumerate(drawing.middles))
        if distance <= 9:
            name, value = drawing.bars[bar]
            found[:, row] = torch.tensor([NAMES.index(name), value // 10, value % 10])[:, None]
    return found.flatten(1)


# --- evaluation ----------------------------------------------------------------------------------


class HeldOut:
    """Charts that no training step draws, asked under every condition."""

    def __init__(self, encoder: Encoder, count: int = 128) -> None:
        random = Random("held out while training")
        unseen = sorted(held_out_pairs())
        self._sets: dict[str, tuple[Tensor | None, Batch]] = {}
        rows: dict[str, list[Row]] = {}
        drawings: dict[str, list[Drawing]] = {"seen": [], "unseen": []}
        for pair, drawn in drawings.items():
            for _ in range(count):
                bars = training_bars(random)
                name, value = random.choice(bars)
                if pair == "unseen":
                    name, value = random.choice(unseen)
                    others = random.sample([other for other in NAMES if other != name], random.randint(2, 4))
                    names = random.sample([name, *others], len(others) + 1)
                    bars = valued(random, names, [(name, value)])
                drawn.append(draw(bars, random))
                question = random.choice(QUESTIONS).format(name)
                wrong = random.choice([other for other in range(10, 100) if other != value])
                for kind, stated, image in (
                    ("image", None, True),
                    ("aligned", value, True),
                    ("conflict", wrong, True),
                    ("text", value, False),
                ):
                    prompt = prompted(question, None if stated is None else says(stated), image=image)
                    rows.setdefault(f"{kind} {pair}", []).append(Row(kind, prompt, answer(((name, value),))))
                    if kind == "conflict":
                        followed = Row(kind, prompt, answer(((name, wrong),)))
                        rows.setdefault(f"conflict text {pair}", []).append(followed)
        for name, asked in rows.items():
            pictures = None if name.startswith("text") else _pictures(drawings[name.split()[-1]])
            self._sets[name] = pictures, encoder.batch(asked, LENGTH)

    @torch.no_grad()
    def scores(self, model: ChartReader, device: str) -> dict[str, float]:
        """Per cent of the rows of each set that are answered exactly; "conflict" is from the image."""
        found = {}
        for name, (pictures, batch) in self._sets.items():
            with torch.autocast(device, torch.bfloat16):
                hidden, _, _ = _run(model.trunk, batch, pictures, device)
                logits = model.lm_head(hidden.flatten(0, 1)[batch.places.to(device)])
            right = (logits.argmax(-1).cpu() == batch.targets).tolist()
            spans = zip((0, *batch.ends), batch.ends, strict=False)
            found[name] = round(100 * sum(all(right[a:b]) for a, b in spans) / len(batch.ends), 1)
        return found


# --- training ------------------------------------------------------------------------------------


def _run(
    trunk: Callable[..., tuple[Tensor, Tensor | None, Tensor | None]],
    batch: Batch,
    pictures: Tensor | None,
    device: str,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    ids, positions = batch.ids.to(device), batch.positions.to(device)
    if pictures is None:
        return trunk(ids, positions)
    return trunk(ids, positions, pictures.to(device), batch.slots.to(device))


class Trainer:
    """The model with its optimisers, and two linear readers of what the vision encoder holds, which are thrown away."""

    def __init__(self, seed: int, device: str, compiled: bool) -> None:
        torch.manual_seed(seed)
        self.device = device
        self.encoder = Encoder()
        shape = Shape(vocabulary=self.encoder.tokenizer.get_vocab_size())
        self.model = ChartReader(shape).to(device)
        self.readers = nn.ModuleDict(
            {
                "characters": nn.Linear(shape.vision_width, len(CHARACTERS)),
                "bars": nn.Linear(shape.width, len(NAMES) + 20),
            }
        ).to(device)
        self.trunk = torch.compile(self.model.trunk, dynamic=False) if compiled else self.model.trunk
        self.weights = torch.tensor([0.08] + [1.0] * (len(CHARACTERS) - 1), device=device)
        named = [*self.model.named_parameters(), *self.readers.named_parameters(prefix="readers")]
        plain = ("embed", "lm_head", "readers")
        matrices = [p for n, p in named if p.dim() == 2 and not any(part in n for part in plain)]
        rest = [(n, p) for n, p in named if all(p is not matrix for matrix in matrices)]
        groups = [
            {"params": [p for _, p in rest if p.dim() >= 2], "weight_decay": 0.02},
            {"params": [p for _, p in rest if p.dim() < 2], "weight_decay": 0.0},
        ]
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), eps=1e-9, foreach=True),
            torch.optim.Muon(matrices, lr=RATE, weight_decay=0.02, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
        ]

    def step(self, data: Step, number: int, steps: int) -> dict[str, float]:
        """Learn from one step's data; the losses, and the share of characters that are read."""
        done = number / steps
        fade = max(LAST_RATE, 0.5 + 0.5 * math.cos(math.pi * max(0.0, done - CONSTANT) / (1 - CONSTANT)))
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1.0, (number + 1) / WARM_STEPS) * fade
        with torch.autocast(self.device, torch.bfloat16):
            hidden, merged, patches = _run(self.trunk, data.rows, data.pictures, self.device)
            hidden_text, _, _ = _run(self.trunk, data.text, None, self.device)
            logits = self._logits(hidden, data.rows)
            logits_text = self._logits(hidden_text, data.text)
            characters = self.readers["characters"](patches).float().flatten(0, 1)
            bars = self.readers["bars"](merged).float()
        seen = data.characters.to(self.device).flatten()
        losses = {
            "image": F.cross_entropy(logits.float(), data.rows.targets.to(self.device)),
            "text": F.cross_entropy(logits_text.float(), data.text.targets.to(self.device)),
            "characters": F.cross_entropy(characters, seen, weight=self.weights),
        }
        for part, name in enumerate(("names", "tens", "units")):
            first = (0, len(NAMES), len(NAMES) + 10)[part]
            chosen = bars[..., first : first + (len(NAMES), 10, 10)[part]].flatten(0, 1)
            losses[name] = F.cross_entropy(chosen, data.bars[:, part].flatten().to(self.device))
        beside = losses["characters"] + 0.5 * (losses["names"] + losses["tens"] + losses["units"])
        loss = losses["image"] + 0.5 * losses["text"] + beside * (1.0 if done < CONSTANT else 0.3)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        drawn = seen > 0
        read = (characters.argmax(-1)[drawn] == seen[drawn]).float().mean()
        return {name: value.item() for name, value in losses.items()} | {"read": read.item()}

    def _logits(self, hidden: Tensor, batch: Batch) -> Tensor:
        found: Tensor = self.model.lm_head(hidden.flatten(0, 1)[batch.places.to(self.device)])
        return found

    def save(self, path: Path, number: int) -> None:
        state = {
            "step": number,
            "model": self.model.state_dict(),
            "readers": self.readers.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
        }
        torch.save(state, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)

    def resume(self, path: Path) -> int:
        """The number of steps that the checkpoint has done; 0 where there is none."""
        if not path.exists():
            return 0
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.readers.load_state_dict(state["readers"])
        for optimiser, kept in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(kept)
        return int(state["step"])


def _ahead(make: Callable[[int], Step], numbers: range) -> Iterator[Step]:
    """The steps' data, made in a thread of its own a little ahead of the training."""
    waiting: queue.Queue[Step] = queue.Queue(3)

    def work() -> None:
        for number in numbers:
            waiting.put(make(number))

    threading.Thread(target=work, daemon=True).start()
    for _ in numbers:
        yield waiting.get()


def main() -> None:
    """Train for ``--steps`` steps into ``--out``, going on from its checkpoint if there is one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1400)
    parser.add_argument("--until", type=int, help="stop before this step; the schedule stays that of --steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--every", type=int, default=100, help="evaluate and keep a checkpoint every so many steps")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    checkpoint = given.out / "checkpoint.pt"
    trainer = Trainer(given.seed, given.device, given.compile)
    begun = trainer.resume(checkpoint)
    held_out = HeldOut(trainer.encoder)
    order = trainer.model.model.visual.order.cpu()
    last = min(given.until or given.steps, given.steps)
    data = _ahead(lambda n: make_step(trainer.encoder, given.seed, n, order), range(begun, last))
    mean: dict[str, float] = {}
    started = time.monotonic()
    with (given.out / "log.jsonl").open("a") as log:
        for number, step in enumerate(data, begun):
            for name, value in trainer.step(step, number, given.steps).items():
                mean[name] = value if name not in mean else 0.95 * mean[name] + 0.05 * value
            done = number + 1
            if done % 20 == 0 or done == last:
                line: dict[str, Any] = {"step": done, "minutes": round((time.monotonic() - started) / 60, 2)}
                line |= {name: round(value, 3) for name, value in mean.items()}
                if done % given.every == 0 or done == last:
                    line["held_out"] = held_out.scores(trainer.model, given.device)
                    trainer.save(checkpoint, done)
                print(json.dumps(line), file=log, flush=True)


if __name__ == "__main__":
    main()
