"""The command line: what there is to type. What each command does stands in ``app.commands``, imported only when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="rashomon",
    help="What a vision-language model does when its sources disagree.\n\n"
    "`rashomon --batch SPEC.toml` runs headless; `rashomon --batch --benchmark NAME --model ID ...` too.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Data = Annotated[Path | None, typer.Option(help="The built benchmark's folder; default: the workspace's.")]
DisplayKind = Annotated[str | None, typer.Option(help="full, plain, json or none.")]
Force = Annotated[bool, typer.Option("--force", help="Load the model even if it does not seem to fit in memory.")]
AcceptEngine = Annotated[
    bool, typer.Option("--accept-engine", help="Resume with other versions of the engine; each answer records its own.")
]


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"rashomon {version('rashomon')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(help="The folder of runs and builds; default: RASHOMON_WORKSPACE, else the user's data folder."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version, and leave.")
    ] = False,
) -> None:
    from app.store.workspace import Workspace

    context.obj = Workspace.find(workspace)


@app.command()
def batch(
    context: typer.Context,
    spec: Annotated[Path | None, typer.Argument(help="A spec in TOML.", metavar="[SPEC.toml]")] = None,
    benchmark: Annotated[str | None, typer.Option(help="The benchmark's name.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="A folder, a Hub id in the cache, or policy:NAME; may be repeated.")
    ] = None,
    data: Data = None,
    prompt_set: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    judge: Annotated[list[str] | None, typer.Option(help="May be repeated; the first one's labels are shown.")] = None,
    conditions: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    strata: Annotated[list[str] | None, typer.Option(help="Only KEY=VALUE,VALUE; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(help="This many examples, stratified, each with all its conditions.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the subset and of sampling.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="The longest answer, in tokens.")] = None,
    temperature: Annotated[float | None, typer.Option(help="0 is greedy.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Nucleus sampling.")] = None,
    max_pixels: Annotated[int | None, typer.Option(help="Scale larger images down to this many pixels.")] = None,
    name: Annotated[str | None, typer.Option(help="The run's name; default: made from the spec.")] = None,
    display: DisplayKind = None,
    force: Force = False,
    accept_engine: AcceptEngine = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, load and run nothing.")] = False,
) -> int:
    """Run headless; the same spec again goes on where it stopped."""
    from app.commands.batch import batch as run

    given: dict[str, Any] = {
        "benchmark": benchmark,
        "model": model,
        "data": None if data is None else str(data.absolute()),
        "prompt_set": prompt_set,
        "judge": judge,
        "conditions": _words(conditions),
        "strata": _strata(strata),
        "limit": limit,
        "seed": seed,
        "name": name,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "max_pixels": max_pixels,
    }
    overrides = {key: value for key, value in given.items() if value not in (None, [])}
    return run(
        context.obj, spec, overrides, display=display, force=force, accept_engine=accept_engine, dry_run=dry_run
    )


@app.command()
def resume(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="The run's name, or its beginning.")],
    conditions: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    repeat: Annotated[
        bool, typer.Option("--repeat", help="Ask --conditions (default: all) again; the old answers are kept, set aside.")
    ] = False,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Ask again what ended in an error.")] = False,
    data: Annotated[Path | None, typer.Option(help="Where the built benchmark lies now, if it moved.")] = None,
    display: DisplayKind = None,
    force: Force = False,
    accept_engine: AcceptEngine = False,
) -> int:
    """Go on with a run, or do some of its conditions again."""
    from app.commands.batch import resume as go_on

    return go_on(
        context.obj,
        run,
        conditions=_words(conditions),
        repeat=repeat,
        retry_errors=retry_errors,
        data=data,
        display=display,
        force=force,
        accept_engine=accept_engine,
    )


@app.command()
def build(
    context: typer.Context,
    benchmark: Annotated[str, typer.Argument(help="The benchmark's name.")],
    source: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FOLDER or NAME=HUB_ID, or a folder with a sub-folder for each; may be repeated."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to build; default: in the workspace.")] = None,
    seed: Annotated[int, typer.Option(help="Decides every choice of the construction.")] = 0,
    per_stratum: Annotated[int, typer.Option(help="The target of examples for each conflict type.")] = 250,
    replace: Annotated[bool, typer.Option("--replace", help="Replace another build in the folder.")] = False,
    as_json: AsJson = False,
) -> None:
    """Construct a benchmark's instances from its sources, or from rows of your own."""
    from app.commands.build import build as construct

    construct(
        context.obj,
        benchmark,
        source or [],
        out=out,
        seed=seed,
        per_stratum=per_stratum,
        replace=replace,
        as_json=as_json,
    )


