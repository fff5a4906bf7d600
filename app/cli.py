"""The command line: what there is to type.

What each command does stands in ``app.commands``, imported only when it runs: nothing here may import what is heavy.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from app import completing

PATH = click.Path(path_type=Path)
RUN_HELP = "RUN is a run's name, or the beginning of one."

display = click.option(
    "--display",
    metavar="KIND",
    shell_complete=completing.displays,
    help="full, plain, json or none; default: full on a terminal.",
)
force = click.option("--force", is_flag=True, help="Load the model even if it does not seem to fit in memory.")
restarts = click.option(
    "--restarts",
    type=click.IntRange(0, 100),
    metavar="N",
    help="Start a worker that died for want of memory again, so often in a row without an answer; default 2.",
)
until_width = click.option(
    "--until-width",
    type=float,
    metavar="W",
    help="Ask examples in random order, and stop when each condition's accuracy has a 95% interval this wide.",
)
accept_engine = click.option(
    "--accept-engine", is_flag=True, help="Go on with other versions of the engine; each answer records its own."
)
conditions = click.option(
    "--conditions",
    metavar="C,C",
    shell_complete=completing.conditions,
    help="Only these conditions, with commas between.",
)
judge = click.option(
    "--judge",
    metavar="NAME",
    shell_complete=completing.judges,
    help="Whose labels; default: the run's first judge. Also any(A,B), all(A,B), majority(A,B,C), first(A,B).",
)
yes = click.option("--yes", is_flag=True, help="Fetch without asking, after saying what.")
plan_only = click.option("--dry-run", is_flag=True, help="Say what would be fetched; fetch nothing.")
as_json = click.option("--json", "as_json", is_flag=True, help="As JSON.")


def api(command: Any) -> Any:
    """The options on what terms remote engines are used."""
    for option in reversed(
        [
            click.option(
                "--token-ceiling", type=int, help="Remote engines: at most so many tokens, a run and a judge."
            ),
            click.option("--cost-ceiling", type=float, help="The same in money; needs the prices."),
            click.option("--input-price", type=float, help="Of a million tokens in."),
            click.option("--output-price", type=float, help="Of a million tokens out."),
            click.option("--concurrency", type=int, help="Remote engines: at most so many calls at once; default 8."),
            click.option("--timeout", type=float, help="Remote engines: seconds a call may take; default 120."),
            click.option("--attempts", type=int, help="Remote engines: how often a failing call is made; default 6."),
        ]
    ):
        command = option(command)
    return command


def _terms(how: dict[str, Any]) -> dict[str, Any]:
    """What of these options is said, taken out of ``how``."""
    names = ("token_ceiling", "cost_ceiling", "input_price", "output_price", "concurrency", "timeout", "attempts")
    return {name: value for name in names if (value := how.pop(name)) is not None}


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"rashomon {version('rashomon')}")
        context.exit()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False, invoke_without_command=True
)
@click.option(
    "--workspace", type=PATH, help="The folder of runs and builds; default: RASHOMON_WORKSPACE, else your data folder."
)
@click.option(
    "--images",
    type=click.Choice(["auto", "sixel", "kitty", "half", "off"]),
    help="How the terminal interface shows pictures; default: as the settings say, else as the terminal can.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="The version.")
@click.pass_context
def cli(context: click.Context, workspace: Path | None, images: str | None) -> int:
    """What a vision-language model does when its sources disagree.

    `rashomon` on a terminal opens the interface.

    `rashomon --batch SPEC.toml` runs headless; so does `rashomon --batch --benchmark NAME --model ID ...`.

    Exit codes: 0 done; 1 the run ended with failures recorded, or could not go on; 2 the command or the spec is
    wrong; 130 interrupted.
    """
    from app.store.workspace import Workspace

    context.obj = Workspace.find(workspace)
    if context.invoked_subcommand is None:
        if (sys.stdin.isatty() and sys.stdout.isatty()) or "TEXTUAL_DRIVER" in os.environ:
            from app.tui.app import open_app

            return open_app(context.obj, images=images)
        click.echo(context.get_help())
    return 0


@cli.command()
@click.argument("spec", required=False, type=PATH, metavar="[SPEC.toml]")
@click.option(
    "--benchmark",
    metavar="NAME",
    help="See `rashomon benchmarks`.",
    shell_complete=completing.benchmarks,
    is_eager=True,
)
@click.option(
    "--model",
    multiple=True,
    metavar="ID",
    shell_complete=completing.models,
    help="A folder, a Hub id in the cache, or policy:NAME. Repeatable.",
)
@click.option("--data", type=PATH, help="The built benchmark's folder; default: the workspace's.")
@click.option("--prompt-set", multiple=True, metavar="NAME", help="Repeatable.")
@click.option(
    "--judge",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.judges,
    help="Repeatable; the first one's labels are shown.",
)
@conditions
@click.option("--strata", multiple=True, metavar="KEY=V,V", help="Only instances of these strata. Repeatable.")
@click.option("--limit", type=int, help="This many examples, stratified, each with all its conditions.")
@click.option("--seed", type=int, help="Of the subset and of sampling.")
@click.option("--max-tokens", type=int, help="The longest answer; default: the benchmark's.")
@click.option("--temperature", type=float, help="0 is greedy; default: the benchmark's.")
@click.option("--top-p", type=float, help="Nucleus sampling; default: the benchmark's.")
@click.option("--max-pixels", type=int, help="Scale larger images down to this many pixels.")
@click.option("--name", help="The run's name; default: one that the same spec always gives again.")
@click.option(
    "--exact", is_flag=True, default=None, help="Compute each answer by itself: none together, nothing reused."
)
@click.option(
    "--score",
    type=click.Choice(["generate", "likelihood"]),
    help="Generate answers, or take the likeliest of a question's options.",
)
@click.option("--dry-run", is_flag=True, help="Check everything; load and run nothing.")
@api
@until_width
@restarts
@display
@force
@accept_engine
@click.pass_obj
def batch(workspace: Any, /, **given: Any) -> int:
    """Run headless. The same spec again goes on where it stopped.

    `rashomon --batch ...` is this command. What is said here goes before what the spec says.
    """
    from app.commands.batch import batch as run
    from app.paths import typed_path

    how = {key: given.pop(key) for key in ("display", "force", "accept_engine", "dry_run", "until_width")}
    spec = given.pop("spec")
    given |= {
        "data": str(typed_path(given["data"])) if given["data"] else None,
        "conditions": _words(given["conditions"]),
        "strata": _strata(given["strata"]),
    }
    for key in ("model", "prompt_set", "judge"):
        given[key] = list(given[key])
    return run(workspace, spec, {key: value for key, value in given.items() if value not in (None, [], {})}, **how)


@cli.command(epilog=RUN_HELP)
@click.argument("run", shell_complete=completing.runs)
@conditions
@click.option("--repeat", is_flag=True, help="Ask --conditions (default: all) again; old answers are kept, set aside.")
@click.option("--retry-errors", is_flag=True, help="Ask again what ended in an error.")
@click.option("--data", type=PATH, help="Where the built benchmark lies now, if it moved.")
@until_width
@restarts
@display
@force
@accept_engine
@click.pass_obj
def resume(workspace: Any, /, run: str, conditions: str | None, **how: Any) -> int:
    """Go on with a run. Or do some of its conditions alone, or again."""
    from app.commands.batch import resume as go_on

    return go_on(workspace, run, conditions=_words(conditions), **how)


@cli.command("judge", epilog=RUN_HELP)
@click.argument("run", shell_complete=completing.runs)
@click.option(
    "--judge",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.judges,
    help="See `rashomon judges`; or a model. Repeatable.",
)
@click.option("--retry-failed", is_flag=True, help="Judge again what the judge failed on.")
@click.option("--dry-run", is_flag=True, help="Say what there is to judge, and what it may cost; ask nothing.")
@api
@display
@force
@accept_engine
@click.pass_obj
def judge_command(workspace: Any, /, run: str, names: Sequence[str], **how: Any) -> int:
    """Have a run's answers labelled by more judges. Nothing is answered again."""
    from app.commands.judge import judge as label_answers

    return label_answers(workspace, run, list(names), api=_terms(how), **how)


