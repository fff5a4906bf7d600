"""Commands for results: runs, show, compare, check, parity, recommend, export, published, audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from app.cli import completion
from app.cli.options import (
    BUILD,
    COMMAS,
    PATH,
    RUN_HELP,
    WORKER_KEYS,
    allow_address,
    as_json,
    calls,
    conditions,
    display,
    display_without_events,
    exact_and_fresh,
    force,
    judge,
    number,
    option_group,
    run_name,
    run_names,
    some_run_names,
    width,
    worker_options,
)
from benchmarks import number_ranges as ranges

_RULES = ("image", "text", "flag")
_TRUST = "What should win where sources disagree: the image, the text, or a flag on the conflict"
trust = click.option("--trust", type=click.Choice(_RULES), help=f"{_TRUST}.")
lower_is_better = click.option(
    "--lower-is-better", is_flag=True, help="Lower values of the metric are better; HR and others say so themselves."
)
trust_or_none = click.option(
    "--trust",
    type=click.Choice([*_RULES, "none"]),
    help=f"{_TRUST}; none: right answers count. Default: the set's remembered rule.",
)


@click.command()
@click.option("--prune", "action", flag_value="prune", help="Delete old runs, after a list of them and a confirmation.")
@click.option("--restore", "action", flag_value="restore", help="Restore what the last --prune deleted.")
@number(
    "--keep",
    ranges.KEEP,
    metavar="N",
    help="With --prune: keep the N newest finished runs of each model on the same questions.",
)
@click.option("--older-than", metavar="AGE", help="With --prune: only runs older than AGE, such as 12h, 30d or 8w.")
@click.option("--match", metavar="GLOB", help="With --prune: look only at runs whose names match, such as 'nightly-*'.")
@click.option("--include-used", is_flag=True, help="With --prune: delete also what something else rests on.")
@click.option("--yes", is_flag=True, help="With --prune: delete without asking for confirmation.")
@as_json
@click.pass_obj
def runs(workspace: Any, /, action: str | None, as_json: bool, **options: Any) -> None:
    """List the runs and their progress, condition by condition. --prune deletes old ones, --restore undoes that."""
    if action != "prune" and any(value not in (None, False) for value in options.values()):
        raise click.UsageError("--keep, --older-than, --match, --include-used and --yes belong to --prune.")
    if action is not None and as_json:
        raise click.UsageError("--json lists the runs; leave it out with --prune and --restore.")
    if action is None:
        from app.commands.runs import runs as list_runs

        list_runs(workspace, as_json=as_json)
    else:
        from app.commands.prune import PruneArguments, prune, restore

        if action == "prune":
            prune(workspace, PruneArguments(**options))
        else:
            restore(workspace)


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--table", metavar="NAME", help="Print only this table.")
@click.option("--all", "all_tables", is_flag=True, help="Print every table, not only the main one.")
@click.option("--sample", metavar="ID", help="Show one instance instead: its prompt, answer and verdicts.")
@click.option(
    "--spec", is_flag=True, help="Show the spec that repeats the run instead; with --json also its provenance."
)
@trust
@click.option("--speed", is_flag=True, help="Show how fast the run was instead, and what was computed only once.")
@judge
@as_json
@click.pass_obj
def show(workspace: Any, /, run: Sequence[str], speed: bool, **options: Any) -> None:
    """Show a run's headline and main table, even while it runs. With several runs, one row each."""
    from app.commands.show import ShowArguments, show_speed
    from app.commands.show import show as show_runs

    if speed:
        show_speed(workspace, run, as_json=options["as_json"])
    else:
        show_runs(workspace, run, ShowArguments(**options))


