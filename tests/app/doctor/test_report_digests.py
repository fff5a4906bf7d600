"""A report that was edited, cut off or quoted after it was written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from app.doctor import CheckResult, machine_report
from app.doctor.report_digests import check_report
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from tests.support.command import Rashomon

STEPS = ["checks: ok, all 3 checks", "tokens: failed, of 20 answers, 19 one at a time"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    workspace = Workspace(tmp_path_factory.mktemp("home") / "workspace")
    return machine_report.report(workspace, [CheckResult("demo", True, "")], "none: not measured", STEPS)


def checked(tmp_path: Path, text: str) -> dict[str, str]:
    """Return the sections of a report that are not as written, and what happened to them."""
    (tmp_path / "report.txt").write_text(text)
    return {result.check: result.message for result in check_report(tmp_path / "report.txt") if not result.ok}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "  \n").replace("[", "    ["),
        lambda text: f"Hello,\nhere it is:\n```\n{text}```\nBest wishes: a reader\n",
        lambda text: f"{text}\n[make mac]\ntests: ok\n",
        lambda text: "".join(f"> {line}\n" for line in text.splitlines()),
        lambda text: "".join(f">> > {line}\n" for line in text.splitlines()),
        lambda text: "".join(f"| {line}\n" for line in text.splitlines()),
        lambda text: text.replace(" ", "\u00a0"),
        lambda text: f"\ufeff{text}",
        lambda text: f"Subject: {text.splitlines()[0]}\n\n{text}",
        lambda text: text * 2,
    ],
    ids=[
        *("as written", "of Windows", "indented", "in a mail", "with make's section", "quoted", "quoted thrice"),
        *("barred", "no-break spaces", "a mark of Windows", "a subject", "twice"),
    ],
)
def test_a_report_that_was_only_passed_on_is_as_written(
    change: Callable[[str], str], text: str, tmp_path: Path
) -> None:
    assert checked(tmp_path, change(text)) == {}


@pytest.mark.parametrize(
    ("change", "section"),
    [
        (lambda text: text.replace("tokens: failed", "tokens: ok"), "steps of doctor --full"),
        (lambda text: text.replace("demo: ok", "demo: ok\ndata: ok"), "checks"),
        (lambda text: text.replace("[disk]", "[disk]\n[machine]\nchip: M9"), "machine"),
        (lambda text: text[: text.index("[machine]")] + text[text.index("[libraries]") :], "machine"),
        (lambda text: "\n".join(line for line in text.splitlines() if not line.startswith("disk: ")), "digests"),
        (lambda text: text[: text.index("[digests]")], "report"),
        (lambda text: text[: text.rindex("whole: ")], "report"),
        (lambda text: text[: text.rindex("whole: ") + 9], "digests"),
        (lambda text: re.sub("(?m)^libraries: .*\n", "", text), "libraries"),
        (lambda text: text.replace("[machine]", "[X]"), "X"),
        (lambda text: text + text.replace("tokens: failed", "tokens: ok"), "steps of doctor --full (copy 2)"),
    ],
    ids=[
        "a value",
        "a line more",
        "twice",
        "a section less",
        "a digest less",
        "no digests",
        "cut off",
        "cut in the line",
        "a section's digest less",
        "a section's name",
        "a second one",
    ],
)
def test_what_was_edited_is_named(change: Callable[[str], str], section: str, text: str, tmp_path: Path) -> None:
    assert change(text) != text
    assert section in checked(tmp_path, change(text))


def test_a_section_that_was_not_edited_is_not_named(text: str, tmp_path: Path) -> None:
    assert set(checked(tmp_path, text.replace("tokens: failed", "tokens: ok"))) == {"steps of doctor --full"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_report_that_windows_saved_is_as_written(encoding: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_bytes(text.encode(encoding))
    assert [result.ok for result in check_report(tmp_path / "report.txt")] == [True]


def test_a_report_without_its_last_line_is_read_and_the_reason_is_true(text: str, tmp_path: Path) -> None:
    problems = checked(tmp_path, text[: text.rindex("whole: ")].replace("tokens: failed", "tokens: ok"))
    assert problems.keys() == {"steps of doctor --full", "report"}
    assert problems["report"] == "cut off, or its line 'whole' removed, since the report was written"


@pytest.mark.parametrize("content", [b"", b"a thesis", b"\xff\xfe\x00", b"x" * (2 << 20)])
def test_what_is_no_report_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_bytes(content)
    with pytest.raises(SpecError, match="report"):
        list(check_report(tmp_path / "report.txt"))


def test_the_command_names_the_edited_section_and_prints_no_escapes(text: str, tmp_path: Path) -> None:
    rashomon, file = Rashomon(tmp_path), tmp_path / "r.txt"
    file.write_text(text)
    assert "sections are as written; this shows no forgery" in rashomon.run("doctor", "--read", file).stdout
    file.write_text(text.replace("tokens: failed", "tokens: ok") + "\n[\x1b[2Jnew]\n")
    output = rashomon.run("doctor", "--read", file, code=1).stdout
    assert "FAIL  steps of doctor --full edited since the report was written" in output
    assert "\x1b" not in output
    assert "cannot be read as a report" in rashomon.run("doctor", "--read", tmp_path / "none", code=2).stderr
