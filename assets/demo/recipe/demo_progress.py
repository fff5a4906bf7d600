"""Progress of the training: accuracy on charts, scenes and logos that no step of the training draws."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor

from assets.demo.recipe.chart_rows import QUESTIONS, answer, prompted, says
from assets.demo.recipe.charts import NAMES, draw, held_out_pairs, training_bars, valued
from assets.demo.recipe.chat import Row
from assets.demo.recipe.demo_model import ChartReader
from assets.demo.recipe.demo_training_data import LENGTHS, Batch, Encoder, pictures
from assets.demo.recipe.logo_rows import SETTINGS, logo_row
from assets.demo.recipe.logos import BRANDS, draw_logo
from assets.demo.recipe.scene_rows import scene_row
from assets.demo.recipe.scenes import draw_scene, training_scene


class HeldOut:
    """Rows of every sort, ``count`` of each."""

    def __init__(self, encoder: Encoder, count: int = 96) -> None:
        self._encoder = encoder
        self._sets: dict[str, tuple[Tensor | None, Batch]] = {}
        random = Random("held out while training")
        for pair in ("seen", "unseen"):
            self._charts(random, pair, count)
        for kind in ("plain", "original", "conflicting"):
            scenes = [training_scene(random) for _ in range(count)]
            rows = [scene_row(random, scene, kind) for scene in scenes]
            self._add(f"scenes {kind}", rows, [[draw_scene(scene, random)] for scene in scenes], LENGTHS["scenes"])
        for number, setting in enumerate(SETTINGS):
            brands = random.choices(BRANDS, k=count // 2)
            rows = [logo_row(random, brand, setting) for brand in brands]
            drawn = [[draw_logo(brand, random) for _ in range(number + 1)] for brand in brands]
            self._add(f"logos {setting}", rows, drawn, LENGTHS["evidence"])

    def _charts(self, random: Random, pair: str, count: int) -> None:
        unseen = sorted(held_out_pairs())
        rows: dict[str, list[Row]] = {}
        drawn: list[list[Any]] = []
        for _ in range(count):
            bars = training_bars(random)
            name, value = random.choice(bars)
            if pair == "unseen":
                name, value = random.choice(unseen)
                others = random.sample([other for other in NAMES if other != name], random.randint(2, 4))
                names = random.sample([name, *others], len(others) + 1)
                bars = valued(random, names, [(name, value)])
            drawn.append([draw(bars, random)])
            question = random.choice(QUESTIONS).format(name)
            wrong = random.choice([other for other in range(10, 100) if other != value])
            for kind, stated, image, answered in (
                ("image", None, True, value),
                ("aligned", value, True, value),
                ("conflict image", wrong, True, value),
                ("conflict text", wrong, True, wrong),
                ("text", value, False, value),
            ):
                prompt = prompted(question, None if stated is None else says(stated), image=image)
                rows.setdefault(kind, []).append(Row(kind, prompt, answer(((name, answered),))))
        for kind, asked in rows.items():
            self._add(f"{kind} {pair}", asked, [] if kind == "text" else drawn, LENGTHS["charts"])

    def _add(self, name: str, rows: list[Row], drawn: list[list[Any]], length: int) -> None:
        flat = [drawing for group in drawn for drawing in group]
        counter = iter(range(len(flat)))
        numbers = [[next(counter) for _ in group] for group in drawn] or [[] for _ in rows]
        batch = self._encoder.batch(list(zip(rows, numbers, strict=True)), length)
        self._sets[name] = (pictures(flat) if flat else None), batch

    @torch.no_grad()
    def scores(self, model: ChartReader, device: str) -> dict[str, float]:
        """Return the percentage of each set's rows that are answered exactly, under teacher forcing."""
        scores = {}
        for name, (drawn, batch) in self._sets.items():
            with torch.autocast(device, torch.bfloat16):
                features = None if drawn is None else model.model.visual(drawn.to(device)).of(batch.shown.to(device))
                hidden = model.trunk(batch.ids.to(device), batch.positions.to(device), features, batch.slots.to(device))
                logits = model.lm_head(hidden.flatten(0, 1)[batch.places.to(device)])
            right = (logits.argmax(-1).cpu() == batch.targets).tolist()
            spans = zip((0, *batch.ends), batch.ends, strict=False)
            scores[name] = round(100 * sum(all(right[a:b]) for a, b in spans) / len(batch.ends), 1)
        return scores
