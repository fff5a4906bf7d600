"""Commands for people: review of a build's rows, and answers to a benchmark's questions."""

from __future__ import annotations

import click

from app.cli import shell_completion
from app.cli.cli_options import PATH, as_json, build_folder, calls, conditions, number, strata
from benchmarks import number_ranges as ranges

_BUILD_HELP = "BUILD is a build's folder, or the name of a benchmark that is built in the workspace."


@click.command(epilog=_BUILD_HELP)
@click.argument("build", shell_complete=shell_completion.builds)
@click.option("--reviewer", metavar="NAME", help="The reviewer's name. Without it, the state of the review is printed.")
@click.option("--name", metavar="REVIEW", help="The review's name; default: the name of the build's folder.")
@number(
    "--share",
    ranges.REVIEW_SHARE,
    metavar="S",
    help="Review a random share of the rows, such as 0.2; default: those that the construction reserved for checks, or all.",
)
@number("--seed", ranges.SEED, help="Seed of the random share; default 0.")
@click.option(
    "--adjudicate", is_flag=True, help="Decide the rows on which the reviewers disagree; shows their decisions."
)
@click.option("--export", "export_file", type=PATH, metavar="FILE", help="Write the rows as a CSV file to fill in.")
@click.option("--import", "import_file", type=PATH, metavar="FILE", help="Import the decisions of such a file.")
@click.option("--out", type=PATH, metavar="FOLDER", help="Write the reviewed build to this folder.")
@click.option(
    "--undecided",
    type=click.Choice(["keep", "drop"]),
    help="With --out: keep or drop the rows that are undecided; default: refuse to write.",
)
@number(
    "--require",
    ranges.REVIEWERS,
    "required",
    default=1,
    show_default=True,
    metavar="N",
    help="Count a row as decided once N reviewers agree on it.",
)
@click.option("--replace", is_flag=True, help="With --out: replace a different build in that folder.")
@click.option("--same-person", is_flag=True, help="Use a reviewer's name that was first used on another account.")
@as_json
@calls("app.commands.people.review_command:review", "ReviewArguments")
def review() -> None:
    """Review a build's rows: accept, reject or fix. A rejection has a reason. Reviewers do not see each other's decisions.

    Every decision is saved at once, and the same command continues. The reviewed build is a new build.
    """


@click.command(epilog=_BUILD_HELP)
@click.argument("build", shell_complete=shell_completion.builds)
@click.option("--as", "person", metavar="NAME", help="The person's name. Without it, the human baseline is printed.")
@build_folder
@click.option("--prompt-set", metavar="NAME", help="The prompt set; default: the benchmark's first.")
@conditions
@strata
@number("--limit", ranges.LIMIT, help="Only this many examples, stratified; the same for everybody with one --seed.")
@number("--seed", ranges.SEED, default=0, show_default=True, help="Seed for the choice of examples and their order.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME",
    shell_complete=shell_completion.judges,
    help="A judge; default: the benchmark's. Repeatable.",
)
@click.option("--name", help="The run's name; default: a name derived from the person and the questions.")
@click.option("--same-person", is_flag=True, help="Continue a run that was begun on another account.")
@click.option("--justify", is_flag=True, help="Ask for a short reason after each answer. It is stored with the answer.")
@as_json
@calls("app.commands.people.answer_command:answer", "AnswerArguments")
def answer() -> None:
    """Answer a build's questions, for a human baseline. Each answer is timed. The answers are a run of the model person:NAME.

    You see what a model is sent. Without --as, the command prints every person's share of right answers, the mean over people
    and their agreement.
    """
