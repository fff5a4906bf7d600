"""Commands that answer, judge and label: batch, resume, judge, label, override, import, adopt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from app.cli import shell_completion
from app.cli.cli_options import (
    BUILD,
    COMMAND_ARGUMENTS,
    PATH,
    RUN_HELP,
    WORKER_KEYS,
    allow_address,
    api_options,
    calls,
    cluster_options,
    conditions,
    display,
    key_options,
    number,
    run_name,
    run_options,
    typed_command,
    worker_options,
)
from app.spec_keys import AnswerKeys, BatchKeys, DecodingKeys, SelectionKeys
from benchmarks import number_ranges as ranges

_RUNNING = (*WORKER_KEYS, "until_width", "allow_open_cluster")


@click.command()
@click.argument(
    "spec", required=False, type=PATH, metavar="[SPEC.toml | paper:NAME]", shell_complete=shell_completion.specs
)
@key_options(BatchKeys, SelectionKeys, DecodingKeys, AnswerKeys)
@click.option("--dry-run", is_flag=True, help="Check everything, but fetch and load no model and run nothing.")
@click.option("--yes", is_flag=True, help="Fetch what paper:NAME needs without asking for confirmation.")
@api_options
@run_options
@click.pass_obj
def batch(workspace: Any, /, spec: Path | None, **options: Any) -> int:
    """Run a spec without the terminal interface. The same command resumes an unfinished run.

    paper:NAME is the setup of a benchmark's paper, such as paper:cmc-bench; `rashomon benchmarks NAME` prints it with its
    sources. Options override the spec file. `rashomon --batch` is the same as `rashomon batch`.
    """
    from app.commands.running.batch_command import batch as run_batch
    from app.commands.running.run_execution import ExecutionOptions
    from app.papers.paper_setups import setup_file
    from benchmarks.untrusted.typed_paths import typed_path

    execution = ExecutionOptions(**{key: options.pop(key) for key in _RUNNING})
    dry_run, yes = options.pop("dry_run"), options.pop("yes")
    overrides = options | {
        "data": str(typed_path(options["data"])) if options["data"] else None,
        "adapter": str(typed_path(options["adapter"])) if options["adapter"] else None,
        **{key: list(options[key]) for key in ("model", "prompt_set", "judge")},
    }
    overrides = {key: value for key, value in overrides.items() if value not in (None, [], {})}
    if setup_file(spec) is not None:
        from app.commands.running.setup_command import run_setup

        command = typed_command("--dry-run", "--yes")
        return run_setup(workspace, str(spec), overrides, execution, command, dry_run=dry_run, yes=yes)
    return run_batch(workspace, spec, overrides, execution, dry_run=dry_run)


def start_worker(context: click.Context) -> None:
    """Start the worker of ``rashomon batch`` by its arguments, before what the command itself needs is imported."""
    from app.engine.workers import standby_worker
    from app.papers.paper_setups import setup_file
    from benchmarks.errors import RashomonError

    arguments = list(context.meta[COMMAND_ARGUMENTS])
    if not set(context.help_option_names).isdisjoint(arguments):
        return
    try:
        options = batch.make_context("batch", arguments, context).params
    except (click.ClickException, RashomonError):  # which the command itself reports
        return
    if not (options["dry_run"] or options["workers"]):
        spec = options["spec"]
        standby_worker.start(standby_worker.first_model(setup_file(spec) or spec, options["model"]))


@click.command(epilog=RUN_HELP)
@run_name
@conditions
@click.option(
    "--repeat",
    is_flag=True,
    help="Answer --conditions (default: all) again; the old answers stay in the run's database, unused.",
)
@click.option("--retry-errors", is_flag=True, help="Answer again the instances that ended in an error.")
@click.option("--data", type=BUILD, help="The built benchmark's folder, if it was moved.")
@run_options
@calls("app.commands.running.batch_command:resume", "ExecutionOptions")
def resume() -> None:
    """Resume a run, or repeat some of its conditions."""


@click.command("judge", epilog=RUN_HELP)
@run_name
@click.option(
    "--judge",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=shell_completion.judges,
    help="A judge, a model or first(RULE, MODEL); `rashomon judges` lists them. Repeatable.",
)
@click.option(
    "--official-code",
    type=PATH,
    metavar="FOLDER",
    help="Your clone of the benchmark's official code: models judge with its prompt, not the paper's (clash).",
)
@click.option("--retry-failed", is_flag=True, help="Judge again the answers the judge failed on.")
@click.option("--dry-run", is_flag=True, help="Show how many answers would be judged and the estimated cost.")
@api_options
@cluster_options
@worker_options
@calls("app.commands.running.judge_command:judge", "ExecutionOptions")
def judge_command() -> None:
    """Judge a run's answers with further judges. No answer is generated again."""


