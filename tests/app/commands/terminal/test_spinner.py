"""A command that works in silence says what it does on a terminal, on a line that is gone when it is done."""

from __future__ import annotations

import io
import re
import threading
from types import SimpleNamespace

import pytest

from app.commands.terminal import spinner as module
from app.commands.terminal.spinner import spinner
from tests.app.commands.data_and_models.test_get import hub, rashomon, tiny_model  # noqa: F401 - the Hub on loopback
from tests.support.command import Rashomon
from tests.support.fake_hub import FakeHub


class Screen(io.StringIO):
    """A terminal; ``written`` is set by whatever is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    result = Screen()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=result))  # pytest puts sys.stderr back as the test begins
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    return result


def test_what_takes_long_is_said_and_taken_away(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_SECONDS", 0.0)
    with spinner("reading") as say:
        assert screen.written.wait(60)
        say("drawing \x1b[31m" + "x" * 100)
    split = screen.getvalue().split("\r\x1b[K")
    assert split[:2] == ["", "reading ..."]
    assert split[2].startswith("drawing \\x1b[31mxxx")
    assert split[2].endswith("x ...")
    assert len(split[2]) < 40, "a line that is broken cannot be taken away"
    assert split[3:] == [""], "the last that is written takes the line away"


def test_what_is_quick_says_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_SECONDS", 3600.0)
    with spinner("reading") as say:
        say("drawing")
    assert screen.getvalue() == ""
    with pytest.raises(ValueError, match="as it was"), spinner("reading"):
        raise ValueError("as it was")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_nothing_is_said_where_nobody_sees_it(term: str, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_SECONDS", 0.0)
    monkeypatch.setenv("TERM", term)
    if term == "xterm":
        monkeypatch.setattr(screen, "isatty", lambda: False)
    before = threading.active_count()
    with spinner("reading") as say:
        say("drawing")
        assert threading.active_count() == before
    assert screen.getvalue() == ""


@pytest.mark.slow
def test_a_hub_that_does_not_answer_is_waited_for_in_words(hub: FakeHub, rashomon: Rashomon) -> None:  # noqa: F811
    tiny_model(hub)
    hub.faults["/org/tiny"] = ["wait 0"]
    code, out, message = rashomon.on_terminal(
        "models", "get", "org/tiny", "--dry-run", until="listing the files", then=hub.released.set
    )
    assert code == 0
    assert message == "\r\x1b[Klisting the files of org/tiny ...\r\x1b[K"
    assert "org/tiny" in out
    again = rashomon.run("models", "get", "org/tiny", "--dry-run").stdout
    free = re.compile(r"[\d.]+ GB free")
    assert free.sub("", out) == free.sub("", again)