@cli.command(epilog=RUN_HELP)
@click.argument("run", shell_complete=completing.runs)
@click.option("--as", "annotator", required=True, metavar="NAME", help="Who labels.")
@click.option("--n", type=int, help="So many answers; default 100, or as before. More continues the same sample.")
@click.option("--seed", type=int, help="Decides which answers; default 0, or as before.")
@click.option("--import", "import_file", type=PATH, metavar="FILE", help="Take labels from a CSV file: id, label.")
@click.option("--export", "export_file", type=PATH, metavar="FILE", help="Write the sample as CSV, to be filled in.")
@click.option("--random-sample", is_flag=True, help="The imported labels are on a random sample drawn elsewhere.")
@click.pass_obj
def label(workspace: Any, /, run: str, **how: Any) -> int:
    """Label a random sample of answers by hand. You see neither model, condition nor other labels."""
    from app.commands.label import label as take_labels

    return take_labels(workspace, run, **how)


@cli.command(epilog=RUN_HELP)
@click.argument("run", shell_complete=completing.runs)
@click.argument("sample", metavar="ID")
@click.argument("label", required=False)
@click.option("--as", "person", required=True, metavar="NAME", help="Who says so.")
@click.option("--reason", metavar="TEXT", help="Why; kept with the label.")
@click.option("--undo", is_flag=True, help="Take it back.")
@click.pass_obj
def override(workspace: Any, /, run: str, sample: str, label: str | None, **how: Any) -> int:
    """Give one answer another label than its judge gave. The judge's stays.

    Tables use yours with `--judge "first(override:NAME, JUDGE)"`.
    """
    from app.commands.override import override as give

    return give(workspace, run, sample, label, **how)


