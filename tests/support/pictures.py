"""The README's pictures of the demo: ``python -m tests.support.pictures WORKSPACE``, the one that ``rashomon demo`` made.

``make pictures`` draws these and those of the interface (:mod:`tests.tui.pictures`).
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from rich.console import Console

from app.commands.system.demo_command import DEMOS, MODELS, demo_scorecard
from app.report.samples.sample_rows import prompt_text
from app.report.tables.table_inputs import read_inputs
from app.report.tables.table_rendering import print_table
from app.store.run_references import run_folder
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.vocabulary import Media, Record

PICTURES = Path(__file__).resolve().parents[2] / "assets" / "pictures"


def main(workspace: Workspace) -> None:
    """Write the pictures."""
    runs = [run_folder(workspace, f"demo-{name}") for name in (*DEMOS["cmc-bench"].policies, *MODELS)]
    console = Console(record=True, width=110, file=io.StringIO())
    table, sentence = demo_scorecard(read_inputs(runs))
    print_table(table, console)
    console.print(sentence, highlight=False)
    console.save_svg(str(PICTURES / "demo.svg"), title="rashomon demo")
    with RunStore.read(runs[-1]) as store:
        records = [record for record in store.records() if record.instance.condition == "image-correct"]
    both = [next(r for r in records if r.verdicts["match@4"].label == label) for label in ("IMAGE", "TEXT")]
    sample_picture(both, Build.open(workspace.build_folder("cmc-bench"))).save(PICTURES / "sample.png", optimize=True)


def sample_picture(records: Sequence[Record], build: Build) -> Image.Image:
    """Each record's chart, three times its size, with its prompt, its answer and its label beside it."""
    row, width = 300, 900
    picture = Image.new("RGB", (width, row * len(records)), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(15)
    for number, record in enumerate(records):
        (chart,) = (part for part in record.instance.parts if isinstance(part, Media))
        with Image.open(build.media_path(chart)) as opened:
            picture.paste(opened.convert("RGB").resize((276, 276), Image.Resampling.NEAREST), (12, 12 + row * number))
        assert record.answer is not None
        prompt = prompt_text(record).replace(f"[IMAGE {chart.sha256}]", "[the chart]")
        lines = [line for part in prompt.splitlines() for line in textwrap.wrap(part, 72) or [""]]
        lines += ["", f"Answer: {record.answer.text}", f"Label by match: {record.verdicts['match@4'].label}"]
        draw.multiline_text((304, 12 + row * number), "\n".join(lines), fill="black", font=font, spacing=5)
    return picture


if __name__ == "__main__":
    main(Workspace(Path(sys.argv[1]).absolute()))
