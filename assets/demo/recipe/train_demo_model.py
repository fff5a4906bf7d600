"""Training of the demo model: seeded, resumable, on two CPU cores or a GPU.

Every step's pictures and rows are made from the seed and the step's number, so that a training that is stopped and
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from assets.demo.recipe.demo_model import ChartReader, Shape, VisionFeatures
from assets.demo.recipe.demo_progress import HeldOut
from assets.demo.recipe.demo_training_data import CHARACTERS, FIELDS, NOTHING, Batch, Encoder, Step, make_step

RATE, WARM_STEPS, CONSTANT, LAST_RATE = 3e-3, 60, 0.6, 0.02
WEIGHTS = {"charts": 1.0, "texts": 0.5, "choices": 0.5, "scenes": 0.8, "evidence": 0.6}
"""The weight of each sort of rows in the loss."""


class Trainer:
    """The model with its optimisers, and linear readers of what the vision encoder holds, which are thrown away."""

    def __init__(self, seed: int, device: str) -> None:
        torch.manual_seed(seed)
        self.device = device
        self.encoder = Encoder()
        shape = Shape(vocabulary=self.encoder.tokenizer.get_vocab_size())
        self.model = ChartReader(shape).to(device)
        self.readers = nn.ModuleDict(
            {
                "characters": nn.Linear(shape.vision_width, len(CHARACTERS)),
                "merged": nn.Linear(shape.width, sum(FIELDS.values())),
                "deep": nn.Linear(shape.width, sum(FIELDS.values())),
            }
        ).to(device)
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
        """Learn from one step's data. Return the losses, and the share of characters that are read."""
        done = number / steps
        fade = max(LAST_RATE, 0.5 + 0.5 * math.cos(math.pi * max(0.0, done - CONSTANT) / (1 - CONSTANT)))
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1.0, (number + 1) / WARM_STEPS) * fade
        losses: dict[str, Tensor] = {}
        with torch.autocast(self.device, torch.bfloat16):
            seen = self.model.model.visual(data.pictures.to(self.device))
            shown = seen.weakened(data.kept.to(self.device))
            for sort, batch in data.batches.items():
                losses[sort] = self._loss(batch, shown)
            characters = self.readers["characters"](seen.patches).float().flatten(0, 1)
            readings = [
                (name, self.readers[name](of).float()) for name, of in (("merged", seen.merged), ("deep", seen.deep[0]))
            ]
        targets = data.characters.to(self.device).flatten()
        reader_loss = losses["characters"] = F.cross_entropy(characters, targets, weight=self.weights)
        for name, logits in readings:
            losses[name] = self._reading(logits, data.fields.to(self.device))
            reader_loss = reader_loss + 0.5 * losses[name]
        loss = sum(WEIGHTS[sort] * losses[sort] for sort in data.batches) + reader_loss * (
            1.0 if done < CONSTANT else 0.3
        )
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        is_right = characters.argmax(-1)[targets > 0] == targets[targets > 0]
        return {name: value.item() for name, value in losses.items()} | {"read": is_right.float().mean().item()}

    def _loss(self, batch: Batch, shown: VisionFeatures) -> Tensor:
        """Return the loss of the answers of a batch of rows."""
        ids, positions = batch.ids.to(self.device), batch.positions.to(self.device)
        if len(batch.shown):
            hidden = self.model.trunk(
                ids, positions, shown.of(batch.shown.to(self.device)), batch.slots.to(self.device)
            )
        else:
            hidden = self.model.trunk(ids, positions)
        logits = self.model.lm_head(hidden.flatten(0, 1)[batch.places.to(self.device)])
        return F.cross_entropy(logits.float(), batch.targets.to(self.device))

    def _reading(self, logits: Tensor, fields: Tensor) -> Tensor:
        """Return the loss of a reader of the image tokens, over all ``FIELDS`` that these pictures have."""
        losses = []
        for number, chosen in enumerate(logits.split(list(FIELDS.values()), -1)):
            targets = fields[:, number].flatten()
            if (targets != NOTHING).any():
                losses.append(F.cross_entropy(chosen.flatten(0, 1), targets))
        return torch.stack(losses).sum()

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
        """Load the checkpoint and return its number of steps; 0 without one."""
        if not path.exists():
            return 0
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.readers.load_state_dict(state["readers"])
        for optimiser, stored in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(stored)
        return int(state["step"])


def _ahead(make: Callable[[int], Step], numbers: range) -> Iterator[Step]:
    """Yield the steps' data, made in a thread of its own a little ahead of the training."""
    waiting: queue.Queue[Step] = queue.Queue(3)

    def work() -> None:
        for number in numbers:
            waiting.put(make(number))

    threading.Thread(target=work, daemon=True).start()
    for _ in numbers:
        yield waiting.get()


def main() -> None:
    """Train for ``--steps`` steps into ``--out``, resuming from its checkpoint if there is one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--until", type=int, help="stop before this step; the schedule stays that of --steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=int, default=100, help="evaluate and write a checkpoint every N steps")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.out / "checkpoint.pt"
    trainer = Trainer(arguments.seed, arguments.device)
    first_step = trainer.resume(checkpoint)
    held_out = HeldOut(trainer.encoder)
    order = trainer.model.model.visual.order.cpu()
    last = min(arguments.until or arguments.steps, arguments.steps)
    data = _ahead(lambda n: make_step(trainer.encoder, arguments.seed, n, order), range(first_step, last))
    mean: dict[str, float] = {}
    started = time.monotonic()
    with (arguments.out / "log.jsonl").open("a") as log:
        for number, step in enumerate(data, first_step):
            for name, value in trainer.step(step, number, arguments.steps).items():
                mean[name] = value if name not in mean else 0.95 * mean[name] + 0.05 * value
            done = number + 1
            if done % 20 == 0 or done == last:
                line: dict[str, Any] = {"step": done, "minutes": round((time.monotonic() - started) / 60, 2)}
                line |= {name: round(value, 3) for name, value in mean.items()}
                if done % arguments.every == 0 or done == last:
                    line["held_out"] = held_out.scores(trainer.model, arguments.device)
                    trainer.save(checkpoint, done)
                print(json.dumps(line), file=log, flush=True)


if __name__ == "__main__":
    main()