@cli.command("import")
@click.argument("file", type=PATH)
@click.option(
    "--benchmark",
    required=True,
    metavar="NAME",
    shell_complete=completing.benchmarks,
    help="See `rashomon benchmarks`.",
)
@click.option("--model", required=True, metavar="NAME", help="Who gave the answers, as tables are to call it.")
@click.option(
    "--format",
    "kind",
    default="jsonl",
    show_default=True,
    metavar="NAME",
    help="jsonl: objects of id and answer, one a line; or a format of the benchmark's published predictions.",
)
@click.option("--data", type=PATH, help="The built benchmark the ids are of; default: the workspace's.")
@click.option("--prompt-set", metavar="NAME", help="The prompt set the answers were given to.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.judges,
    help="Repeatable; default: the benchmark's.",
)
@click.option("--name", help="The run's name.")
@display
@click.pass_obj
def import_command(workspace: Any, /, file: Path, **how: Any) -> int:
    """Make a run of answers from elsewhere. It is judged like any other."""
    from app.commands.importing import import_answers

    return import_answers(workspace, file, **how)


@cli.command()
@click.argument("benchmark", shell_complete=completing.benchmarks)
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
@click.option("--check", is_flag=True, help="Only say what each row of --from becomes, or how to mend it.")
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
@force
@as_json
@click.pass_obj
def build(workspace: Any, /, benchmark: str, source: Sequence[str], **how: Any) -> int:
    """Construct a benchmark from its sources. Rows of your own are one of them: `--from rows.csv`."""
    from app.commands.build import build as construct

    return construct(workspace, benchmark, source, api=_terms(how), **how)


@cli.command()
@click.argument("benchmark", shell_complete=completing.benchmarks)
@click.option("--out", type=PATH, required=True, help="The folder to write: train.jsonl, validation.jsonl.")
@click.option("--data", type=PATH, help="The built benchmark's folder; default: the workspace's.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides which caption and which file.")
@click.option("--validation-share", type=float, default=0.1, show_default=True)
@click.pass_obj
def training(workspace: Any, /, benchmark: str, **how: Any) -> None:
    """Write a build as files for fine-tuning. `python -m mlx_vlm.train` reads them."""
    from app.commands.build import training as write

    write(workspace, benchmark, **how)


@cli.command()
@as_json
@click.pass_obj
def runs(workspace: Any, /, as_json: bool) -> None:
    """List the runs and how far they are. Each condition has a line."""
    from app.commands.runs import runs as tell

    tell(workspace, as_json=as_json)


@cli.command(epilog=RUN_HELP)
@click.argument("run", nargs=-1, required=True, shell_complete=completing.runs)
@click.option("--table", metavar="NAME", help="Only this table.")
@click.option("--sample", metavar="ID", help="One instance instead: its prompt, answer and verdicts.")
@click.option("--spec", is_flag=True, help="The spec that repeats it instead, and what it was made of.")
@judge
@as_json
@click.pass_obj
def show(workspace: Any, /, run: Sequence[str], **how: Any) -> None:
    """Show the tables of a run. Also while it goes on; of several runs, a row each."""
    from app.commands.show import show as tell

    tell(workspace, run, **how)