@click.command(epilog=RUN_HELP)
@some_run_names
@click.option("--at", metavar="ID", help="Open the page at this instance: its id, or the beginning of it.")
@number("--port", ranges.PORT, default=None, help="The port to serve at; default: 8124, or a free one if it is taken.")
@click.option(
    "--browser/--no-browser",
    default=None,
    help="Open the browser, or only print the link; default: open it if there is one here.",
)
@click.option(
    "--save", type=PATH, metavar="FILE", help="Write the page to one HTML file instead, which needs no server."
)
@click.option(
    "--media",
    type=click.Choice(["thumbnails", "full", "none"]),
    help="With --save: the media to include; full needs a licence that lets you pass them on. Default: thumbnails.",
)
@trust
@judge
@click.pass_obj
def view(workspace: Any, /, run: Sequence[str], **options: Any) -> int:
    """Look at answers side by side in the browser, with pictures. Even while runs answer.

    Without RUN, the newest runs on the same data are shown. Only this machine can reach the page, and only the browser that
    opens the printed link.
    """
    file, media = options.pop("save"), options.pop("media")
    if file is None and media is not None:
        raise click.UsageError("--media belongs to --save.")
    if file is not None:
        served = [options.pop(name) for name in ("at", "port", "browser")]
        if any(value is not None for value in served):
            raise click.UsageError("--at, --port and --browser belong to the page that is served; leave out --save.")
        from app.commands.save_page import save_page

        return save_page(workspace, run, file, media or "thumbnails", **options)
    from app.commands.view import ViewArguments
    from app.commands.view import view as view_runs

    return view_runs(workspace, run, ViewArguments(**options))


@click.command(
    epilog=f"{RUN_HELP} published:ROW is a row of the paper's table, published:FILE:RUN a bundle's run, by its tables alone."
)
@run_names
@click.option(
    "--baseline",
    metavar="RUN",
    shell_complete=completion.runs,
    help="The run that the others are compared with; default: the first.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Only this metric: a column of the main table. Repeatable.",
)
@click.option(
    "--group-by", metavar="WHAT", help="quantization: compare each model's quantisations, with their memory and speed."
)
@click.option("--flips", is_flag=True, help="List the instances whose labels differ.")
@number(
    "--margin",
    ranges.MARGIN,
    default=0.03,
    show_default=True,
    help="The loss that is acceptable of a fine-tuned model, without conflict and on other benchmarks.",
)
@click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="FROM:TO",
    help="Only flips from one label to another, such as IMAGE:TEXT. Repeatable.",
)
@click.option("--table", "only", metavar="NAME", help="Print only this table.")
@click.option("--all", "all_tables", is_flag=True, help="Print every table, not only the main one.")
@click.option(
    "--format", "formats", type=COMMAS, metavar="F,F", help="Write files instead: csv, md, latex, html, png, svg, pdf."
)
@click.option("--out", type=PATH, help="With --format: the folder to write to; default: ./comparison.")
@width
@judge
@as_json
@calls("app.commands.compare:compare", "CompareArguments")
def compare() -> None:
    """Compare runs: differences, flips, memory and speed. Differences have significance tests."""


@click.command(epilog=f"{RUN_HELP} published:ROW is a row of the paper's table. A model is run first.")
@click.argument("names", nargs=-1, metavar="[A] [B] [published:ROW]...", shell_complete=completion.runs_and_models)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="ID",
    shell_complete=completion.models,
    help="Compare the versions of this model instead. Repeatable, to name each version.",
)
@number(
    "--probe",
    ranges.PROBES,
    "probes",
    default=16,
    show_default=True,
    help="The number of requests to examine.",
)
@click.option("--benchmark", metavar="NAME", shell_complete=completion.benchmarks, help="The benchmark, for models.")
@click.option(
    "--data", type=BUILD, help="The built benchmark's folder; default: the runs' build, or else the workspace's."
)
@click.option("--prompt-set", metavar="NAME", help="The prompt set, for models.")
@conditions
@number("--limit", ranges.LIMIT, help="The number of examples, for models; default 24.")
@number("--max-tokens", ranges.MAX_TOKENS, help="The most tokens of an answer, for models; default: the benchmark's.")
@click.option(
    "--format",
    "formats",
    type=COMMAS,
    default="",
    metavar="F,F",
    help="With --model: also write files: png, svg, pdf, csv, md, latex.",
)
@click.option("--out", type=PATH, help="With --format: the folder to write to; default: ./parity.")
@width
@judge
@display_without_events
@allow_address
@force
@as_json
@click.pass_obj
def parity(workspace: Any, /, names: Sequence[str], **options: Any) -> int:
    """Find where two runs or models diverge, and why. Checks prompt, tokens, pixels, numerics, batching and judge.

    With --model: find where a model's answers change between PyTorch, MLX in full precision, 8-bit and 4-bit.
    """
    from app.commands.parity import OutputOptions
    from app.commands.parity import parity as check_parity
    from app.commands.parity_runs import AnswerOptions

    as_json, display = options.pop("as_json"), options.pop("display")
    spec = {key: options.pop(key) for key in ("benchmark", "conditions", "limit", "max_tokens")}
    spec["prompt_set"] = [prompt_set] if (prompt_set := options.pop("prompt_set")) else []
    output = OutputOptions(options.pop("formats"), options.pop("out"), options.pop("width"), as_json)
    answering = AnswerOptions(
        spec, options.pop("data"), options.pop("force"), "none" if as_json else display, options.pop("allowed")
    )
    return check_parity(workspace, names, answering, output, **options)


