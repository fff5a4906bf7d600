"""The commands of docs/your-own-documents.md, run as printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command import ROOT, Rashomon

PAGE = ROOT / "docs" / "your-own-documents.md"


def commands() -> list[str]:
    """Return the command lines of the page."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_page_begins_with_a_check_that_works_in_any_clone(tmp_path: Path) -> None:
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    check, build = commands()[:2]
    output = Rashomon(tmp_path).run(*shlex.split(check)[1:]).stdout
    assert "48 of 48 rows can be used" in output
    assert not (tmp_path / "workspace").exists()
    assert "384 instances" in Rashomon(tmp_path).run(*shlex.split(build)[1:]).stdout


@pytest.mark.slow
def test_the_page_leads_to_a_recommendation(tmp_path: Path) -> None:
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    outputs = {}
    for line in commands():
        outputs[line] = Rashomon(tmp_path).run(*shlex.split(line)[1:]).stdout
    beside_a_rule, by_trust = (out for line, out in outputs.items() if " recommend " in line)
    assert "policy:always-text is a rule that answers without looking" in beside_a_rule
    assert by_trust.startswith("Recommended: model-")
