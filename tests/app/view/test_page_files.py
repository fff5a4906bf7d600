"""Files of the page: what the saved file, the content policy and readers rely on."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from textual.color import Color

import app.view
from app.tui.theme import OUTCOMES, STATES, contrast

DRAWN = Path(app.view.__file__).parent / "drawn"
MODULES = sorted(DRAWN.glob("*.js"))
IMPORT = re.compile(r'import \{ ([\w$]+(?:, [\w$]+)*) \} from "\./(\w+\.js)";')
TOP_LEVEL = re.compile(r"(?:export )?(?:async )?(?:function|class|const|let) (\w+)")
FORBIDDEN = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setHTML|srcdoc|style:|\bimport\("
)
COLOURS = ("text", "muted", "accent", "right", "wrong", "partial", "abstained", "invalid", "unjudged")
BACKGROUNDS = ("background", "surface", "raised", "selected")


def _names(module: Path) -> list[str]:
    return [match[1] for line in module.read_text().splitlines() if (match := TOP_LEVEL.match(line))]


def test_modules_can_be_put_into_one_script() -> None:
    names = [name for module in MODULES for name in _names(module)]
    assert sorted(names) == sorted(set(names)), "a name at the top level is that of another module"
    for module in MODULES:
        text = module.read_text()
        for line in text.splitlines():
            if line.startswith("import"):
                match = IMPORT.fullmatch(line)
                assert match, f"{module.name}: {line}"
                for name in match[1].split(", "):
                    assert re.search(
                        rf"^export (async )?(function|class|const|let) {name}\b", (DRAWN / match[2]).read_text(), re.M
                    ), line
        assert not re.search(r"^export (default|\{|\*)|^await ", text, re.M), module.name


@pytest.mark.parametrize("file", [*MODULES, DRAWN / "index.html"], ids=lambda path: path.name)
def test_texts_never_become_markup_and_nothing_is_loaded_from_elsewhere(file: Path) -> None:
    text = file.read_text()
    assert not re.search(FORBIDDEN, text)
    assert not re.search(r"""\s(on\w+|style)=["']""", text)
    assert set(re.findall(r"\bhttps?://[^\"'\s]*", text)) <= {"http://www.w3.org/2000/svg"}


def test_styles_load_nothing() -> None:
    for sheet in DRAWN.glob("*.css"):
        assert not re.search(r"url\(|@import|https?:", sheet.read_text()), sheet.name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_the_contrast_of_wcag_aa(theme: str) -> None:
    light, dark = re.findall(
        r'^:root(?:\[data-theme="dark"\])? \{(.*?)^\}', (DRAWN / "page.css").read_text(), re.M | re.S
    )
    values = dict(re.findall(r"--(\w+): (#\w{6});", light if theme == "light" else dark))
    for colour, background in product(COLOURS, BACKGROUNDS):
        ratio = contrast(Color.parse(values[colour]), Color.parse(values[background]))
        assert ratio >= 4.5, f"{colour} on {background}: {ratio:.2f}"
    for colour, background in product(("control", "focus"), BACKGROUNDS[:2]):  # of fields and the focus
        assert contrast(Color.parse(values[colour]), Color.parse(values[background])) >= 3


def test_glyphs_are_those_of_the_interface() -> None:
    text = (DRAWN / "appearance.js").read_text()
    for name, appearances in (("STATE_GLYPHS", STATES), ("OUTCOME_GLYPHS", OUTCOMES)):
        match = re.search(rf"const {name} = \{{(.*?)\}};", text)
        assert match
        glyphs = {key.strip('"'): glyph for key, glyph in re.findall(r'("?[\w-]+"?): "(.)"', match[1])}
        assert glyphs == {key: appearance.glyph for key, appearance in appearances.items()}
