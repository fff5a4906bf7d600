"""``rashomon demo``: a complete small run without any download."""

from __future__ import annotations

import io
import shutil
import sys
from contextlib import redirect_stderr
from pathlib import Path

from app.commands.batch import work
from app.config import BatchSpec, DecodingSpec
from app.demo_charts import draw_sources
from app.display import make_display
from app.engine.plan import plan
from app.report.text import clean
from app.store.workspace import Workspace
from benchmarks.base import get_benchmark
from benchmarks.build import BuildOptions

POLICIES = ("always-image", "always-text", "always-abstain", "random", "uniform")


def demo(workspace: Workspace, *, display: str | None) -> int:
    """Draw charts, build CMC-Bench from them, and run the policy baselines and a tiny random model; the exit code."""
    shown = make_display(display)
    workspace.make()
    folder = workspace.path / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    for old in workspace.runs_folder.glob("demo-*"):
        shutil.rmtree(old)
    _tell("1. Charts and diagrams, drawn here")
    draw_sources(folder / "sources")
    _tell("2. CMC-Bench from them: every example with its sources agreeing, in conflict, both wrong, and alone")
    benchmark = get_benchmark("cmc-bench")
    built = benchmark.build([("", str(folder / "sources"))], folder / "cmc-bench", BuildOptions())
    _tell(f"   {built.manifest['instances']} instances in {clean(str(built.path))}")
    _tell("3. A tiny Qwen3-VL in 4-bit, built on the spot. Its weights are random, so its answers mean nothing")
    from mlx_backends.tiny import build_tiny_vlm

    texts = [row["question"] for row in built.rows()]
    with redirect_stderr(io.StringIO()):  # what the conversion says would mean nothing to a newcomer
        model = build_tiny_vlm(folder / "tiny-random-vlm-4bit", texts, quantise=True)
    _tell("4. The policy baselines and the model answer; `match` labels what they say")
    models = [f"policy:{policy}" for policy in POLICIES] + [str(model)]
    planned = []
    for name, each in zip((*POLICIES, "tiny-vlm"), models, strict=True):
        spec = BatchSpec(
            benchmark="cmc-bench",
            model=(each,),
            data=str(built.path),
            name=f"demo-{name}",
            decoding=DecodingSpec(max_tokens=12),
        )
        planned.append(plan(workspace, spec.runs()[0]))
    code = work(workspace, planned, shown, display=display)
    rashomon = clean(_command())
    place = "" if workspace.path == Workspace.find().path else f" --workspace {clean(_short(workspace.path))}"
    _tell(f"\nLook closer:       {rashomon}{place} show demo-tiny-vlm")
    _tell(f"Run a real model:  {rashomon} build cmc-bench --source chartqa=FOLDER --source mmmu=FOLDER")
    _tell(
        f"                   {rashomon} --batch --benchmark cmc-bench --model mlx-community/Qwen3-VL-4B-Instruct-4bit"
    )
    return code


def _command() -> str:
    """How this command was called, as it can be typed again from here."""
    return "rashomon" if shutil.which("rashomon") else _short(Path(sys.argv[0]).absolute())


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _tell(line: str) -> None:
    print(line, flush=True)
