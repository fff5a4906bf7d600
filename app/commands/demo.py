"""``rashomon demo``: a complete small run without any download."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from app.commands.batch import work
from app.config import BatchSpec, DecodingSpec
from app.display import Display, make_display
from app.engine.plan import check, plan
from app.locks import FileLock
from app.report.tables import ASSETS
from app.report.text import clean
from app.store.workspace import Workspace
from benchmarks.base import get_benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import StoreError

POLICIES = ("always-image", "always-text", "always-abstain", "random", "uniform")
MODELS = ("model-bf16", "model-4bit")
EXAMPLES = 24
"""So many of the held-out charts, each in all conditions, that a demo takes a minute or two on two cores."""

_LOCK = "demo.lock"


def demo(workspace: Workspace, *, display: str | None) -> int:
    """Build CMC-Bench from charts that ship with the project; policies and a tiny model answer; the exit code.

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
    _tell(
        "1. CMC-Bench from small charts that ship with the project: sources agree, are in conflict, both wrong, or alone"
    )
    built = get_benchmark("cmc-bench").build(
        [("rows", str(ASSETS / "demo" / "held_out"))], home.build_folder("cmc-bench"), BuildOptions()
    )
    _tell(
        f"   {built.manifest['instances']} instances in {clean(str(built.path))}, of which {EXAMPLES} examples are asked"
    )
    _tell("2. A tiny model that has learned to read such charts (assets/demo/card.md), in full precision and in 4-bit,")
    _tell("   and baselines that look at nothing. In conflict it leans as it was taught: to the chart for some names")
    models = [*(f"policy:{policy}" for policy in POLICIES), *(str(ASSETS / "demo" / model) for model in MODELS)]
    planned = []
    for name, each in zip((*POLICIES, *MODELS), models, strict=True):
        decoding = DecodingSpec(max_tokens=24)
        (spec,) = BatchSpec(
            benchmark="cmc-bench", model=(each,), name=f"demo-{name}", limit=EXAMPLES, decoding=decoding
        ).runs()
        planned.append(plan(home, check(home, spec)))
    _tell("3. They answer, and `match` labels what they say\n")
    code = work(home, planned, shown, display=display)
    script = Path(sys.argv[0]).absolute()
    called = _short(script) if script.name == "rashomon" else f"{_short(Path(sys.executable))} -m app.main"
    rashomon = "rashomon" if shutil.which("rashomon") else called
    model_id = "mlx-community/Qwen3-VL-4B-Instruct-4bit"
    _tell(f"\nLook closer:       {clean(rashomon)} --workspace {clean(_short(home.path))} show demo-model-4bit")
    _tell(f"Run a real model:  {clean(rashomon)} build cmc-bench --source chartqa=FOLDER --source mmmu=FOLDER")
    _tell(f"                   {clean(rashomon)} --batch --benchmark cmc-bench --model {model_id}")
    return code


def _short(path: Path) -> str:
    """A path as it can be typed from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _tell(line: str) -> None:
    print(line, flush=True)
