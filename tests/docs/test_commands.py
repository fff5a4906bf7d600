"""Every command of the documentation, run as printed in a prepared environment (``world.py``)."""

from __future__ import annotations

import doctest
import re
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from app.cli import cli
from app.exit_codes import DONE, VERDICTS
from tests.docs.pages import PAGES, ROOT, Command, commands, mentions
from tests.docs.replies import reply
from tests.docs.world import BENCHMARKS, World, masked
from tests.support.command import Rashomon, free_port
from tests.support.fault_server import FaultServer

DOWNLOAD = "it fetches from the network"
NOT_RUN = (
    (r"^rashomon serve\b", "it goes on until it is stopped, and is run so below"),
    (r"^rashomon view\b", "it goes on until it is stopped, and is run in tests/app/view"),
    (r"^rashomon push (?!.*--out)", "it sends to the Hub, which a test of its own stands in for"),
    (r"^rashomon models get sentence-transformers/", DOWNLOAD),
    (r" --workers ray://HEAD:", "it needs a cluster, on which tests/end_to_end/test_ray.py runs it"),
    (r" endpoint:\S+,http://", "it needs two servers, on which tests/end_to_end/test_cluster.py runs it"),
    (
        r"adapter FOLDER|ID\+FOLDER|BASE TUNED|training clash --data BUILD|learning-curve",
        "it needs a trained adapter or large builds",
    ),
    *(() if find_spec("torch") else ((r" cuda:", "PyTorch is not installed"),)),
)
"""Commands of Rashomon that are not run with the others but parsed, with all their options, and why."""

JUDGING = ("train", "try")
"""Commands that end with a verdict, which on small sets is any."""

ELSEWHERE = (
    (r"^make [\w-]+( [A-Z]+=\S+)*$", "other tests see that the Makefile has it"),
    (r"^(python3? -m )?pip (un)?install ", DOWNLOAD),
    (r"^\.venv/bin/pytest ", "it is the test suite"),
    (r"^(hf|git|brew|uvx?|pipx) ", DOWNLOAD),
    (r"^python -m (mlx_vlm|tests|assets\.demo\.recipe)\.", "it is long, or another project's"),
    (r"^(export|touch|df|caffeinate|pmset|sudo|sysctl|cd|eval|keyring|kill|source) ?", "it is the shell's, or macOS's"),
)
"""Commands that are not Rashomon's."""


def reason(command: Command, table: tuple[tuple[str, str], ...]) -> str | None:
    """Return why the command is not run here, or None if it is."""
    text = " ".join(command.words)
    return next((why for pattern, why in table if re.search(pattern, text)), None)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A prepared home for each benchmark, created once."""
    homes: dict[str, Path] = {}

    def furnished(benchmark: str) -> Path:
        if benchmark not in homes:
            homes[benchmark] = tmp_path_factory.mktemp("home") / "ann"
            World(homes[benchmark]).furnish(benchmark)
        return homes[benchmark]

    return furnished


FOLLOWED = {"CONTRIBUTING.md", "docs/your-own-documents.md"}
"""Pages that are one story, followed in real processes by tests/test_contributing.py and tests/test_own_documents.py."""


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in FOLLOWED])
def test_page_commands_run_as_printed(page: str, template: Callable[[str], Path], tmp_path: Path) -> None:
    chosen = [item for item in commands(page) if item.words[0] == "rashomon" and not reason(item, NOT_RUN)]
    if not chosen:
        pytest.skip("none of its commands can be run here")
    world = World(tmp_path / "ann")
    shutil.copytree(template(BENCHMARKS.get(page, "cmc-bench")), world.path, symlinks=True)
    broken = []
    with FaultServer(reply) as server, world.entered(server):
        world.prepare(page, server)
        instance = world.instance()
        for command in chosen:
            result = world.perform(command, stands(command, server, instance))
            if result.code not in (VERDICTS if command.words[1] in JUDGING else (DONE,)):
                broken.append(f"{command}\n  ended with {result.code}: {(result.err or result.out)[-600:].strip()}")
            elif command.output is not None and (difference := differs(command.output, result.out)):
                broken.append(f"{command}\n{difference}")
    assert not broken, "\n\n".join(broken)


@pytest.mark.slow
def test_serve_command_starts(tmp_path: Path) -> None:
    """`rashomon serve`, on another port: the printed one may be taken."""
    served = [item for page in PAGES for item in commands(page) if item.words[:2] == ["rashomon", "serve"]]
    assert served
    for command in served:
        port = str(free_port())
        process = Rashomon(tmp_path).start(*(port if word == "8123" else word for word in command.words[1:]))
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert first.startswith(f"http://127.0.0.1:{port}"), f"{command}\n{first}{errors}"
        assert "Traceback" not in errors


def stands(command: Command, server: FaultServer, instance: str) -> dict[str, str]:
    """Return the placeholders in a command's words, as regular expressions, with their replacements."""
    replacements = {
        r"^ID$": instance,
        r"http://127\.0\.0\.1:8000/v1$": server.url,
        r"(?<==)MODEL$": "CAPTIONER",
    }
    return replacements | ({r"^(MODEL\d?)$": rf"endpoint:\1@{server.url}"} if "--writer" in command.words else {})


def differs(printed: str, output: str) -> str:
    """Return the difference between the output and what the page prints, or "". ``...`` matches anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    expected, actual = masked(printed), masked(output)
    checker = doctest.OutputChecker()
    if checker.check_output(expected, actual, flags):
        return ""
    return checker.output_difference(doctest.Example("", expected), actual, flags | doctest.REPORT_NDIFF)


@pytest.mark.parametrize("page", PAGES)
def test_every_documented_command_parses(page: str) -> None:
    """The command line accepts every printed command, also those within the text and those that are not run."""
    broken = []
    printed = list(commands(page))
    for command in [*printed, *mentions(page)]:
        if command.words[0] != "rashomon":
            if not reason(command, ELSEWHERE):
                broken.append(f"{command}: neither run nor said why not")
            continue
        try:
            parse(command.words[1:])
        except (click.MissingParameter, click.BadOptionUsage) as error:
            if command in printed:  # the text may speak of `rashomon show` without saying of what
                broken.append(f"{command}: {error.format_message()}")
        except click.ClickException as error:
            broken.append(f"{command}: {error.format_message()}")
    assert not broken, "\n".join(broken)


def parse(words: list[str]) -> None:
    """Parse the words by the command line without running anything. Raises ClickException if they are invalid."""
    if ">" in words:
        words = words[: words.index(">")]
    with suppress(click.exceptions.Exit):  # --help
        context: click.Context = cli.make_context("rashomon", list(words))
        group: click.Command = cli
        while isinstance(group, click.Group) and (rest := [*context._protected_args, *context.args]):
            name, command, arguments = group.resolve_command(context, rest)
            assert command is not None
            context, group = command.make_context(name, arguments, parent=context), command


def test_documented_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = {command.words[1] for page in PAGES for command in commands(page) if command.words[0] == "make"}
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)