@cli.command(epilog=f"{RUN_HELP} published:ROW is a row of the paper's.")
@click.argument("run", nargs=-1, required=True, shell_complete=completing.runs)
@click.option(
    "--baseline",
    metavar="RUN",
    shell_complete=completing.runs,
    help="What the others are compared to; default: the first.",
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this figure. Repeatable.")
@click.option("--group-by", metavar="WHAT", help="quantization: each model's quantisations, beside memory and speed.")
@click.option("--flips", is_flag=True, help="Name the instances whose label is another.")
@click.option("--cell", "cells", multiple=True, metavar="FROM:TO", help="Only those that went so. Repeatable.")
@click.option("--format", "formats", metavar="F,F", help="Write files instead: csv, md, latex, html, png, svg, pdf.")
@click.option("--out", type=PATH, help="With --format: the folder to write; default: comparison here.")
@click.option("--width", default="column", show_default=True, metavar="WIDTH", help="Of figures: column or page.")
@judge
@as_json
@click.pass_obj
def compare(workspace: Any, /, run: Sequence[str], **how: Any) -> None:
    """Compare runs. Differences, tests, flipped labels, memory, speed."""
    from app.commands.compare import compare as tell

    how["formats"] = None if how["formats"] is None else _words(how["formats"])
    tell(workspace, run, **how)


@cli.command(epilog=f"{RUN_HELP} published:ROW is a row of the paper's; a model is asked first.")
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
@click.option("--width", default="column", show_default=True, metavar="WIDTH", help="Of figures: column or page.")
@judge
@display
@force
@as_json
@click.pass_obj
def parity(workspace: Any, /, sides: Sequence[str], **how: Any) -> int:
    """Say where two runs or models part, and why. Prompt, tokens, pixels, numerics, batching, judge.

    With --model: where the difference enters between PyTorch, MLX in full precision, 8-bit and 4-bit.
    """
    from app.commands.parity import parity as tell

    asked = {key: how.pop(key) for key in ("benchmark", "prompt_set", "limit", "max_tokens")}
    asked["prompt_set"] = [asked["prompt_set"]] if asked["prompt_set"] else []
    asked["conditions"] = _words(how.pop("conditions"))
    how["formats"] = _words(how["formats"])
    return tell(workspace, sides, asked, **how)


@cli.command(epilog=RUN_HELP)
@click.argument("run", nargs=-1, required=True, shell_complete=completing.runs)
@click.option("--margin", type=float, default=0.03, show_default=True, help="How much worse than the best may be.")
@click.option("--metric", metavar="NAME", help="What decides; default: the share of right labels.")
@click.option("--lower-is-better", is_flag=True, help="For a metric such as HR.")
@click.option("--plan", is_flag=True, help="Say how many examples and hours an interval takes instead.")
@click.option("--width", type=float, default=0.05, show_default=True, help="With --plan: how wide it may be.")
@judge
@as_json
@click.pass_obj
def recommend(workspace: Any, /, run: Sequence[str], **how: Any) -> None:
    """Say which run to take. The smallest and fastest that is as good, within a margin."""
    from app.commands.recommend import recommend as tell

    tell(workspace, run, **how)


@cli.command(epilog=RUN_HELP)
@click.argument("run", nargs=-1, required=True, shell_complete=completing.runs)
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
@click.option("--width", default="column", show_default=True, metavar="WIDTH", help="Of figures: column or page.")
@click.option("--metric", metavar="COLUMN", help="What of the main table is drawn against memory; default: its first.")
@click.pass_obj
def export(workspace: Any, /, run: Sequence[str], formats: str, **how: Any) -> None:
    """Write tables, figures and samples as files. Of several runs, tables and figures together."""
    from app.commands.export import export as write

    write(workspace, run, formats=_words(formats), **how)


@cli.command()
@as_json
@click.pass_obj
def benchmarks(workspace: Any, /, as_json: bool) -> None:
    """List the benchmarks, and which are built."""
    from app.commands.listing import benchmarks as tell

    tell(workspace, as_json=as_json)


@cli.command()
@click.argument("benchmark", required=False, shell_complete=completing.benchmarks)
@click.option("--table", metavar="NAME", help="Only this one, as the paper numbers it.")
@as_json
def published(benchmark: str | None, **how: Any) -> None:
    """Show the tables of a benchmark's paper. Without one, which there are."""
    from app.commands.published import published as tell

    tell(benchmark, **how)


@cli.group(invoke_without_command=True)
@as_json
@click.pass_context
def models(context: click.Context, as_json: bool) -> None:
    """List the models, and whether each fits in memory. `rashomon models get ID` fetches one."""
    if context.invoked_subcommand is None:
        from app.commands.listing import models as tell

        tell(as_json=as_json)


@models.command("get")
@click.argument("model", metavar="ID", shell_complete=completing.to_fetch)
@yes
@plan_only
@force
@click.pass_obj
def models_get(workspace: Any, /, model: str, **how: Any) -> int:
    """Fetch a model from the Hugging Face Hub into its cache. ID is org/name; `rashomon models` lists some.

    Size, licence, memory and free disk are said first; what broke off is continued.
    """
    from app.commands.models import get

    return get(workspace, model, **how)


@cli.group(invoke_without_command=True)
@as_json
@click.pass_context
def data(context: click.Context, as_json: bool) -> None:
    """List what benchmarks need from elsewhere. `rashomon data get BENCHMARK` fetches it."""
    if context.invoked_subcommand is None:
        from app.commands.data import listing

        listing(context.obj, as_json=as_json)


@data.command("get")
@click.argument("benchmark", shell_complete=completing.benchmarks)
@click.option(
    "--to", type=PATH, help="The folder to fetch to; default: in the workspace, where `rashomon build` looks."
)
@yes
@plan_only
@click.pass_obj
def data_get(workspace: Any, /, benchmark: str, **how: Any) -> int:
    """Fetch what a benchmark is built from, and no more.

    Size, licence and free disk are said first; what broke off is continued, and nothing lies at its place before it is whole.
    """
    from app.commands.data import get

    return get(workspace, benchmark, **how)


@cli.command()
@as_json
def judges(as_json: bool) -> None:
    """List the judges."""
    from app.commands.listing import judges as tell

    tell(as_json=as_json)


@cli.command()
@as_json
@click.pass_obj
def doctor(workspace: Any, /, as_json: bool) -> int:
    """Say what works on this machine, and how to mend what does not.

    Exit codes: 0 all of it works (what is marked "see" is advice); 1 something does not.
    """
    from app.commands.doctor import doctor as examine

    return examine(workspace, as_json=as_json)


@cli.command(
    epilog='bash: `eval "$(rashomon completion bash)"` in ~/.bashrc. zsh: the same in ~/.zshrc, after compinit. '
    "fish: `rashomon completion fish > ~/.config/fish/completions/rashomon.fish`."
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes Tab complete commands, options, runs, models, benchmarks and judges in a shell."""
    click.echo(completing.script(shell), nl=False)


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Another lets others in, without a password.")
@click.option("--port", type=click.IntRange(1, 65535), default=8123, show_default=True)
@click.option("--images", type=click.Choice(["half", "off"]), help="How pictures are shown; default: half.")
@click.pass_obj
def serve(workspace: Any, /, **how: Any) -> int:
    """Show the terminal interface in a browser. On this machine alone, unless --host says otherwise."""
    from app.commands.serve import serve as show_in_browser

    return show_in_browser(workspace, **how)


@cli.command()
@click.argument("benchmark", default="cmc-bench", shell_complete=completing.benchmarks)
@display
@click.pass_obj
def demo(workspace: Any, /, benchmark: str, display: str | None) -> int:
    """Perform a complete small run, no download.

    BENCHMARK is cmc-bench (the default), clash, mmkc-bench or crosscheck-bench.
    """
    from app.commands.demo import demo as perform

    return perform(workspace, benchmark, display=display)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code. A wrong option or argument becomes a SpecError."""
    from benchmarks.errors import SpecError

    try:
        # Not cli.main(), which takes a closed pipe for its own and leaves.
        with cli.make_context("rashomon", list(arguments)) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        message = error.format_message().removesuffix(".")
        joint = " " if message.endswith("?") else "; "
        raise SpecError(f"{message[:1].lower()}{message[1:]}{joint}`rashomon --help` lists what there is.") from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return code if isinstance(code, int) else 0


def _words(text: str | None) -> list[str]:
    """The words between commas, without white space around them; a backslash takes the next character as it is."""
    pieces = re.findall(r"(?:\\.|[^,\\]|\\$)+", text or "", re.DOTALL)
    return [word for piece in pieces if (word := _unescaped(piece))]


def _unescaped(piece: str) -> str:
    characters = re.findall(r"\\.|.", piece, re.DOTALL)
    while characters and characters[0].isspace():
        characters.pop(0)
    while characters and characters[-1].isspace():
        characters.pop()
    return "".join(character[-1] for character in characters)


def _strata(given: Sequence[str]) -> dict[str, list[str]]:
    from benchmarks.errors import SpecError

    chosen: dict[str, list[str]] = {}
    for item in given:
        key, _, values = item.partition("=")
        if not key or not _words(values):
            raise SpecError(f"--strata takes KEY=VALUE,VALUE, not {item!r}.")
        chosen[key] = _words(values)
    return chosen
