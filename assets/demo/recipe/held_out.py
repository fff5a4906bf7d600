"""The held-out set: charts with a question each, as rows that ``rashomon build cmc-bench --source rows=FOLDER`` takes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random

from assets.demo.recipe.charts import NAMES, Bars, draw, held_out_pairs, training_bars, valued

SEED = "held out"
SEEN_EACH, UNSEEN_EACH = 8, 4


def write(folder: Path) -> int:
    """Write ``rows.jsonl`` and its charts into ``folder``; how many rows.

    Every name is asked for in eight charts whose asked pair of name and value is one that training could show, and in
    four whose pair it never showed. The ``group`` of a row holds the name and which of the two it is: CMC-Bench
    takes wrong images and contradicting values from the same group, so that a wrong image has a bar of the asked name and
    all of an example's pairs are of one sort.
    """
    random = Random(SEED)
    (folder / "charts").mkdir(parents=True, exist_ok=True)
    rows = []
    for name in NAMES:
        for pair, bars in _asked(random, name):
            image = f"charts/{len(rows):03d}.png"
            draw(bars, random).image.save(folder / image, optimize=True)
            rows.append(
                {
                    "image": image,
                    "question": f"What is the value of {name}?",
                    "answer": str(dict(bars)[name]),
                    "group": f"{name}, {pair} pair",
                    "bars": dict(bars),
                }
            )
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return len(rows)


def _asked(random: Random, name: str) -> list[tuple[str, Bars]]:
    """Charts that show ``name``: each of the values asked for is another one."""
    unseen = random.sample(sorted(value for other, value in held_out_pairs() if other == name), UNSEEN_EACH)
    found: list[tuple[str, Bars]] = []
    taken: set[int] = set()
    while len(found) < SEEN_EACH:
        bars = training_bars(random)
        value = dict(bars).get(name)
        if value is not None and value not in taken:
            taken.add(value)
            found.append(("seen", bars))
    for value in unseen:
        others = random.sample([other for other in NAMES if other != name], random.randint(2, 4))
        names = random.sample([name, *others], len(others) + 1)
        found.append(("unseen", valued(random, names, [(name, value)])))
    return found


def main() -> None:
    """Draw the held-out charts and write their rows."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    print(write(parser.parse_args().folder))


if __name__ == "__main__":
    main()
