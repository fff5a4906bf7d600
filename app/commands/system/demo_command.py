"""``rashomon demo``: a small complete evaluation that needs no download."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.running.run_execution import ExecutionOptions, execute_runs
from app.commands.terminal.progress_display import make_display
from app.engine.batch_progress import Display
from app.engine.run_plan import check_spec, plan_run
from app.fetch.benchmark_downloads import build_commands
from app.run_spec import BatchSpec, DecodingSpec
from app.store.file_locks import FileLock
from app.store.workspace import DEMOS_FOLDER, Workspace
from app.system.project_paths import ASSETS
from app.text.text_escaping import clean
from benchmarks.answer_behaviour import names_sources
from benchmarks.build import BuildOptions
from benchmarks.errors import BusyError, NoAccessError, SpecError, StoreError, did_you_mean
from benchmarks.registry import get_benchmark
from benchmarks.untrusted.safe_files import make_folder
from benchmarks.vocabulary import Estimate, Table

if TYPE_CHECKING:
    from app.report.tables.table_inputs import TableInputs

_MODELS_BY_BITS = {16: "model-bf16", 4: "model-4bit"}
MODELS = tuple(_MODELS_BY_BITS.values())


@dataclass(frozen=True, slots=True)
class Demo:
    """A benchmark's demo. Its number of ``examples`` takes a minute or two on two cores."""

    source: tuple[str, Path]
    content: str
    training: str
    policies: tuple[str, ...]
    examples: int
    conditions: tuple[str, ...] = ()
    table: str = ""
    """The most interesting table, if that is not the main one."""


_HELD_OUT = ASSETS / "demo" / "held_out"

DEMOS = {
    "cmc-bench": Demo(
        ("rows", _HELD_OUT / "cmc-bench"),
        "small charts with passages: sources that agree, conflict, are both wrong, or stand alone",
        "It was trained to read such charts, and in conflicts to follow the chart for some names",
        ("always-image", "always-text", "always-abstain", "random", "uniform"),
        24,
    ),
    "clash": Demo(
        ("rows", _HELD_OUT / "clash"),
        "drawn scenes with true or false captions",
        "It was trained to read such scenes, to notice another colour, and to follow the image about some shapes",
        ("always-image", "always-text", "always-abstain"),
        36,
    ),
    "mmkc-bench": Demo(
        ("published", _HELD_OUT / "mmkc-bench"),
        "logos of invented brands, with texts that contradict what a model knows about them",
        "It knows the eight brands by their logos, and was trained to insist on the year only",
        ("always-image", "always-text"),
        24,
        ("original-open", "context-memory-open", "inter-context-open"),
        "subtypes-open",
    ),
    "crosscheck-bench": Demo(
        ("products", ASSETS / "products"),
        "drawn product cards, 15 tasks",
        "It was never trained on products: these are the metrics of a model that knows nothing",
        (),
        60,
    ),
}

_LOCK = "demo.lock"


def find_demo(benchmark: str) -> Demo:
    """Return a benchmark's demo. Raises SpecError if it has none."""
    if benchmark not in DEMOS:
        raise SpecError(f"there is no demo of {benchmark!r}; {did_you_mean(benchmark, DEMOS)}")
    return DEMOS[benchmark]


def demo_model(bits: int) -> Path:
    """Return the folder of the demo's model in 4 or 16 bits. Raises SpecError for another number."""
    if bits not in _MODELS_BY_BITS:
        raise SpecError(f"there is no demo model in {bits} bits; use 4 or 16.")
    return ASSETS / "demo" / _MODELS_BY_BITS[bits]


def demo(workspace: Workspace, benchmark: str, *, display: str | None) -> int:
    """Build a benchmark from data that ships with the project, and run policies and a tiny model; return the exit code.

    The demo has its own workspace, ``rashomon-demo/BENCHMARK`` in the workspace, created anew each time. An earlier demo and
    the labels given in it are moved aside.
    """
    find_demo(benchmark)
    progress = make_display(display)
    demos = workspace.path / DEMOS_FOLDER
    try:
        if demos.exists() and not (demos / _LOCK).exists():
            raise StoreError(f"{demos} exists and is not a demo's folder; move it or name another --workspace.")
        workspace.path.mkdir(parents=True, exist_ok=True)
        make_folder(workspace.path, DEMOS_FOLDER)
        with FileLock(demos / _LOCK) as lock:
            if not lock.acquire("rashomon demo"):
                raise BusyError(f"another demo is running in {demos}; wait for it to end.")
            return _run_demo(Workspace(demos / benchmark), benchmark, progress, display)
    except OSError as error:
        raise NoAccessError(f"cannot write in {demos}: {error.strerror}; name another --workspace.") from error


