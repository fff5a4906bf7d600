"""Commands for data and judges: build, sets, passages, figures, vary, data, benchmarks, judges, prompts."""

from __future__ import annotations

from typing import Any

import click

from app.cli import shell_completion
from app.cli.cli_options import (
    BUILD,
    COMMAS,
    PATH,
    allow_address,
    api_options,
    as_json,
    benchmark_name,
    calls,
    cluster_options,
    conditions,
    fetch_options,
    force,
    number,
)
from benchmarks import number_ranges as ranges


@click.command()
@benchmark_name
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME=WHERE",
    help="A folder or hub:ORG/NAME for one source; or just a folder with a subfolder for each source. Repeatable.",
)
@click.option(
    "--from",
    "from_file",
    type=PATH,
    metavar="FILE",
    help="A table of your own rows: CSV, .xlsx, .ods or JSON with image, question and answer; a sheet is named as "
    "FILE.xlsx#sheet=NAME. Or a retrieval log (retrieval).",
)
@click.option(
    "--check",
    is_flag=True,
    help="Check the rows of --from, and build nothing: list unusable rows with fixes, and what the others become.",
)
@click.option(
    "--cluster",
    default="",
    metavar="COLUMN",
    help="The column of --from that names the document or page of a row; rows of one count together. Default: document, doc_id "
    "or page, else the picture.",
)
@click.option(
    "--map",
    "mapping",
    default="",
    metavar="COLUMN=KEY,...",
    help="The keys of --from that hold the columns, such as question=query,answer=reference,image=page; dots reach into "
    "objects. Or the form of another tool, with changes if need be: vlmevalkit, chartqa, mmlongbench-doc, ragas, ragas-0.1, "
    "langsmith, langfuse, promptfoo. Known forms are recognised without it.",
)
@click.option(
    "--difficulty",
    type=click.Choice(["near", "far"]),
    help="The distance of generated wrong values from the right ones: numbers 1.1 to 2 times as large or small (near), or 2 to 3 "
    "times (far). Default: near for your own rows, the paper's construction for other sources (cmc-bench).",
)
@click.option(
    "--false-text",
    type=click.Choice(["first", "random"]),
    default="first",
    show_default=True,
    help="Which of a row's two false texts is given alone: the first, as in the published code, or one drawn by --seed, as the "
    "paper says (mmkc-bench).",
)
@click.option(
    "--name", metavar="SET", help="The name of the question set that the table is; default: the name of the file."
)
@click.option("--all", "every", is_flag=True, help="Print all details of the build; with --check, list every row.")
@click.option("--out", type=PATH, help="The folder to write the build to; default: in the workspace.")
@number("--seed", ranges.SEED, default=0, show_default=True, help="Seed of the construction.")
@number(
    "--per-stratum",
    ranges.PER_STRATUM,
    default=250,
    show_default=True,
    help="Target number of examples for each conflict type.",
)
@click.option("--replace", is_flag=True, help="Replace a different build in the same folder.")
@click.option("--writer", metavar="MODEL", help="The model that writes text, for constructions that need one.")
@click.option(
    "--checker",
    "checkers",
    multiple=True,
    metavar="MODEL",
    help="The model that checks the written text; default: the writer. Repeatable if the construction takes several.",
)
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="MODEL",
    help="The model that reads the images and the passages of a retrieval log alone, to find its conflicts (retrieval); that "
    "sorts changed words into categories (clash); or that votes on the level of each question (crosscheck-bench; three in the "
    "paper). Repeatable: all of them must then read the same, and more than half must vote for a level.",
)
@click.option(
    "--captioner",
    "captioners",
    multiple=True,
    metavar="MODALITY=MODEL",
    help="The model that describes media of one modality: audio, image, video or 3d (contra4). Repeatable.",
)
@click.option(
    "--extractor",
    metavar="MODEL",
    help="The model that reads facts off the products' pictures and texts, with its error rate (crosscheck-bench).",
)
@click.option(
    "--captions",
    type=PATH,
    metavar="FILE",
    help="Captions that another program predicted, for the caption baseline: rows with id, modality and caption (contra4).",
)
@click.option(
    "--official-code",
    type=PATH,
    metavar="FOLDER",
    help="Your clone of the benchmark's official code: construct with its prompts, not the paper's (clash).",
)
@click.option(
    "--embedder",
    metavar="MODEL",
    help="The embedding model for the similarity of captions, or `words` for that of their words; default: the paper's if "
    "cached, else `words`.",
)
@click.option(
    "--rendered", is_flag=True, help="Render 3D models and videos as images, for models that take only images."
)
@api_options
@cluster_options
@allow_address
@force
@as_json
@calls("app.commands.building.build_command:build", "BuildArguments", "ConstructionModels")
def build() -> None:
    """Build a benchmark from its sources or your own documents. Your rows are a table: `--from rows.csv`."""