@click.command(epilog=RUN_HELP)
@run_names
@number(
    "--margin", ranges.MARGIN, default=0.03, show_default=True, help="How much worse than the best run is acceptable."
)
@click.option(
    "--metric", metavar="NAME", help="The metric that decides; default: accuracy, the share of correct labels."
)
@lower_is_better
@click.option(
    "--costs",
    metavar="KIND=COST,...",
    help="Decide by the utility under these costs of mistakes: wrong=1,needless=0.2,missed=3; those left out are 1.",
)
@trust
@number(
    "--conflict-share", ranges.CONFLICT_SHARE, metavar="SHARE", help="The share of your questions that have a conflict."
)
@number("--max-memory", ranges.COST, metavar="GB", help="Recommend only runs with at most this peak memory.")
@number("--max-seconds", ranges.COST, metavar="S", help="Recommend only runs with at most this time per answer.")
@number("--max-disk", ranges.COST, metavar="GB", help="Recommend only models of at most this size on disk.")
@click.option("--plan", is_flag=True, help="Show instead how many examples are needed to decide.")
@click.option(
    "--all", "all_tables", is_flag=True, help="With --plan: show what each metric takes, in examples and hours."
)
@number("--width", ranges.WIDTH, default=0.05, show_default=True, help="With --plan: the width of the interval.")
@judge
@as_json
@calls("app.commands.recommend:recommend", "RecommendArguments")
def recommend() -> None:
    """Recommend the smallest and the fastest of the best runs. They are as good as the best within a margin.

    Policy baselines are never recommended; they only show what ignoring the sources achieves.
    """


verdict_files = option_group(
    click.option("--junit", type=PATH, metavar="FILE", help="Also write the verdict as JUnit XML, whatever it is."),
    click.option(
        "--markdown",
        type=PATH,
        metavar="FILE",
        help="Also write the verdict as Markdown, for a pull request; - prints it.",
    ),
)


@click.command(
    epilog=f"{RUN_HELP} Names must be whole here. published:ROW is a row of the paper's table. Exit codes: 0 passed; "
    "5 regressed; 6 inconclusive; 1 errors among the answers; 4 the run is still at work; others as for every command."
)
@run_name
@click.option(
    "--baseline",
    required=True,
    metavar="RUN",
    shell_complete=completion.runs,
    help="The run, or the paper's row, that the run must not fall behind.",
)
@number(
    "--max-loss",
    ranges.MARGIN,
    default=0.03,
    show_default=True,
    help="The loss that is acceptable: 0.03 is 3 points.",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="The only metric to test; default: by the rule, else the accuracy, and reading each source alone.",
)
@lower_is_better
@trust_or_none
@click.option("--per-condition", is_flag=True, help="Test each condition; all must pass.")
@number(
    "--allow-errors",
    ranges.ERRORS,
    default=0,
    show_default=True,
    help="How many of the run's answers may be errors; they count against the verdict.",
)
@verdict_files
@judge
@as_json
@calls("app.commands.check:check", "CheckArguments")
def check() -> None:
    """Check that a run is not worse than a baseline. For scripts: passed, regressed or inconclusive, by the exit code."""


@click.command(
    "try",
    epilog="Exit codes: 0 better; 5 worse; 6 not shown; others as for every command.",
)
@click.argument("model", shell_complete=completion.models)
@click.option(
    "--set", "name", metavar="SET", shell_complete=completion.sets, help="The question set; default: the only one."
)
@click.option(
    "--against",
    metavar="MODEL",
    shell_complete=completion.models,
    help="The model to compare with, remembered for the set; best: the best so far, which is the default.",
)
@trust_or_none
@click.option(
    "--final", is_flag=True, help="Decide on the rows held out, a third of the pages; once for each decision."
)
@click.option("--prompt-set", metavar="NAME", help="The prompt set; default: the benchmark's first.")
@click.option(
    "--judge",
    metavar="NAME",
    shell_complete=completion.judges,
    help="The judge, whose labels count; default: the benchmark's first.",
)
@exact_and_fresh
@worker_options
@verdict_files
@as_json
@click.pass_obj
def try_command(workspace: Any, /, model: str, **options: Any) -> int:
    """Try a model on a question set: better, worse or not shown. The same command resumes it.

    The rule of --trust is remembered for the set, too. The verdict is corrected for all models tried on the set.
    """
    from app.commands.batch import ExecutionOptions
    from app.commands.try_model import TryArguments, try_model

    if options["as_json"] and options["display"] == "json":
        raise click.UsageError("--json prints the verdict and --display json the progress; leave one of them out")
    execution = ExecutionOptions(**{key: options.pop(key) for key in WORKER_KEYS})
    settings = {key: options.pop(key) for key in ("prompt_set", "judge", "exact", "fresh")}
    return try_model(workspace, model, TryArguments(**options, settings=settings), execution)


