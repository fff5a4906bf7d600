"""Verdicts as files for continuous integration: JUnit XML, and Markdown for a pull request."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from app.exit_codes import FAILURES, INCONCLUSIVE, REGRESSED
from app.report.tables.table_rendering import to_markdown
from app.text.text_escaping import clean, markdown
from benchmarks.errors import RashomonError, SpecError
from benchmarks.untrusted.safe_files import write_named
from benchmarks.untrusted.typed_paths import typed_path
from benchmarks.vocabulary import Table

FAILURE, SKIPPED, ERROR = "failure", "skipped", "error"
_OUTCOMES = {REGRESSED: FAILURE, INCONCLUSIVE: SKIPPED, FAILURES: ERROR}
"""The outcome of a test in JUnit by the exit code of its verdict; none where it passed."""
_STANDARD_OUTPUT = "-"
_NONCHARACTERS = re.compile("[\ufffe\uffff]")
"""The characters besides those that :func:`clean` escapes that XML 1.0 cannot hold."""


@dataclass(frozen=True, slots=True)
class VerdictCase:
    """A test of a verdict, with the exit code of its own verdict; ``numbers`` is its output."""

    name: str
    exit_code: int
    message: str
    numbers: str = ""

    @property
    def outcome(self) -> str:
        """One of "failure", "skipped" and "error"; empty where it passed."""
        return _OUTCOMES.get(self.exit_code, "")


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """A verdict: the command and the run that it is about, the sentence, its tests, and what is written below them."""

    command: str
    run: str
    sentence: str
    cases: tuple[VerdictCase, ...]
    table: Table
    remarks: Sequence[str] = ()

    def junit(self) -> str:
        """Return the verdict as JUnit XML, a test case for each test, as the schema of Jenkins' xUnit plugin has it."""
        suite = ElementTree.Element("testsuite", name=_xml(self.command), tests=str(len(self.cases)), time="0")
        for outcome, name in ((FAILURE, "failures"), (ERROR, "errors"), (SKIPPED, "skipped")):
            suite.set(name, str(sum(case.outcome == outcome for case in self.cases)))
        for case in self.cases:
            element = ElementTree.SubElement(
                suite, "testcase", classname=_xml(f"{self.command}.{self.run}"), name=_xml(case.name), time="0"
            )
            if case.outcome:
                result = ElementTree.SubElement(element, case.outcome, message=_xml(case.message))
                if case.outcome != SKIPPED:
                    result.set("type", case.outcome)
                result.text = _xml("\n".join([self.sentence, *self.remarks]))
            ElementTree.SubElement(element, "system-out").text = _xml(case.numbers)
        suites = ElementTree.Element("testsuites")
        suites.append(suite)
        ElementTree.indent(suites)
        return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"

    def markdown(self) -> str:
        """Return the verdict as a sentence and a table in GitHub's Markdown."""
        remarks = "".join(f"\n- {markdown(remark)}" for remark in self.remarks)
        return f"**{markdown(self.sentence)}**\n\n{to_markdown(self.table)}" + (f"{remarks}\n" if remarks else "")


def is_printed(markdown_file: Path | None) -> bool:
    """Return whether the Markdown is printed instead of the text."""
    return str(markdown_file) == _STANDARD_OUTPUT


def check_files(junit: Path | None, markdown_file: Path | None, *, as_json: bool) -> None:
    """Raise SpecError for files that no verdict can be written to, or that two things would be."""
    if as_json and is_printed(markdown_file):
        raise SpecError("JSON and --markdown - would both be printed; name a file for the Markdown.")
    if str(junit) == _STANDARD_OUTPUT:
        raise SpecError("--junit prints nothing; name a file for the XML.")
    files = _files(junit, markdown_file)
    for path in files:
        if path.is_dir():
            raise SpecError(f"{path} is a folder; name a file in it for the verdict.")
    if len(files) > len(set(map(os.path.realpath, files))):
        raise SpecError(f"--junit and --markdown both name {files[0]}; name two files.")


def write_verdict(report: VerdictReport, junit: Path | None, markdown_file: Path | None) -> None:
    """Write a verdict to the files that are named, or print its Markdown. Raises the first error once all were tried."""
    if is_printed(markdown_file):
        print(report.markdown(), end="")
    error: RashomonError | None = None
    for path, text in ((junit, report.junit), (markdown_file, report.markdown)):
        for file in _files(path):
            try:
                write_named(file, text().encode("utf-8", "backslashreplace"))
            except RashomonError as problem:
                error = error or problem
    if error is not None:
        raise error


def _files(*paths: Path | None) -> list[Path]:
    return [typed_path(path) for path in paths if path is not None and str(path) != _STANDARD_OUTPUT]


def _xml(text: str) -> str:
    """Return a text without the characters that XML 1.0 cannot hold; those that :func:`clean` escapes stay visible."""
    return _NONCHARACTERS.sub("", clean(text, newlines=True))
