"""The Fetch screen: models and data to fetch, benchmarks to build, and runs of other machines to adopt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from app.fetch import fetched_files_record
from app.fetch.benchmark_downloads import NOT_FETCHED, RECIPES
from app.new_run.custom_rows import LOGS
from app.store.run_references import run_folder
from app.store.workspace import Workspace
from app.text.text_escaping import size
from app.tui.key_commands import Command, bindings
from app.tui.screens.base_screen import RashomonScreen
from app.tui.screens.vary_screen import PASSAGES
from app.tui.theme import DIM, PARTIAL, RIGHT
from app.tui.tui_confirmations import confirm_adoption
from app.tui.widgets.command_dialog import CommandDialog
from app.tui.widgets.dialogs import TextDialog
from app.tui.widgets.table_columns import Cell, Column, Row, fit_to_contents
from app.tui.widgets.titled_panel import panel
from app.tui.widgets.virtual_table import VirtualTable
from benchmarks.errors import RashomonError
from benchmarks.registry import working_benchmarks
from mlx_backends.model_recommendation import Recommendation, recommend_models
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_catalog import CatalogModel, catalog_models
from mlx_backends.models.model_discovery import cached_models

K_PASSAGES = "k-passages"
_OWN_STEPS = {K_PASSAGES: "makes it of a build", LOGS: "builds it from your log"}
"""The next step of benchmarks that no data is published for."""

_MODEL_COLUMNS = (Column("", 2), Column("model", 0), Column("weights", 9, right=True), Column("", 14))
_BENCHMARK_COLUMNS = (Column("benchmark", 18), Column("data", 18), Column("build", 14), Column("Enter", 0, DIM))


@dataclass(frozen=True)
class _Model:
    model: CatalogModel
    fits: bool
    fetched: bool
    recommendation: Recommendation | None = None


@dataclass(frozen=True)
class _Benchmark:
    name: str
    data: str
    """The state of its data: "fetched", "begun", "none" or "not fetched by Rashomon"."""
    built: bool


@dataclass(frozen=True)
class _Listing:
    models: tuple[_Model, ...] = ()
    benchmarks: tuple[_Benchmark, ...] = ()


class FetchScreen(RashomonScreen):
    """Models and data to fetch, and benchmarks to build. A command says what it would do, and asks before it begins."""

    name_ = "fetch"
    BINDINGS: ClassVar[list[BindingType]] = bindings(name_)

    def __init__(self) -> None:
        super().__init__()
        self._listing = _Listing()

    def heading(self) -> Content:
        return Content("Fetch  models, data, builds")

    def body(self) -> ComposeResult:
        yield panel(VirtualTable(_MODEL_COLUMNS, empty="◐ reading …", id="models"), "Models: Enter fetches")
        yield panel(
            VirtualTable(_BENCHMARK_COLUMNS, empty="◐ reading …", id="benchmarks"),
            "Benchmarks: Enter takes the next step",
        )

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#models", VirtualTable))
        self.action_again()

    def action_again(self) -> None:
        """Read again what is there."""
        workspace = self.rashomon.workspace
        self.attempt(lambda: _read(workspace), self._show, group="list")

    def _show(self, listing: _Listing) -> None:
        self._listing = listing
        models, benchmarks = listing.models, listing.benchmarks
        for selector, columns, rows in (
            ("#models", _MODEL_COLUMNS, [_model_row(item) for item in models]),
            ("#benchmarks", _BENCHMARK_COLUMNS, [_benchmark_row(item) for item in benchmarks]),
        ):
            table = self.query_one(selector, VirtualTable)
            table.show(len(rows), _pages(rows), columns=fit_to_contents(columns, rows))

    @property
    def _model(self) -> _Model | None:
        place = self.query_one("#models", VirtualTable).cursor
        return self._listing.models[place] if place < len(self._listing.models) else None

    @property
    def _benchmark(self) -> _Benchmark | None:
        place = self.query_one("#benchmarks", VirtualTable).cursor
        return self._listing.benchmarks[place] if place < len(self._listing.benchmarks) else None

    def describe(self, command: Command) -> str | None:
        if command.id != "table.select":
            return command.title
        return "Fetch" if self.focused is not None and self.focused.id == "models" else "Next step"

    # --- commands --------------------------------------------------------------------------------

    @on(VirtualTable.Selected, "#models")
    def _fetch_model(self) -> None:
        if self._model is not None:
            advice = self._model.recommendation
            text = "" if advice is None else "\n".join((f"Recommended {advice.reason}", *advice.facts))
            self._get_model(self._model.model.id, text)

    @on(VirtualTable.Selected, "#benchmarks")
    def _next_step(self) -> None:
        benchmark = self._benchmark
        if benchmark is None:
            return
        if benchmark.name == K_PASSAGES:
            self.rashomon.open_screen("vary", query=PASSAGES, on_top=True)
        elif benchmark.name == LOGS:
            self.rashomon.open_screen("rows", on_top=True)
        elif benchmark.data == "not fetched by Rashomon":
            reason = NOT_FETCHED.get(benchmark.name, "Rashomon does not know where its data is")
            self.rashomon.toast(f"{benchmark.name}: {reason}")
        elif benchmark.data == "fetched":
            self._build(benchmark.name)
        else:
            arguments = ["data", "get", benchmark.name]
            self._run(f"Fetch the data of {benchmark.name}", [*arguments, "--yes"], [*arguments, "--dry-run"])

    def action_model(self) -> None:
        """Fetch a model that is not listed."""

        def on_answer(name: str | None) -> None:
            if name:
                self._get_model(name.strip())

        text = "The model's name on the Hugging Face Hub, such as mlx-community/Qwen3-VL-4B-Instruct-4bit."
        self.app.push_screen(TextDialog("Fetch a model", text, check=_check_name), on_answer)

    def action_vary(self) -> None:
        """Repeat the examples of the build of the benchmark under the cursor."""
        benchmark = self._benchmark
        self.rashomon.open_screen("vary", query=benchmark.name if benchmark and benchmark.built else "", on_top=True)

    def action_adopt(self) -> None:
        """Adopt a run of another machine."""

        def on_answer(place: str | None) -> None:
            if not place:
                return
            try:
                confirm_adoption(self, run_folder(self.rashomon.workspace, place))
            except RashomonError as error:
                self.rashomon.show_error(error)

        text = (
            "The folder of the run, FILE:RUN of a bundle, or the name of a run in this workspace from another machine."
        )
        self.app.push_screen(TextDialog("Adopt a run", text), on_answer)

    def _get_model(self, name: str, text: str = "") -> None:
        arguments = ["models", "get", name]
        self._run("Fetch a model", [*arguments, "--yes"], [*arguments, "--dry-run"], text=text)

    def _build(self, name: str) -> None:
        folder = self.rashomon.workspace.build_folder(name)
        if folder.exists():
            self.rashomon.toast(f"{name} is built, in {folder}")
            return
        text = f"From {self.rashomon.workspace.source_folder(name)}\ninto {folder}"
        self._run(f"Build {name}", ["build", name], text=text)

    def _run(self, heading: str, arguments: Sequence[str], preview: Sequence[str] = (), *, text: str = "") -> None:
        dialog = CommandDialog(self.rashomon, heading, arguments, preview=preview, text=text)
        self.app.push_screen(dialog, lambda _: self.action_again())


def _read(workspace: Workspace) -> _Listing:
    """Read what is fetched and built; recommended models come first."""
    fetched = {model.name for model in cached_models() if model.problem is None}
    recommended = {item.model.id: item for item in recommend_models(memory_fit(0).available)}
    others = (model for model in catalog_models() if model.id not in recommended)
    models = tuple(
        _Model(model, memory_fit(model.weights_bytes).ok, model.id in fetched, recommended.get(model.id))
        for model in (*(item.model for item in recommended.values()), *others)
    )
    benchmarks = []
    for name in (benchmark.name for benchmark in working_benchmarks()):
        published = name in RECIPES
        state = (
            fetched_files_record.fetch_state(workspace.source_folder(name)) if published else "not fetched by Rashomon"
        )
        benchmarks.append(_Benchmark(name, state, workspace.build_folder(name).exists()))
    return _Listing(models, tuple(benchmarks))


def _pages(rows: Sequence[Row]) -> Callable[[int, int], Sequence[Row]]:
    return lambda first, count: rows[first : first + count]


def _model_row(item: _Model) -> Row:
    if item.fetched:
        state: Cell = [("fetched", RIGHT)]
    else:
        state = "recommended" if item.recommendation else "" if item.fits else [("too large", PARTIAL)]
    mark: Cell = [("✓", RIGHT)] if item.fetched else [("○", DIM)]
    return [mark, item.model.id, size(item.model.weights_bytes), state]


def _benchmark_row(item: _Benchmark) -> Row:
    data: dict[str, Cell] = {
        "fetched": [("✓ fetched", RIGHT)],
        "begun": [("◐ partly fetched", PARTIAL)],
        "none": [("○ not fetched", DIM)],
        "not fetched by Rashomon": [("○ not by Rashomon", DIM)],
    }
    build: Cell = [("✓ built", RIGHT)] if item.built else [("○ not built", DIM)]
    steps = {"fetched": "" if item.built else "builds it", "not fetched by Rashomon": "says what is known"}
    step = _OWN_STEPS.get(item.name) or steps.get(item.data, "fetches its data")
    return [item.name, data[item.data], build, step]


def _check_name(name: str) -> str:
    return "" if name.strip().count("/") == 1 else "write org/name"