@click.command(epilog=RUN_HELP)
@run_name
@click.option("--as", "annotator", required=True, metavar="NAME", help="The annotator's name.")
@number(
    "--n", ranges.ROWS, help="How many answers to label; default 100, or as before. A larger number extends the sample."
)
@number("--seed", ranges.SEED, help="Seed of the random sample; default 0, or as before.")
@click.option("--import", "import_file", type=PATH, metavar="FILE", help="Import labels from a CSV file: id, label.")
@click.option("--export", "export_file", type=PATH, metavar="FILE", help="Write the sample as a CSV file to fill in.")
@click.option(
    "--sample-only", is_flag=True, help="Leave out the answers that the judge left undecided; they come first."
)
@click.option(
    "--random-sample", is_flag=True, help="The imported labels are for a random sample that was drawn elsewhere."
)
@calls("app.commands.people.label_command:label", "LabelArguments")
def label() -> None:
    """Label undecided answers by hand, then a random sample. Labelling is blind to the model, the condition and other labels."""


@click.command(epilog=RUN_HELP)
@run_name
@click.argument("sample", metavar="ID")
@click.argument("label", required=False)
@click.option("--as", "person", required=True, metavar="NAME", help="The name of the person who overrides.")
@click.option("--reason", metavar="TEXT", help="The reason; stored with the label.")
@click.option("--undo", is_flag=True, help="Remove this person's override.")
@calls("app.commands.people.override_command:override")
def override() -> None:
    """Override a judge's label for one answer. The judge's own verdict is kept.

    `--judge "first(override:NAME, JUDGE)"` makes tables use the override.
    """


@click.command("import")
@click.argument("file", type=PATH)
@click.option(
    "--benchmark",
    required=True,
    metavar="NAME",
    shell_complete=shell_completion.benchmarks,
    help="The benchmark; `rashomon benchmarks` lists them.",
)
@click.option("--model", required=True, metavar="NAME", help="The name of the model that answered, as tables show it.")
@click.option(
    "--format",
    "kind",
    default="jsonl",
    show_default=True,
    metavar="NAME",
    help="jsonl: an object with id and answer on each line; or a format of the benchmark's published predictions.",
)
@click.option("--data", type=BUILD, help="The build that the ids refer to; default: the build in the workspace.")
@click.option("--prompt-set", metavar="NAME", help="The prompt set that was used; default: the benchmark's first.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME",
    shell_complete=shell_completion.judges,
    help="A judge. Repeatable; default: the benchmark's judges.",
)
@click.option("--name", help="The run's name; default: a name derived from the file.")
@display
@allow_address
@calls("app.commands.running.import_command:import_answers", "ImportArguments")
def import_command() -> None:
    """Import answers that were generated elsewhere. They become a run and are judged."""


@click.command(epilog=RUN_HELP)
@run_name
@click.option("--name", metavar="NEW", help="The new run's name; default: the old one, or the old one with -adopted.")
@click.option(
    "--data", type=BUILD, help="The built benchmark's folder; default: the workspace's build, if its digest matches."
)
@click.option("--yes", is_flag=True, help="Adopt without asking for confirmation.")
@calls("app.commands.running.adopt_command:adopt_run")
def adopt() -> None:
    """Adopt a run from another machine.

    Its valid answers and verdicts are copied to a new run. The command shows the model, addresses, judges and media folder
    that the run would use, and asks for confirmation.
    """
