"""Commands that train: training, train, trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli import shell_completion
from app.cli.cli_options import (
    BUILD,
    COMMAS,
    PATH,
    as_json,
    benchmark_name,
    calls,
    display_without_events,
    force,
    judge,
    number,
    wait,
)
from benchmarks import number_ranges as ranges

_accept_engine = click.option(
    "--accept-engine",
    is_flag=True,
    help="Resume with another device or other versions of the libraries; the adapter records which it was trained with.",
)


@click.command()
@benchmark_name
@click.option("--out", type=PATH, required=True, help="The folder to write to.")
@click.option(
    "--data",
    multiple=True,
    type=BUILD,
    help="The built benchmark's folder; default: the build in the workspace. Repeatable.",
)
@number("--seed", ranges.SEED, default=0, show_default=True, help="Seed of the choice of rows and of the split.")
@number(
    "--validation-share",
    ranges.VALIDATION_SHARE,
    default=0.1,
    show_default=True,
    help="Share of the rows for validation.",
)
@click.option("--prompt-set", default="", metavar="NAME", help="The prompt set; default: the benchmark's first.")
@click.option(
    "--target",
    default="name",
    show_default=True,
    metavar="FORM",
    help="The answer to learn where sources conflict, if the benchmark leaves it open: name, compare, answer or abstain.",
)
@click.option(
    "--filter",
    default="",
    metavar="NAME",
    help="Filter of the examples: filtered or unfiltered (clash); PUF, MF, UF or PMF (contra4). Default: the first.",
)
@number("--limit", ranges.LIMIT, help="The most rows; default: all, and 500 for crosscheck-bench.")
@click.option(
    "--test",
    "tests",
    multiple=True,
    type=BUILD,
    metavar="BUILD",
    help="A build or set of test data, besides those of the workspace. Repeatable.",
)
@click.option("--drop-leaks", is_flag=True, help="Leave out rows that are test data, instead of refusing them all.")
@as_json
@calls("app.commands.training.training_command:training", "TrainingArguments")
def training() -> None:
    """Write a build as fine-tuning data. `rashomon train` and `python -m mlx_vlm.train` read it.

    Rows that are test data are refused: those of the workspace's other builds, and of builds that runs were made from.
    """


@click.command()
@click.option(
    "--model",
    metavar="ID",
    shell_complete=shell_completion.models,
    help="The base model: a folder, or the Hub id of a fetched model, quantised or not.",
)
@click.option("--data", type=PATH, help="The training set's folder; `rashomon training` writes one.")
@click.option(
    "--recipe",
    metavar="NAME",
    shell_complete=shell_completion.recipes,
    help="Values of a paper: clash-llava or clash-mplug-owl. Other options override them.",
)
@number("--rank", ranges.RANK, help="Rank of the adapter; default 16.")
@number("--alpha", ranges.ALPHA, help="Scale of the adapter, divided by its rank; default 32.")
@number("--dropout", ranges.DROPOUT, help="Dropout of the adapter's inputs; default 0.")
@number("--batch-size", ranges.BATCH_SIZE, help="Rows of an update; default 4. Memory is that of one row.")
@click.option(
    "--objective",
    metavar="NAME",
    help="Objective: answer (default), or orpo, which also prefers the answer to the row's rejected one.",
)
@number("--beta", ranges.BETA, help="With orpo: the weight of the preference; default 0.1.")
@number("--learning-rate", ranges.LEARNING_RATE, help="Learning rate of AdamW; default 1e-4.")
@click.option("--schedule", metavar="NAME", help="Schedule of the learning rate: cosine (default), linear or constant.")
@number("--warmup", ranges.WARMUP, help="Updates of warm-up, or their share if below 1; default 0.03.")
@number("--epochs", ranges.EPOCHS, help="Passes over the rows; default 1.")
@number("--steps", ranges.STEPS, help="Updates, instead of --epochs.")
@number("--max-length", ranges.MAX_LENGTH, help="The most tokens of a row, images included; default 2048.")
@click.option(
    "--skip-unusable",
    is_flag=True,
    default=None,
    help="Leave out rows that are longer than --max-length or cannot be read, instead of refusing them all.",
)
@number("--max-pixels", ranges.MAX_PIXELS, help="Scale larger images down to this many pixels.")
@click.option(
    "--gradient-checkpointing/--no-gradient-checkpointing",
    default=None,
    help="Compute activations again instead of keeping them; on by default: slower, with less memory.",
)
@number(
    "--validation-share",
    ranges.VALIDATION_SHARE,
    help="Share of the rows for validation, if the set has none; default 0.1.",
)
@number("--validation-rows", ranges.ROWS, help="The most rows of a validation, drawn by the seed; default 200.")
@number("--validate-every", ranges.INTERVAL, help="Updates between validations; default: a twentieth of them.")
@click.option(
    "--early-stopping/--no-early-stopping",
    default=None,
    help="End once the validation loss no longer falls; on by default.",
)
@number("--check-every", ranges.INTERVAL, help="Updates between checks of generated answers; default: a tenth of them.")
@number(
    "--check-rows",
    ranges.CHECK_ROWS,
    help="Validation rows whose answers are generated and checked along the way, 0 for none; default 24.",
)
@number("--patience", ranges.PATIENCE, help="Validations without a lower loss before the training ends; default 3.")
@click.option(
    "--rates",
    metavar="R,R",
    help="Learning rates to try first, or auto for five from 3e-5 to 3e-3; the lowest of those that do about best is taken.",
)
@number(
    "--rate-updates", ranges.STEPS, help="With --rates: updates of all trials together; default: a quarter of them."
)
@number("--save-every", ranges.INTERVAL, help="Updates between checkpoints; default: a twentieth of them.")
@number("--seed", ranges.SEED, help="Seed of the adapter, the order of the rows and dropout; default 0.")
@click.option("--name", help="The training's name; default: a name derived from model, data and options.")
@click.option(
    "--resume",
    metavar="NAME",
    shell_complete=shell_completion.trainings,
    help="Take up a training that was stopped; takes no other options than --data, --max-length and --save-every.",
)
@click.option("--dry-run", is_flag=True, help="Check everything and print the memory, but load no model.")
@display_without_events
@force
@_accept_engine
@wait
@click.pass_obj
def train(
    workspace: Any,
    /,
    resume: str | None,
    display: str | None,
    force: bool,
    dry_run: bool,
    accept_engine: bool,
    wait: float | None,
    **options: Any,
) -> int:
    """Train a LoRA adapter on this machine. The same command resumes an unfinished training.

    Its end code is 0 if the best adapter has a lower validation loss than the base, 5 if none has, 6 if nothing can be told.

    rashomon train --model mlx-community/Qwen3-VL-4B-Instruct-4bit --data train
    """
    from app.commands.training.train_command import train as start_training

    values = {
        key: str(value) if isinstance(value, Path) else value for key, value in options.items() if value is not None
    }
    return start_training(
        workspace,
        values,
        resume=resume,
        display=display,
        force=force,
        dry_run=dry_run,
        accept_engine=accept_engine,
        wait=wait,
    )


@click.command()
@as_json
@calls("app.commands.training.train_command:trainings")
def trainings() -> None:
    """List the trainings and how far each is. Their folders are in the workspace's folder trainings."""