@click.group(invoke_without_command=True)
@as_json
@calls("app.commands.building.sets_command:sets")
def sets() -> None:
    """List the question sets and their versions. `rashomon build BENCHMARK --from TABLE` makes one."""


@sets.command("remove")
@click.argument("name", metavar="SET", shell_complete=shell_completion.sets)
@click.option("--yes", is_flag=True, help="Remove without asking for confirmation.")
@calls("app.commands.building.sets_command:remove")
def sets_remove() -> None:
    """Remove a question set with all of its versions. Its runs stay."""


@sets.command("restore")
@click.argument("name", metavar="SET")
@calls("app.commands.building.sets_command:restore")
def sets_restore() -> None:
    """Restore the question set of that name that was removed last."""


@click.command(epilog="BUILD is a build of cmc-bench, its folder or its name; your own rows are one of its sources.")
@click.argument("build", shell_complete=shell_completion.builds)
@click.option("--passages", metavar="K,K", help="The numbers of passages, 1 to 10; default: 1,3,5.")
@click.option("--wrong", metavar="M,M", help="The numbers of wrong passages among them; default: 0,1,2.")
@click.option(
    "--place",
    "places",
    metavar="PLACE,PLACE",
    help="The places of the right passage: first, middle, last; default: first,last.",
)
@click.option(
    "--images",
    metavar="N,N",
    help="The numbers of images: the example's own, and others of other examples; default: 0.",
)
@click.option("--words", metavar="N,N", help="The least lengths of a passage in words; default: 0, as it is.")
@number("--limit", ranges.LIMIT, metavar="N", help="Use N examples, drawn at random; default: all.")
@number("--seed", ranges.SEED, default=0, show_default=True, help="Seed of the draw and of the distractors.")
@click.option("--out", type=PATH, help="The folder to write the build to; default: in the workspace.")
@click.option("--replace", is_flag=True, help="Replace a different build in the same folder.")
@click.option("--dry-run", is_flag=True, help="Print the number of calls, and build nothing.")
@click.option("--force", is_flag=True, help="Build even a design of more than 100,000 calls.")
@as_json
@click.pass_obj
def passages(workspace: Any, /, build: str, **options: Any) -> None:
    """Build examples with one right passage among wrong ones. Every setting of the levels is built."""
    from app.commands.building.passages_command import PassagesArguments
    from app.commands.building.passages_command import passages as build_passages

    levels = {name: options.pop(name) for name in ("passages", "wrong", "places", "images", "words")}
    build_passages(workspace, build, PassagesArguments(levels=levels, **options))


@click.command(epilog="BUILD is a build's folder, or the name of a benchmark that is built in the workspace.")
@click.argument("build", shell_complete=shell_completion.builds)
@click.option(
    "--format",
    "formats",
    type=COMMAS,
    default="pdf",
    show_default=True,
    metavar="F,F",
    help="Formats: png, svg, pdf; by commas.",
)
@click.option("--out", type=PATH, help="The folder to write to; default: ./figures/BUILD.")
@click.option("--width", default="page", show_default=True, metavar="WIDTH", help="Width of figures: column or page.")
@calls("app.commands.building.figures_command:draw_figures")
def figures() -> None:
    """Draw the statistics of a build that its paper draws. For clash, contra4 and crosscheck-bench."""


