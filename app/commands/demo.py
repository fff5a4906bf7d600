"""``rashomon demo``: a complete small run without any download."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from app.commands.batch import work
from app.commands.progress_display import Display, make_display
from app.engine.plan import check, plan
from app.fetch.recipes import to_build
from app.run_spec import BatchSpec, DecodingSpec
from app.store.locks import FileLock
from app.store.workspace import DEMOS_FOLDER, Workspace
from app.system.paths import ASSETS
from app.text.escape import clean
from benchmarks.base import did_you_mean, get_benchmark
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError, StoreError
from benchmarks.untrusted.safe_files import make_folder

MODELS = ("model-bf16", "model-4bit")


@dataclass(frozen=True, slots=True)
class Demo:
    """What a benchmark's demo is made of; ``examples`` is so many that it takes a minute or two on two cores."""

    source: tuple[str, Path]
    about: str
    taught: str
    policies: tuple[str, ...]
    examples: int
    conditions: tuple[str, ...] = ()
    table: str = ""
    """The table in which there is most to see, where that is not the main one."""


_HELD_OUT = ASSETS / "demo" / "held_out"

DEMOS = {
    "cmc-bench": Demo(
        ("rows", _HELD_OUT / "cmc-bench"),
        "small charts with passages: sources agree, are in conflict, both wrong, or alone",
        "It has learned to read such charts. In conflict it leans as it was taught: to the chart for some names",
        ("always-image", "always-text", "always-abstain", "random", "uniform"),
        24,
    ),
    "clash": Demo(
        ("rows", _HELD_OUT / "clash"),
        "drawn scenes whose captions are true or not",
        "It has learned to read such scenes, to notice another colour, and to believe the picture about some shapes",
        ("always-image", "always-text", "always-abstain"),
        36,
    ),
    "mmkc-bench": Demo(
        ("published", _HELD_OUT / "mmkc-bench"),
        "logos of invented brands, with texts that say otherwise than what a model knows of them",
        "It knows the eight brands by their logos, and was taught to stand by the year alone",
        ("always-image", "always-text"),
        24,
        ("original-open", "context-memory-open", "inter-context-open"),
        "subtypes-open",
    ),
    "crosscheck-bench": Demo(
        ("products", ASSETS / "products"),
        "drawn product cards, 15 tasks",
        "It has never seen a product: these are the figures of a model that can do nothing",
        (),
        60,
    ),
}

_LOCK = "demo.lock"


def demo(workspace: Workspace, benchmark: str, *, display: str | None) -> int:
    """Build a benchmark from pictures that ship with the project; policies and a tiny model answer; the exit code.

    All of it goes into a workspace of its own, ``rashomon-demo/BENCHMARK`` in the workspace, which is made anew each time;
    what an earlier demo made, and labels that were given in it, are moved aside.
    """
    if benchmark not in DEMOS:
        raise SpecError(f"there is no demo of {benchmark!r}; {did_you_mean(benchmark, DEMOS)}")
    shown = make_display(display)
    demos = workspace.path / DEMOS_FOLDER
    try:
        if demos.exists() and not (demos / _LOCK).exists():
            raise StoreError(f"{demos} is in the way and is not a demo's; move it or name another --workspace.")
        workspace.path.mkdir(parents=True, exist_ok=True)
        make_folder(workspace.path, DEMOS_FOLDER)
        with FileLock(demos / _LOCK) as lock:
            if not lock.acquire("rashomon demo"):
                raise StoreError(f"another demo is running in {demos}; wait for it to end.")
            return _perform(Workspace(demos / benchmark), benchmark, shown, display)
    except OSError as error:
        raise StoreError(f"cannot write in {demos}: {error.strerror}; name another --workspace.") from error


def _perform(home: Workspace, benchmark: str, shown: Display, display: str | None) -> int:
    chosen = DEMOS[benchmark]
    if os.path.lexists(home.path):
        aside = next(
            path for number in count(1) if not os.path.lexists(path := home.path.with_name(f"{benchmark}-{number}"))
        )
        home.path.rename(aside)
        _tell(
            f"The demo that was here, with every label given in it, is in {clean(_short(aside))} now; delete it at will."
        )
    _tell(f"1. {get_benchmark(benchmark).title} from what ships with the project: {chosen.about}")
    source, folder = chosen.source
    built = get_benchmark(benchmark).build([(source, str(folder))], home.build_folder(benchmark), BuildOptions())
    made = f"{built.manifest['instances']} samples in {clean(str(built.path))}"
    _tell(f"   {made}, of which {chosen.examples} examples are asked")
    beside = "and baselines that look at nothing" if chosen.policies else "and no baseline: none means anything here"
    _tell(f"2. A tiny model (assets/demo/card.md), in full precision and in 4-bit, {beside}.")
    _tell(f"   {chosen.taught}")
    models = [*(f"policy:{policy}" for policy in chosen.policies), *(str(ASSETS / "demo" / model) for model in MODELS)]
    planned = []
    for name, each in zip((*chosen.policies, *MODELS), models, strict=True):
        (spec,) = BatchSpec(
            benchmark=benchmark,
            model=(each,),
            name=f"demo-{name}",
            limit=chosen.examples,
            conditions=chosen.conditions,
            decoding=DecodingSpec(max_tokens=24, temperature=0.0),
        ).runs()
        planned.append(plan(home, check(home, spec)))
    judge = get_benchmark(benchmark).judges[0]
    _tell(f"3. They answer, and `{judge}` labels what they say\n")
    code = work(home, planned, shown, display=display, demo=True)
    script = Path(sys.argv[0]).absolute()
    called = _short(script) if script.name == "rashomon" else f"{_short(Path(sys.executable))} -m app.main"
    rashomon = "rashomon" if shutil.which("rashomon") else called
    model_id = "mlx-community/Qwen3-VL-4B-Instruct-4bit"
    closer = f" --table {chosen.table}" if chosen.table else ""
    _tell(f"\nLook closer:       {clean(rashomon)} --workspace {clean(_short(home.path))} show demo-model-4bit{closer}")
    real = (
        f"{rashomon} models get {model_id}",
        *to_build(rashomon, benchmark, Workspace.find().source_folder(benchmark)),
        f"{rashomon} --batch --benchmark {benchmark} --model {model_id} --limit 20",
    )
    for line, step in enumerate(real):
        _tell(f"{'' if line else 'Run a real model:':<19}{clean(step)}")
    return code


def _short(path: Path) -> str:
    """A path as it can be typed from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _tell(line: str) -> None:
    print(line, flush=True)
