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
from app.display import Display, make_display
from app.engine.plan import check, plan
from app.locks import FileLock
from app.report.text import clean
from app.store.workspace import Workspace
from benchmarks.base import get_benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import StoreError

POLICIES = ("always-image", "always-text", "always-abstain", "random", "uniform")
_LOCK = "demo.lock"


def demo(workspace: Workspace, *, display: str | None) -> int:
    """Draw charts, build CMC-Bench from them, and run the policy baselines and a tiny random model; the exit code.

    All of it goes into a workspace of its own, ``rashomon-demo`` in the workspace, which every demo makes anew.
    """
    shown = make_display(display)
    home = Workspace(workspace.path / "rashomon-demo")
    try:
        if home.path.exists() and not (home.path / _LOCK).exists():
            raise StoreError(f"{home.path} is in the way and is not a demo's; move it or name another --workspace.")
        home.path.mkdir(parents=True, exist_ok=True)
        with FileLock(home.path / _LOCK) as lock:
            if not lock.acquire("rashomon demo"):
                raise StoreError(f"another demo is running in {home.path}; wait for it to end.")
            return _perform(home, shown, display)
    except OSError as error:
        raise StoreError(f"cannot write in {home.path}: {error.strerror}; name another --workspace.") from error


def _perform(home: Workspace, shown: Display, display: str | None) -> int:
    for entry in home.path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
    _tell("1. Charts and diagrams, drawn here")
    draw_sources(home.path / "sources")
    _tell("2. CMC-Bench from them: every example with its sources agreeing, in conflict, both wrong, and alone")
    built = get_benchmark("cmc-bench").build(
        [("", str(home.path / "sources"))], home.build_folder("cmc-bench"), BuildOptions()
    )
    _tell(f"   {built.manifest['instances']} instances in {clean(str(built.path))}")
    _tell("3. A tiny Qwen3-VL in 4-bit, built on the spot. Its weights are random, so its answers mean nothing")
    from mlx_backends.tiny import build_tiny_vlm

    texts = [row["question"] for row in built.rows()]
    with redirect_stderr(io.StringIO()):  # what the conversion says would mean nothing to a newcomer
        model = build_tiny_vlm(home.path / "tiny-random-vlm-4bit", texts, quantise=True)
    _tell("4. The policy baselines and the model answer; `match` labels what they say")
    names = [*POLICIES, "tiny-vlm"]
    models = [*(f"policy:{policy}" for policy in POLICIES), str(model)]
    planned = []
    for name, each in zip(names, models, strict=True):
        decoding = DecodingSpec(max_tokens=12)
        (spec,) = BatchSpec(benchmark="cmc-bench", model=(each,), name=f"demo-{name}", decoding=decoding).runs()
        planned.append(plan(home, check(home, spec)))
    code = work(home, planned, shown, display=display)
    script = Path(sys.argv[0]).absolute()
    called = _short(script) if script.name == "rashomon" else f"{_short(Path(sys.executable))} -m app.main"
    rashomon = "rashomon" if shutil.which("rashomon") else called
    model_id = "mlx-community/Qwen3-VL-4B-Instruct-4bit"
    _tell(f"\nLook closer:       {clean(rashomon)} --workspace {clean(_short(home.path))} show demo-tiny-vlm")
    _tell(f"Run a real model:  {clean(rashomon)} build cmc-bench --source chartqa=FOLDER --source mmmu=FOLDER")
    _tell(f"                   {clean(rashomon)} --batch --benchmark cmc-bench --model {model_id}")
    return code


def _short(path: Path) -> str:
    """A path as it can be typed from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _tell(line: str) -> None:
    print(line, flush=True)