@app.command()
def runs(context: typer.Context, as_json: AsJson = False) -> None:
    """The runs there are, with each condition's answers done and in all."""
    from app.commands.runs import runs as list_runs

    list_runs(context.obj, as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    run: Annotated[list[str], typer.Argument(help="One run or more, each by its name or its beginning.")],
    table: Annotated[str | None, typer.Option(help="Only this table.")] = None,
    sample: Annotated[str | None, typer.Option(help="One instance instead: prompt, answer and verdicts.")] = None,
    judge: Annotated[str | None, typer.Option(help="Whose labels; default: the run's first judge.")] = None,
    as_json: AsJson = False,
) -> None:
    """A run's tables, also while it goes on; with several runs, one row each."""
    from app.commands.show import show as tell

    tell(context.obj, run, table=table, sample=sample, judge=judge, as_json=as_json)


@app.command()
def export(
    context: typer.Context,
    run: Annotated[list[str], typer.Argument(help="One run or more, each by its name or its beginning.")],
    format: Annotated[str, typer.Option(help="csv, md, latex, json; several with commas between.")] = "csv,md,latex,json",
    out: Annotated[Path | None, typer.Option(help="The folder to write; default: export/RUN here.")] = None,
    judge: Annotated[str | None, typer.Option(help="Whose labels; default: the run's first judge.")] = None,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Without times, memory and places: equal runs give equal bytes.")
    ] = False,
) -> None:
    """Write a run's tables and samples as files."""
    from app.commands.export import export as write

    write(context.obj, run, formats=_words(format), out=out, judge=judge, canonical=canonical)


@app.command()
def benchmarks(context: typer.Context, as_json: AsJson = False) -> None:
    """The benchmarks there are, and which are built."""
    from app.commands.listing import benchmarks as tell

    tell(context.obj, as_json=as_json)


@app.command()
def models(as_json: AsJson = False) -> None:
    """The models there are, and whether each fits in this machine's memory."""
    from app.commands.listing import models as tell

    tell(as_json=as_json)


@app.command()
def judges(as_json: AsJson = False) -> None:
    """The judges there are."""
    from app.commands.listing import judges as tell

    tell(as_json=as_json)


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False) -> int:
    """What works on this machine, and how to mend what does not."""
    from app.commands.doctor import doctor as examine

    return examine(context.obj, as_json=as_json)


@app.command()
def demo(context: typer.Context, display: DisplayKind = None) -> int:
    """A complete small run on charts drawn here, without any download."""
    from app.commands.demo import demo as perform

    return perform(context.obj, display=display)


def cli(arguments: list[str], *, standalone_mode: bool = True) -> Any:
    """Run the command line on ``arguments``; a wrong option becomes a SpecError."""
    from benchmarks.errors import SpecError

    command = typer.main.get_command(app)
    try:
        return command.main(arguments, prog_name="rashomon", standalone_mode=standalone_mode)
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        raise SpecError(f"{message()} `rashomon --help` lists what there is.") from error


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()] if text else []


def _strata(given: list[str] | None) -> dict[str, list[str]] | None:
    from benchmarks.errors import SpecError

    if not given:
        return None
    pairs = [item.partition("=") for item in given]
    for key, _, values in pairs:
        if not key or not _words(values):
            raise SpecError(f"--strata takes KEY=VALUE,VALUE, not {key!r}.")
    return {key: _words(values) for key, _, values in pairs}
