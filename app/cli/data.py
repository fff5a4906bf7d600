"""What there is to run on: build, training, data, models, benchmarks, judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from app.cli import completion
from app.cli.options import PATH, allow_address, api, as_json, benchmark_name, build_folder, fetching, force, terms


@click.command()
@benchmark_name
@click.option(
    "--source",
    multiple=True,
    metavar="NAME=WHERE",
    help="A folder, or hub:ORG/NAME; or a folder with a sub-folder for each source. Repeatable.",
)
@click.option(
    "--from",
    "from_file",
    type=PATH,
    metavar="FILE",
    help="Your own rows: CSV, TSV or JSON lines of image, question, answer (cmc-bench).",
)
@click.option(
    "--check",
    is_flag=True,
    help="Build nothing; list the rows of --from that cannot be used, and what the others become.",
)
@click.option(
    "--all", "every", is_flag=True, help="List every row with --check; without it, all that the build says of itself."
)
@click.option("--out", type=PATH, help="The folder to build; default: in the workspace.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides every choice of the construction.")
@click.option("--per-stratum", type=int, default=250, show_default=True, help="The target of examples a conflict type.")
@click.option("--replace", is_flag=True, help="Replace another build in the folder.")
@click.option("--writer", metavar="MODEL", help="The model that writes, where a construction needs one.")
@click.option(
    "--checker",
    "checkers",
    multiple=True,
    metavar="MODEL",
    help="The model that checks what was written; default: the writer. Repeatable where several check.",
)
@click.option(
    "--captioner",
    "captioners",
    multiple=True,
    metavar="MODALITY=MODEL",
    help="The model that describes audio, image, video or 3d (contra4). Repeatable.",
)
@click.option("--embedder", metavar="MODEL", help="The model that says which captions are near; default: their words.")
@click.option("--rendered", is_flag=True, help="Make pictures of 3D models and videos, for models that see only those.")
@api
@allow_address
@force
@as_json
@click.pass_obj
def build(workspace: Any, /, benchmark: str, source: Sequence[str], **how: Any) -> int:
    """Construct a benchmark from its sources. Rows of your own are one of them: `--from rows.csv`."""
    from app.commands.build import build as construct

    return construct(workspace, benchmark, source, api=terms(how), **how)


@click.command()
@benchmark_name
@click.option("--out", type=PATH, required=True, help="The folder to write: train.jsonl, validation.jsonl.")
@build_folder
@click.option("--seed", type=int, default=0, show_default=True, help="Decides which caption and which file.")
@click.option("--validation-share", type=float, default=0.1, show_default=True)
@click.pass_obj
def training(workspace: Any, /, benchmark: str, **how: Any) -> None:
    """Write a build as files for fine-tuning. `python -m mlx_vlm.train` reads them."""
    from app.commands.build import training as write

    write(workspace, benchmark, **how)


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def data(context: click.Context, as_json: bool) -> None:
    """List what benchmarks need from elsewhere. `rashomon data get BENCHMARK` fetches it."""
    if context.invoked_subcommand is None:
        from app.commands.data import listing

        listing(context.obj, as_json=as_json)


@data.command("get")
@benchmark_name
@click.option(
    "--to", type=PATH, help="The folder to fetch to; default: in the workspace, where `rashomon build` looks."
)
@fetching
@click.pass_obj
def data_get(workspace: Any, /, benchmark: str, **how: Any) -> int:
    """Fetch what a benchmark is built from, and no more.

    Size, licence and free disk are said first; what broke off is continued, and nothing lies at its place before it is whole.
    """
    from app.commands.data import get

    return get(workspace, benchmark, **how)


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models, and whether each fits in memory. `rashomon models get ID` fetches one."""
    if context.invoked_subcommand is None:
        from app.commands.listing import models as tell

        tell(as_json=as_json)


@models.command("get")
@click.argument("model", metavar="ID", shell_complete=completion.to_fetch)
@fetching
@force
@click.pass_obj
def models_get(workspace: Any, /, model: str, **how: Any) -> int:
    """Fetch a model from the Hugging Face Hub into its cache. ID is org/name; `rashomon models` lists some.

    Size, licence, memory and free disk are said first; what broke off is continued.
    """
    from app.commands.models import get

    return get(workspace, model, **how)


@click.command()
@as_json
@click.pass_obj
def benchmarks(workspace: Any, /, as_json: bool) -> None:
    """List the benchmarks, and which are built."""
    from app.commands.listing import benchmarks as tell

    tell(workspace, as_json=as_json)


@click.command()
@as_json
def judges(as_json: bool) -> None:
    """List the judges."""
    from app.commands.listing import judges as tell

    tell(as_json=as_json)


COMMANDS = (build, training, data, models, benchmarks, judges)