@click.command("learning-curve")
@click.option(
    "--data", multiple=True, type=PATH, required=True, metavar="FOLDER", help="A training set's folder. Repeatable."
)
@click.option(
    "--sizes",
    type=COMMAS,
    default="",
    metavar="N,N",
    help="Numbers of rows; default: an eighth, a quarter and half of the smallest set, and all of each.",
)
@click.option(
    "--benchmark", metavar="NAME", shell_complete=shell_completion.benchmarks, help="Default: that of the data."
)
@click.option("--test", type=BUILD, metavar="BUILD", help="The build that measures; default: the one in the workspace.")
@number("--limit", ranges.LIMIT, help="Measure on only this many examples, stratified.")
@judge
@click.option(
    "--metric", metavar="NAME", help="Metric that training is to raise; default: the accuracy under conflict."
)
@click.option("--format", "formats", type=COMMAS, metavar="F,F", help="Also write files: csv, md, png, svg, pdf.")
@click.option("--out", type=PATH, help="With --format: the folder to write to; default: ./learning-curve.")
@click.option("--dry-run", is_flag=True, help="Print the trainings and runs, and start nothing.")
@display_without_events
@force
@_accept_engine
@as_json
@click.pass_obj
def learning_curve(workspace: Any, /, **options: Any) -> int:
    """Train on several data sets and sizes; measure the adapters. The curve shows data quality against quantity.

    The same command resumes.

    rashomon learning-curve --model ID --data filtered --data unfiltered --sizes 500,1000,2000
    """
    from app.commands.training.learning_curve_command import CurveArguments, learning_curve_command

    settings = {name: options.pop(name) for name in _SETTINGS}
    arguments = CurveArguments(
        seed=options.pop("seed") or 0,
        training={name: value for name, value in settings.items() if value is not None},
        **options,
    )
    return learning_curve_command(workspace, arguments)


_SETTINGS = (
    "recipe",
    "rank",
    "alpha",
    "dropout",
    "batch_size",
    "learning_rate",
    "schedule",
    "warmup",
    "epochs",
    "steps",
    "max_length",
    "max_pixels",
    "skip_unusable",
    "validation_rows",
    "early_stopping",
    "patience",
    "check_rows",
    "gradient_checkpointing",
)
"""The options of a training that all points of a curve share."""

learning_curve.params[:0] = [option for option in train.params if option.name in ("model", "seed", *_SETTINGS)]
