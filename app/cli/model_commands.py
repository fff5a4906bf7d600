"""Commands for models: models, models get, models fuse, models adapter."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli import shell_completion
from app.cli.cli_options import PATH, as_json, calls, fetch_options, force, number, wait
from benchmarks import number_ranges as ranges


@click.group(invoke_without_command=True)
@click.option(
    "--for",
    "memory",
    metavar="[MEMORY]",
    is_flag=False,
    flag_value="here",
    help="Recommend three models for a Mac with this memory, such as 16GB, and say why; default: for this machine.",
)
@click.option(
    "--data", type=PATH, metavar="BUILD", help="Recommend for the longest prompt of a build, its folder or its name."
)
@as_json
@click.pass_context
def models(context: click.Context, memory: str | None, data: Path | None, as_json: bool) -> None:
    """List the models and whether each fits in memory. `rashomon models get ID` fetches one."""
    if context.invoked_subcommand is not None:
        return
    if memory is not None or data is not None:
        from app.commands.data_and_models.models_command import recommend

        recommend(context.obj, memory, data, as_json=as_json)
    else:
        from app.commands.data_and_models.list_commands import models as list_models

        list_models(as_json=as_json)


@models.command("get")
@click.argument("model", metavar="ID", shell_complete=shell_completion.catalog_models)
@fetch_options
@force
@calls("app.commands.data_and_models.models_command:get")
def models_get() -> None:
    """Fetch a model from the Hugging Face Hub into its cache. ID is org/name; `rashomon models` lists some.

    Shows size, licence, memory and free disk space first. An interrupted download resumes.
    """


@models.command("fuse")
@click.argument("model", metavar="ID", shell_complete=shell_completion.models)
@click.option("--adapter", type=PATH, required=True, metavar="FOLDER", help="The adapter's folder.")
@click.option("--to", "target", type=PATH, required=True, metavar="FOLDER", help="The new model's folder.")
@number("--bits", ranges.WEIGHT_BITS, metavar="N", help="Bits of the weights: 2, 3, 4, 6 or 8; default: the model's.")
@click.option("--dequantise", is_flag=True, help="Store the weights unquantised.")
@click.option(
    "--layout",
    type=click.Choice(["mlx", "hf"]),
    default="mlx",
    show_default=True,
    help="Layout of the weights: MLX's, or Hugging Face's, unquantised, for transformers, vLLM and llama.cpp's converter.",
)
@click.option(
    "--check",
    type=PATH,
    metavar="DATA",
    help="The training set or build to check on; default: the validation rows of the adapter's training, if at hand.",
)
@number("--check-rows", ranges.ROWS, metavar="N", help="The most rows of the check; default 48.")
@click.option("--no-check", is_flag=True, help="Leave the check out; fusing itself needs the device, too.")
@wait
@calls("app.commands.data_and_models.fuse_command:fuse_command", "FuseArguments")
def models_fuse() -> None:
    """Fuse an adapter into a model's weights. The new folder loads without the adapter; --layout hf is for other programs.

    Then answers of the base, of the base with the adapter and of the fused model are compared. Exit code 5: the fused model keeps
    less than 90% of the answers that the adapter changed, or changes others; what keeps them is measured. The same command
    resumes. Fusing computes on the device, and waits for it (--wait), also with --no-check.
    """


@models.command("adapter")
@click.argument("adapter", type=PATH, metavar="FOLDER")
@click.option(
    "--model", required=True, metavar="ID", shell_complete=shell_completion.models, help="The adapter's base model."
)
@click.option("--to-peft", type=PATH, metavar="OUT", help="Write the adapter as the library peft reads it.")
@click.option("--to-mlx", type=PATH, metavar="OUT", help="Write an adapter of peft as mlx-vlm and --adapter read it.")
@calls("app.commands.data_and_models.model_export_command:convert_adapter", workspace=False)
def models_adapter() -> None:
    """Convert an adapter between the formats of mlx-vlm and peft."""