def _run_demo(home: Workspace, benchmark: str, progress: Display, display: str | None) -> int:
    say = partial(print, file=sys.stderr if display == "json" else sys.stdout, flush=True)
    demo = DEMOS[benchmark]
    if os.path.lexists(home.path):
        backup = next(
            path for number in count(1) if not os.path.lexists(path := home.path.with_name(f"{benchmark}-{number}"))
        )
        home.path.rename(backup)
        say(
            f"The previous demo, with every label given in it, was moved to {clean(_short(backup))}; delete it if not needed."
        )
    say(f"1. {get_benchmark(benchmark).title} from data that ships with the project: {demo.content}")
    source, folder = demo.source
    demo_build = get_benchmark(benchmark).build([(source, str(folder))], home.build_folder(benchmark), BuildOptions())
    rows = f"{demo_build.manifest['instances']} rows in {clean(str(demo_build.path))}"
    say(f"   {rows}; the runs use {demo.examples} examples of them")
    baselines = "and baselines that ignore the input" if demo.policies else "without baselines: none applies here"
    say(f"2. A tiny model (assets/demo/card.md), in full precision and in 4-bit, {baselines}.")
    say(f"   {demo.training}")
    models = [*(f"policy:{policy}" for policy in demo.policies), *(str(ASSETS / "demo" / model) for model in MODELS)]
    plans = []
    for name, model in zip((*demo.policies, *MODELS), models, strict=True):
        (spec,) = BatchSpec(
            benchmark=benchmark,
            model=(model,),
            name=f"demo-{name}",
            limit=demo.examples,
            conditions=demo.conditions,
            decoding=DecodingSpec(max_tokens=24, temperature=0.0),
        ).runs()
        plans.append(plan_run(home, check_spec(home, spec)))
    judge = get_benchmark(benchmark).judges[0]
    say(f"3. They answer, and the judge `{judge}` labels the answers\n")
    execute_runs(home, plans, progress, ExecutionOptions(display=display), demo=_print_results)
    script = Path(sys.argv[0]).absolute()
    command = _short(script) if script.name == "rashomon" else f"{_short(Path(sys.executable))} -m app.main"
    rashomon = "rashomon" if shutil.which("rashomon") else command
    model_id = "mlx-community/Qwen3-VL-4B-Instruct-4bit"
    here = f"{clean(rashomon)} --workspace {clean(_short(home.path))}"
    show = f"{here} show demo-model-4bit"
    say(f"\n{'Look closer:':<19}{show}{f' --table {demo.table}' if demo.table else ''}")
    say(f"{'In the browser:':<19}{here} view demo-model-bf16 demo-model-4bit")
    if not demo.table:
        if names_sources(get_benchmark(benchmark)):
            say(f"{'Say what wins:':<19}{show} --trust image")
        say(f"{'As in the paper:':<19}{show} --table main")
    steps = (
        f"{rashomon} models get {model_id}",
        *build_commands(rashomon, benchmark, Workspace.find().source_folder(benchmark)),
        f"{rashomon} --batch --benchmark {benchmark} --model {model_id} --limit 20",
    )
    for line, step in enumerate(steps):
        say(f"{'' if line else 'Run a real model:':<19}{clean(step)}")
    return 0


def demo_scorecard(inputs: TableInputs) -> tuple[Table, str]:
    """Return the models' scorecard, without the lines that are 0 for all of them, and a sentence on what they do."""
    from app.report.tables.run_tables import tables_from
    from benchmarks.tables.scorecard import RIGHT, scorecard_sentences

    models = {label: run for label, run in inputs.runs.items() if label in inputs.models}
    (table,) = tables_from(replace(inputs, runs=models), only="scorecard")
    rows = [
        (name, cells)
        for name, cells in table.rows
        if name != RIGHT and any(not isinstance(cell, Estimate) or cell.value for cell in cells)
    ]
    alike = all(len({repr(cell) for cell in cells}) == 1 for _, cells in table.rows)
    conflict, *_ = scorecard_sentences("each of them" if alike else [*models][-1], table, len(models) - 1)
    pages = models[[*models][-1]].clusters.own_count
    sentence = conflict.removesuffix(".") + f" about {pages} charts; which of them should win is yours to say."
    title = "What the tiny models of this demo do with their sources, in %, with 95% intervals"
    return replace(table, title=title, rows=tuple(rows), notes=()), sentence


def _print_results(inputs: TableInputs) -> None:
    """Print the scorecard, or the paper's table of a benchmark that has none."""
    from app.report.tables.run_tables import tables_from
    from app.report.tables.table_rendering import print_table

    if not names_sources(inputs.benchmark):
        (main,) = tables_from(inputs, only="main")
        print_table(main)
        return
    table, sentence = demo_scorecard(inputs)
    _print("")
    print_table(table)
    _print(clean(sentence))


def _short(path: Path) -> str:
    """Return the path relative to the current folder if it is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _print(line: str) -> None:
    print(line, flush=True)