@click.command()
@click.argument("name", required=False, metavar="[SET]", shell_complete=completion.sets)
@trust_or_none
@judge
@click.option("--format", "formats", type=COMMAS, metavar="F,F", help="Write files instead: csv, md, png, svg, pdf.")
@click.option("--out", type=PATH, help="With --format: the folder to write to; default: ./history.")
@as_json
@calls("app.commands.history:history")
def history() -> None:
    """Show every model tried on a question set. With the claims about them, in the order of their first answers."""


@click.command(epilog=RUN_HELP)
@run_names
@click.option(
    "--format",
    "formats",
    type=COMMAS,
    default="csv,md,latex,json",
    show_default=True,
    metavar="F,F",
    help="Formats, separated by commas; also parquet, html, png, svg, pdf, lm-eval and inspect.",
)
@click.option("--out", type=PATH, help="The folder to write to; default: ./export/RUN.")
@judge
@click.option(
    "--canonical", is_flag=True, help="Leave out times, memory and paths, so that equal runs give equal files."
)
@width
@click.option(
    "--metric", metavar="COLUMN", help="The column of the main table to plot against memory; default: the first."
)
@click.option("--caption", multiple=True, metavar="TABLE=TEXT", help="A table's caption in LaTeX. Repeatable.")
@calls("app.commands.export:export", "ExportArguments")
def export() -> None:
    """Export tables, figures and samples as files. Several runs share their tables and figures."""


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--out", type=PATH, help="The folder to write to; default: ./export/RUN.")
@judge
@trust
@click.option("--title", default="", metavar="TEXT", help="The title; default: the models' names.")
@number(
    "--margin", ranges.MARGIN, default=0.03, show_default=True, help="How much worse than the best run is acceptable."
)
@click.option(
    "--canonical", is_flag=True, help="Leave out times, memory and paths, so that equal runs give equal files."
)
@calls("app.commands.report:report")
def report() -> None:
    """Write a report: which model, why, and what it gets wrong.

    It has a page for decision makers, then setup, results, limitations and licences as a paper has them.
    It is report.html, which needs no network and prints well, and report.tex with its figures.
    """


@click.command()
@click.argument("benchmark", required=False, shell_complete=completion.benchmarks)
@click.option("--table", metavar="NAME", help="Only this table, by its number in the paper.")
@as_json
def published(benchmark: str | None, **options: Any) -> None:
    """Show the tables of a benchmark's paper. Without BENCHMARK, list the papers' tables."""
    from app.commands.published import published as show_published

    show_published(benchmark, **options)


@click.command(epilog=RUN_HELP)
@run_names
@click.option(
    "--rule",
    "rules",
    type=COMMAS,
    default="",
    metavar="NAME,NAME",
    help="Make only these: agree, confident, oracle; default: all that can be.",
)
@display
@calls("app.commands.baselines:baselines")
def baselines() -> None:
    """Make baselines of a run's answers to each source alone. No model is called.

    They are runs of their own, beside which models appear in every table and figure.
    """


@click.command(
    epilog="BUILD is a build's folder, a question set (SET or SET@NUMBER), or the name of a benchmark that is built in the "
    f"workspace. {RUN_HELP}"
)
@click.argument("name", metavar="BUILD|SET|RUN", shell_complete=completion.builds_and_runs)
@click.option("--all", "every", is_flag=True, help="Print all rules of every task.")
@judge
@as_json
@calls("app.commands.audit:audit")
def audit() -> None:
    """Try to answer a build's questions without looking. Rules that see no source are compared with chance, and with a run.

    They look at the place, length, likeness and numbers of the options, at modalities, files, categories, and at the words of
    the question or of the text alone. What beats chance gives the answer away.
    """
