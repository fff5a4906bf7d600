"""`rashomon --help`: what to type first, then every command in one section, in a line that is not cut."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import app.cli
from app.cli import SECTIONS, cli
from tests.support.command import Rashomon

STARTS = ("rashomon build cmc-bench --from", "rashomon data get cmc-bench", "rashomon demo")
"""The first command of each way in: the user's own documents, a paper, the demo."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return Rashomon(tmp_path_factory.mktemp("help")).run("--help").stdout


def _defined() -> set[click.Command]:
    """Return the commands that the modules of the command line define, without subcommands."""
    modules = [importlib.import_module(f"app.cli.{item.name}") for item in pkgutil.iter_modules(app.cli.__path__)]
    commands = {item for module in modules for item in vars(module).values() if isinstance(item, click.Command)}
    return (
        commands - {sub for item in commands if isinstance(item, click.Group) for sub in item.commands.values()} - {cli}
    )


def test_every_command_is_in_exactly_one_section() -> None:
    listed = Counter(command for commands in SECTIONS.values() for command in commands)
    assert set(listed) == _defined() == set(cli.commands.values())
    assert set(listed.values()) == {1}
    assert list(SECTIONS) == ["Evaluate", "Look", "People", "Data and models", "Share", "Machine"]


def test_help_begins_with_the_three_ways_in(page: str) -> None:
    places = [page.index(start) for start in STARTS]
    assert places == sorted(places)
    assert places[-1] < page.index("\nEvaluate:")
    assert max(page.index(f"\n{title}:") for title in SECTIONS) < page.index("\nOptions:")


def test_help_lists_the_sections_in_order_each_command_in_a_whole_line(page: str) -> None:
    for title, commands in SECTIONS.items():
        block = page.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in block] == [command.name for command in commands]
        for line, command in zip(block, commands, strict=True):
            assert len(line) <= 80
            text = line.strip().removeprefix(command.name or "").strip()
            assert "..." not in text
            assert (command.help or "").startswith(f"{text}.")


def test_completion_offers_the_commands_in_the_order_of_help(page: str) -> None:
    names = [command.name for commands in SECTIONS.values() for command in commands]
    assert cli.list_commands(click.Context(cli)) == names
    result = CliRunner().invoke(cli, ["--help"])
    assert re.findall(r"^  ([a-z][a-z-]*) {2,}", result.output, re.MULTILINE) == names


def test_commands_of_help_parse(tmp_path: Path, page: str) -> None:
    """The commands that help begins with are commands: wrong ones would be refused with code 2 and "see --help"."""
    from tests.docs.test_commands import parse

    for start in STARTS:
        (line,) = (line for line in page.splitlines() if line.strip().startswith(start))
        parse(re.split(r"\s{2,}", line.strip())[0].split()[1:])
