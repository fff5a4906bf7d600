"""The page as one document: its modules joined into one script, and a policy that allows only this script and its style."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

import app.view
from app.view.saved.page_document import document_parts, module_names, script

DRAWN = Path(app.view.__file__).parent / "drawn"
SHEETS = sorted(DRAWN.glob("*.css"))
MODULES = sorted(DRAWN.glob("*.js"))
DECLARATION = re.compile(r"^(?:export )?(?:async )?(?:function\*?|class|const|let|var) (\w+|\{[^}]*\})", re.MULTILINE)


def test_every_module_and_style_sheet_is_in_the_document() -> None:
    before, after = document_parts()
    assert sorted(module_names()) == [path.stem for path in MODULES]
    assert module_names()[-1] == "main"
    for path in SHEETS:
        assert path.read_text("utf-8") in before
    assert script() in after
    assert not re.search(r"<link rel=.stylesheet|src=|href=\"(?!#|data:,)", before + after.replace(script(), ""))


def test_modules_come_after_those_that_they_import() -> None:
    names = module_names()
    for name in names:
        for imported in re.findall(r'from "\./(\w+)\.js"', (DRAWN / f"{name}.js").read_text("utf-8")):
            assert names.index(imported) < names.index(name), f"{name} imports {imported}, which imports it"


def test_no_import_and_no_export_is_left() -> None:
    assert not re.search(r"^\s*(import|export)\b|\bimport\(", script(), re.MULTILINE)


def test_names_at_the_top_of_modules_are_unique() -> None:
    names = Counter(name for path in MODULES for name in DECLARATION.findall(path.read_text("utf-8")))
    assert [name for name, count in names.items() if count > 1] == []
    assert all(name.isidentifier() for name in names), "one name for each declaration"


def test_nothing_in_the_sources_ends_its_element_or_loads_anything() -> None:
    sources = {path.name: path.read_text("utf-8") for path in (*SHEETS, *MODULES)}
    for name, text in sources.items():
        assert not re.search(r"(?i)</(script|style)|<!--|<script", text), name
        assert not re.search(r"@import|url\(|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), (
            name
        )
        assert not re.search(r"(?<!www\.w3\.org)https?://(?!www\.w3\.org)", text), name


@pytest.mark.parametrize("element", ["style", "script"])
def test_the_policy_allows_the_style_and_the_script_by_their_digests(element: str) -> None:
    markup = "".join(document_parts())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', markup)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == rules["media-src"] == "data:"
    (text,) = re.findall(rf"<{element}[^>]*>(.*?)</{element}>", markup, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert rules[f"{element}-src"] == f"'sha256-{digest}'"
    assert markup.index("Content-Security-Policy") < markup.index("<style")
