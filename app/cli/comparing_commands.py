"""Commands that compare: compare, parity, recommend, check, try, history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from app.cli import shell_completion
from app.cli.cli_options import (
    BUILD,
    COMMAS,
    PATH,
    RUN_HELP,
    WORKER_KEYS,
    allow_address,
    as_json,
    calls,
    conditions,
    display_without_events,
    exact_and_fresh,
    force,
    judge,
    number,
    option_group,
    run_name,
    run_names,
    trust,
    trust_or_none,
    width,
    worker_options,
)
from benchmarks import number_ranges as ranges

lower_is_better = click.option(
    "--lower-is-better", is_flag=True, help="Lower values of the metric are better; HR and others say so themselves."
)


@click.command(
    epilog=f"{RUN_HELP} published:ROW is a row of the paper's table, published:FILE:RUN a bundle's run, by its tables alone."
)
@run_names
@click.option(
    "--baseline",
    metavar="RUN",
    shell_complete=shell_completion.runs,
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
@calls("app.commands.results.compare_command:compare", "CompareArguments")
def compare() -> None:
    """Compare runs: differences, flips, memory and speed. Differences have significance tests."""


@click.command(epilog=f"{RUN_HELP} published:ROW is a row of the paper's table. A model is run first.")
@click.argument(
    "names", nargs=-1, metavar="[A] [B] [published:ROW]...", shell_complete=shell_completion.runs_and_models
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="ID",
    shell_complete=shell_completion.models,
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
@click.option(
    "--benchmark", metavar="NAME", shell_complete=shell_completion.benchmarks, help="The benchmark, for models."
)
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
    from app.commands.results.parity_command import OutputOptions
    from app.commands.results.parity_command import parity as check_parity
    from app.commands.results.parity_runs import AnswerOptions

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
    "--metric",
    metavar="NAME",
    help="The metric that decides; default: the decision accuracy, where an empty answer is wrong.",
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
@calls("app.commands.results.recommend_command:recommend", "RecommendArguments")
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
    shell_complete=shell_completion.runs,
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
    help="The only metric to test; default: by the rule, else the decision accuracy, and reading each source alone.",
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
@calls("app.commands.results.check_command:check", "CheckArguments")
def check() -> None:
    """Check that a run is not worse than a baseline. For scripts: passed, regressed or inconclusive, by the exit code."""


@click.command(
    "try",
    epilog="Exit codes: 0 better; 5 worse; 6 not shown; others as for every command.",
)
@click.argument("model", shell_complete=shell_completion.models)
@click.option(
    "--set",
    "name",
    metavar="SET",
    shell_complete=shell_completion.sets,
    help="The question set; default: the only one.",
)
@click.option(
    "--against",
    metavar="MODEL",
    shell_complete=shell_completion.models,
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
    shell_complete=shell_completion.judges,
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
    from app.commands.results.try_command import TryArguments, try_model
    from app.commands.running.run_execution import ExecutionOptions

    if options["as_json"] and options["display"] == "json":
        raise click.UsageError("--json prints the verdict and --display json the progress; leave one of them out")
    execution = ExecutionOptions(**{key: options.pop(key) for key in WORKER_KEYS})
    settings = {key: options.pop(key) for key in ("prompt_set", "judge", "exact", "fresh")}
    return try_model(workspace, model, TryArguments(**options, settings=settings), execution)


@click.command()
@click.argument("name", required=False, metavar="[SET]", shell_complete=shell_completion.sets)
@trust_or_none
@judge
@click.option("--format", "formats", type=COMMAS, metavar="F,F", help="Write files instead: csv, md, png, svg, pdf.")
@click.option("--out", type=PATH, help="With --format: the folder to write to; default: ./history.")
@as_json
@calls("app.commands.results.history_command:history")
def history() -> None:
    """Show every model tried on a question set. With the claims about them, in the order of their first answers."""
