"""The sentences that a report from a Mac would settle: each is on the page that docs/mac-report.md names."""

from __future__ import annotations

import re

import pytest

from tests.support.command import ROOT

PAGE = ROOT / "docs" / "mac-report.md"
ROWS = re.findall(r'^\| .+ \| \[[^]]+\]\(([^)]+)\) \| "(.+)" \|$', PAGE.read_text("utf-8"), re.MULTILINE)


def test_the_table_has_rows() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize(("page", "sentence"), ROWS)
def test_the_sentence_is_on_its_page(page: str, sentence: str) -> None:
    text = (PAGE.parent / page).read_text("utf-8").replace("**", "")
    own = text.partition("## Switches")[2] if page == PAGE.name else text
    assert sentence in own
