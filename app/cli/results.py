"""What came of runs: runs, show, compare, parity, recommend, export, published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from app.cli import completion
from app.cli.options import (
    PATH,
    RUN_HELP,
    allow_address,
    as_json,
    conditions,
    display,
    force,
    judge,
    run_names,
    width,
    words,
)


@click.command()
@as_json
@click.pass_obj
def runs(workspace: Any, /, as_json: bool) -> None:
    """List the runs and how far they are. Each condition has a line."""
    from app.commands.runs import runs as tell

    tell(workspace, as_json=as_json)


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--table", metavar="NAME", help="Print only this table.")
@click.option("--all", "all_tables", is_flag=True, help="Print every table, not only the main one.")
@click.option("--sample", metavar="ID", help="One instance instead: its prompt, answer and verdicts.")
@click.option("--spec", is_flag=True, help="The spec that repeats it instead, and what it was made of.")
@judge
@as_json
@click.pass_obj
def show(workspace: Any, /, run: Sequence[str], **how: Any) -> None:
    """Show what a run comes to, and its main table. Also while it runs; several runs have a row each."""
    from app.commands.show import show as tell

    tell(workspace, run, **how)


@click.command(epilog=f"{RUN_HELP} published:ROW is a row of the paper's.")
@run_names
@click.option(
    "--baseline",
    metavar="RUN",
    shell_complete=completion.runs,
    help="What the others are compared to; default: the first.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Only this figure, by its column's name in the table main. Repeatable.",
)
@click.option("--group-by", metavar="WHAT", help="quantization: each model's quantisations, beside memory and speed.")
@click.option("--flips", is_flag=True, help="Name the instances whose label is another.")
@click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="FROM:TO",
    help="Only flips between these labels, such as IMAGE:TEXT. Repeatable.",
)
@click.option("--table", "only", metavar="NAME", help="Print only this table.")
@click.option("--all", "all_tables", is_flag=True, help="Print every table, not only the main one.")
@click.option("--format", "formats", metavar="F,F", help="Write files instead: csv, md, latex, html, png, svg, pdf.")
@click.option("--out", type=PATH, help="With --format: the folder to write; default: comparison here.")
@width
@judge
@as_json
@click.pass_obj
def compare(workspace: Any, /, run: Sequence[str], **how: Any) -> None:
    """Compare runs. Differences, tests, flipped labels, memory, speed."""
    from app.commands.compare import compare as tell

    how["formats"] = None if how["formats"] is None else words(how["formats"])
    tell(workspace, run, **how)


@click.command(epilog=f"{RUN_HELP} published:ROW is a row of the paper's; a model is asked first.")
@click.argument("sides", nargs=-1, metavar="[A] [B] [published:ROW]...")
@click.option(
    "--model", "models", multiple=True, metavar="ID", help="The ladder of a model instead. Repeatable: its rungs."
)
@click.option("--probe", "probes", type=click.IntRange(0), default=16, show_default=True, help="Requests to look at.")
@click.option("--benchmark", metavar="NAME", help="What models are asked.")
@click.option("--data", type=PATH, help="The built benchmark's folder; default: the runs', else the workspace's.")
@click.option("--prompt-set", metavar="NAME", help="What models are asked in.")
@conditions
@click.option("--limit", type=int, help="So many examples are asked of models; default 24.")
@click.option("--max-tokens", type=int, help="The longest answer of models; default: the benchmark's.")
@click.option(
    "--format", "formats", metavar="F,F", help="Write the ladder as files too: png, svg, pdf, csv, md, latex."
)
@click.option("--out", type=PATH, help="With --format: the folder to write; default: parity here.")
@width
@judge
@display
@allow_address
@force
@as_json
@click.pass_obj
def parity(workspace: Any, /, sides: Sequence[str], models: Sequence[str], **how: Any) -> int:
    """Say where two runs or models part, and why. Prompt, tokens, pixels, numerics, batching, judge.

    With --model: where the difference enters between PyTorch, MLX in full precision, 8-bit and 4-bit.
    """
    from app.commands.parity import OutputOptions
    from app.commands.parity import parity as tell
    from app.commands.parity_runs import RunOptions

    spec = {key: how.pop(key) for key in ("benchmark", "prompt_set", "limit", "max_tokens")}
    spec["prompt_set"] = [spec["prompt_set"]] if spec["prompt_set"] else []
    spec["conditions"] = words(how.pop("conditions"))
    output = OutputOptions(words(how.pop("formats")), how.pop("out"), how.pop("width"), how.pop("as_json"))
    display = how.pop("display")
    shown = "none" if output.as_json else display
    asking = RunOptions(spec, how.pop("data"), how.pop("force"), shown, how.pop("allowed"))
    return tell(workspace, sides, models, asking, output, **how)


@click.command(epilog=RUN_HELP)
@run_names
@click.option("--margin", type=float, default=0.03, show_default=True, help="How much worse than the best may be.")
@click.option("--metric", metavar="NAME", help="What decides; default: the share of right labels.")
@click.option("--lower-is-better", is_flag=True, help="For a metric such as HR.")
@click.option("--plan", is_flag=True, help="Say how many examples and hours an interval takes instead.")
@click.option("--width", type=float, default=0.05, show_default=True, help="With --plan: how wide it may be.")
@judge
@as_json
@click.pass_obj
def recommend(workspace: Any, /, run: Sequence[str], **how: Any) -> None:
    """Recommend a run: the leanest and fastest that is as good within a margin. Policies are floors."""
    from app.commands.recommend import recommend as tell

    tell(workspace, run, **how)


@click.command(epilog=RUN_HELP)
@run_names
@click.option(
    "--format",
    "formats",
    default="csv,md,latex,json",
    show_default=True,
    metavar="F,F",
    help="Also parquet, html, png, svg, pdf, lm-eval, inspect.",
)
@click.option("--out", type=PATH, help="The folder to write; default: export/RUN here.")
@judge
@click.option("--canonical", is_flag=True, help="Without times, memory and places: equal runs give equal bytes.")
@width
@click.option("--metric", metavar="COLUMN", help="What of the main table is drawn against memory; default: its first.")
@click.option("--caption", multiple=True, metavar="TABLE=TEXT", help="A table's caption in LaTeX; repeatable.")
@click.pass_obj
def export(workspace: Any, /, run: Sequence[str], formats: str, **how: Any) -> None:
    """Write tables, figures and samples as files. Of several runs, tables and figures together."""
    from app.commands.export import export as write

    write(workspace, run, formats=words(formats), **how)


@click.command()
@click.argument("benchmark", required=False, shell_complete=completion.benchmarks)
@click.option("--table", metavar="NAME", help="Only this one, as the paper numbers it.")
@as_json
def published(benchmark: str | None, **how: Any) -> None:
    """Show the tables of a benchmark's paper. Without one, which there are."""
    from app.commands.published import published as tell

    tell(benchmark, **how)


COMMANDS = (runs, show, compare, parity, recommend, export, published)