@click.command(
    epilog="BUILD is a build's folder, or the name of a benchmark that is built in the workspace. The factors and their levels "
    "are in docs/factors.md."
)
@click.argument("build", shell_complete=shell_completion.builds)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=LEVEL,LEVEL",
    shell_complete=shell_completion.factors,
    help="A factor with its levels, such as blur=0,2,4; the first level is the reference. Repeatable: factors are crossed.",
)
@number(
    "--cells", ranges.CELLS, metavar="N", help="Use a fraction of N cells of the crossed levels; default: all cells."
)
@number("--limit", ranges.LIMIT, metavar="N", help="Use N examples, drawn like those of a run; default: all.")
@conditions
@click.option("--region", metavar="X0:Y0:X1:Y1", help="The decisive region of every image, in shares from 0 to 1.")
@click.option(
    "--regions",
    "regions_file",
    type=PATH,
    metavar="FILE",
    help="The decisive region of each image, as JSON lines of image and box.",
)
@number("--seed", ranges.SEED, default=0, show_default=True, help="Seed of the examples drawn and of a fraction.")
@click.option("--out", type=PATH, help="The folder to write the build to; default: beside BUILD, as BUILD-varied.")
@click.option("--replace", is_flag=True, help="Replace a different build in the same folder.")
@click.option("--dry-run", is_flag=True, help="Print the design's size, and build nothing.")
@click.option("--force", is_flag=True, help="Build even a design of more than 100,000 calls.")
@as_json
@calls("app.commands.building.vary_command:vary", "VaryArguments")
def vary() -> None:
    """Repeat a build's examples under crossed levels. The factors are blur, stated sources, order, length, distance and others.

    The result is a build: run it with `rashomon --batch --data FOLDER`. Every level is applied to the same examples.
    """


@click.group(invoke_without_command=True)
@as_json
@calls("app.commands.data_and_models.data_command:listing")
def data() -> None:
    """List the data each benchmark is built from. `rashomon data get BENCHMARK` fetches it."""


@data.command("get")
@benchmark_name
@click.option(
    "--to", type=PATH, help="The folder to fetch to; default: in the workspace, where `rashomon build` finds the data."
)
@fetch_options
@calls("app.commands.data_and_models.data_command:get")
def data_get() -> None:
    """Fetch the data a benchmark is built from.

    Shows size, licence and free disk space first. An interrupted download resumes, and every file is verified before it is
    put in place.
    """


@click.command()
@click.argument("name", required=False, metavar="[NAME]", shell_complete=shell_completion.benchmarks)
@as_json
@calls("app.commands.data_and_models.list_commands:benchmarks")
def benchmarks() -> None:
    """List the benchmarks, or print one with its paper's setup. The list says whether each is built.

    `rashomon --batch paper:NAME` runs the setup.
    """


@click.group(invoke_without_command=True)
@as_json
@calls("app.commands.data_and_models.list_commands:judges", workspace=False)
def judges() -> None:
    """List the judges and how well each was found to label. `rashomon judges check JUDGE` examines one."""


@judges.command("check")
@click.argument("judge", shell_complete=shell_completion.judges)
@number("--limit", ranges.LIMIT, help="Only this many labelled answers and hostile ones; for a first try.")
@click.option("--dry-run", is_flag=True, help="Show how many answers would be judged and the estimated cost.")
@api_options
@force
@allow_address
@as_json
@calls("app.commands.data_and_models.judges_check_command:check_judge")
def judges_check() -> None:
    """Examine a judge by labelled answers: its agreement, the effect of the references' order, and what steers it.

    JUDGE is a rule, a model or a panel, such as match, openai:NAME or "first(match, openai:NAME)".
    """


@click.command()
@click.argument("name", required=False, metavar="[NAME|FILE]")
@click.option(
    "--benchmark",
    metavar="NAME",
    shell_complete=shell_completion.benchmarks,
    help="Print the prompts of an example of this benchmark.",
)
@click.option("--data", type=BUILD, help="The built benchmark's folder; default: the workspace's.")
@as_json
@calls("app.commands.building.prompts_command:prompts")
def prompts() -> None:
    """List prompt sets, print one as a file, or preview yours.

    `--batch --prompt-set NAME`, or a file's path, runs with it.
    """
