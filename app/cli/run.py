"""What asks, and what labels: batch, resume, judge, label, override, import, adopt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from app.cli import completion
from app.cli.options import (
    PATH,
    RUN_HELP,
    allow_address,
    answering,
    api,
    build_folder,
    conditions,
    display,
    run_name,
    strata,
    terms,
    words,
    worker,
)


@click.command()
@click.argument("spec", required=False, type=PATH, metavar="[SPEC.toml]")
@click.option(
    "--benchmark",
    metavar="NAME",
    help="See `rashomon benchmarks`.",
    shell_complete=completion.benchmarks,
    is_eager=True,
)
@click.option(
    "--model",
    multiple=True,
    metavar="ID",
    shell_complete=completion.models,
    help="A folder, a Hub id in the cache, or policy:NAME. Repeatable.",
)
@build_folder
@click.option("--prompt-set", multiple=True, metavar="NAME", help="`rashomon benchmarks` lists them. Repeatable.")
@click.option(
    "--judge",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.judges,
    help="Repeatable; the first one's labels are shown.",
)
@conditions
@click.option("--strata", multiple=True, metavar="KEY=V,V", help="Only instances of these strata. Repeatable.")
@click.option("--limit", type=int, help="This many examples, stratified, each with all its conditions.")
@click.option("--seed", type=int, help="What the subset and sampled answers are drawn by; default 0.")
@click.option("--max-tokens", type=int, help="The longest answer, in tokens; default: the benchmark's.")
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
@answering
@click.pass_obj
def batch(workspace: Any, /, **given: Any) -> int:
    """Run headless. The same spec again goes on where it stopped.

    `rashomon --batch ...` is this command. What is said here goes before what the spec says.
    """
    from app.commands.batch import batch as run
    from app.system.paths import typed_path

    how = {key: given.pop(key) for key in ("display", "force", "accept_engine", "dry_run", "until_width", "allowed")}
    spec = given.pop("spec")
    given |= {
        "data": str(typed_path(given["data"])) if given["data"] else None,
        "conditions": words(given["conditions"]),
        "strata": strata(given["strata"]),
    }
    for key in ("model", "prompt_set", "judge"):
        given[key] = list(given[key])
    return run(workspace, spec, {key: value for key, value in given.items() if value not in (None, [], {})}, **how)


@click.command(epilog=RUN_HELP)
@run_name
@conditions
@click.option("--repeat", is_flag=True, help="Ask --conditions (default: all) again; old answers are kept, set aside.")
@click.option("--retry-errors", is_flag=True, help="Ask again what ended in an error.")
@click.option("--data", type=PATH, help="Where the built benchmark lies now, if it moved.")
@answering
@click.pass_obj
def resume(workspace: Any, /, run: str, conditions: str | None, **how: Any) -> int:
    """Go on with a run. Or do some of its conditions alone, or again."""
    from app.commands.batch import resume as go_on

    return go_on(workspace, run, conditions=words(conditions), **how)


@click.command("judge", epilog=RUN_HELP)
@run_name
@click.option(
    "--judge",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.judges,
    help="See `rashomon judges`; or a model. Repeatable.",
)
@click.option("--retry-failed", is_flag=True, help="Judge again what the judge failed on.")
@click.option("--dry-run", is_flag=True, help="Say what there is to judge, and what it may cost; ask nothing.")
@api
@worker
@click.pass_obj
def judge_command(workspace: Any, /, run: str, names: Sequence[str], **how: Any) -> int:
    """Have a run's answers labelled by more judges. Nothing is answered again."""
    from app.commands.judge import judge as label_answers

    return label_answers(workspace, run, list(names), api=terms(how), **how)


@click.command(epilog=RUN_HELP)
@run_name
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


@click.command(epilog=RUN_HELP)
@run_name
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


@click.command("import")
@click.argument("file", type=PATH)
@click.option(
    "--benchmark",
    required=True,
    metavar="NAME",
    shell_complete=completion.benchmarks,
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
    shell_complete=completion.judges,
    help="Repeatable; default: the benchmark's.",
)
@click.option("--name", help="The run's name.")
@display
@allow_address
@click.pass_obj
def import_command(workspace: Any, /, file: Path, **how: Any) -> int:
    """Make a run of answers from elsewhere. It is judged like any other."""
    from app.commands.importing import import_answers

    return import_answers(workspace, file, **how)


@click.command(epilog="RUN is a run's name, the beginning of one, or its folder.")
@run_name
@click.option("--name", metavar="NEW", help="The new run's name; default: the same, or with -adopted behind it.")
@click.option("--data", type=PATH, help="The built benchmark's folder; default: the workspace's, of the same digest.")
@click.option("--yes", is_flag=True, help="Adopt without asking, after showing what it would use.")
@click.pass_obj
def adopt(workspace: Any, /, run: str, **how: Any) -> int:
    """Take over a run that another machine made. Its valid answers and verdicts become a new run.

    First it shows the model, the addresses, the judges and the media folder that the run would use.
    """
    from app.commands.adopt import adopt_run

    return adopt_run(workspace, run, **how)


COMMANDS = (batch, resume, judge_command, label, override, import_command, adopt)
