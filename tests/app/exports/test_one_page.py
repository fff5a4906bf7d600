"""The first page of a report is one page, whatever the runs are called and however many there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.exports.export_writer import write_files
from app.exports.report.report_document import Block, Bullets, Example, Paragraph, Report, Shares, Verdict
from app.exports.report.report_html import to_html
from app.exports.report.report_inputs import interval
from app.exports.report.report_latex import to_latex_files
from app.exports.report.report_one_page import LONGEST_NAME, fitted, short_names, with_short_names
from benchmarks.stats.intervals import wilson
from benchmarks.vocabulary import Estimate
from tests.app.exports.test_report import Home, follows, knows, some_fail
from tests.support.latex import compile_latex
from tests.support.runs import says

LONG = "org/Qwen2.5-VL-72B-Instruct-abliterated-mixed-precision-4bit-with-a-very-long-name-"
ANSWERS = (follows("image", but=7), follows("text", but=5), some_fail, says("I do not know"), says("nothing"), knows)
SECTION = "First of the sections"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("one-page"))


@pytest.fixture(scope="module")
def report(home: Home) -> Report:
    """Return the report of six models with long names and of three policies."""
    models = [home.run(f"long-{n}", says_it, f"{LONG}{n}") for n, says_it in enumerate(ANSWERS)]
    policies = [home.run(f"p-{s}", follows(s), f"policy:always-{s}") for s in ("image", "text")]
    return home.report(*models, *policies)


def worst_page() -> list[Block | str]:
    """Return the blocks of a page that is far too long."""
    names = [f"{LONG}{number}" for number in range(9)]
    share = wilson(10, 20)
    sentence = "When image and text disagree, it follows the text in 32 of 40 answers, and gives both in 8. "
    return [
        Verdict(f"Choose {names[0]}.", (sentence * 8,)),
        "What was tested",
        Paragraph(sentence * 12),
        "How often the answers are right",
        Shares(
            ("agree", "disagree"), tuple((name, "always the text's value", (share, share)) for name in names), "Alone. "
        ),
        f"What {names[0]} gets wrong",
        Bullets(tuple(("", sentence * 2) for _ in range(5))),
        Example((("Prompt", sentence * 4), ("It answers", sentence))),
        "Before you rely on this",
        Bullets(tuple(("A caution", sentence * 3) for _ in range(4))),
    ]


def page_with(section: str, pdf: Path) -> int:
    """Return the number of the page that has the title of a section."""
    pages = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, check=True, text=True).stdout.split("\f")
    return 1 + next(number for number, text in enumerate(pages) if re.search(rf"^\d?\s*{section}$", text, re.MULTILINE))


def print_page(html: str, folder: Path) -> Path:
    (folder / "report.html").write_text(html, "utf-8")
    command = [shutil.which("chromium") or "", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    pdf = folder / "printed.pdf"
    subprocess.run(
        [*command, f"--print-to-pdf={pdf}", (folder / "report.html").as_uri()],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return pdf


def pages(report: Report, blocks: Sequence[Block | str] | None = None) -> Report:
    return (
        report if blocks is None else Report(report.title, report.subtitle, blocks, report.sections, report.references)
    )


needs_latex = pytest.mark.skipif(not (shutil.which("pdflatex") and shutil.which("pdftotext")), reason="no pdflatex")
needs_browser = pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("pdftotext")), reason="no Chromium")


@needs_latex
@pytest.mark.slow
@pytest.mark.parametrize("worst", [False, True])
def test_the_first_page_is_one_page_of_latex(report: Report, tmp_path: Path, worst: bool) -> None:
    chosen = pages(report, fitted(report.title, report.subtitle, worst_page()) if worst else None)
    write_files(tmp_path, to_latex_files(chosen))
    compile_latex(tmp_path / "report.tex")
    assert page_with(report.sections[0].title, tmp_path / "report.pdf") == 2


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("worst", [False, True])
def test_the_first_page_is_one_printed_page(report: Report, tmp_path: Path, worst: bool) -> None:
    chosen = pages(report, fitted(report.title, report.subtitle, worst_page()) if worst else None)
    assert page_with(report.sections[0].title, print_page(to_html(chosen), tmp_path)) == 2


def test_what_matters_least_is_left_out_and_the_rest_stays() -> None:
    blocks = worst_page()
    result = fitted("Evaluation", "Tested.", blocks)
    kinds = [type(block) for block in result]
    assert kinds[:4] == [type(block) for block in blocks[:4]]
    lists = [block for block in result if isinstance(block, Bullets)]
    assert len(lists) == 2
    assert all(block.items for block in lists)
    (shares,) = (block for block in result if isinstance(block, Shares))
    assert len(shares.rows) + shares.further == 9
    small: list[Block | str] = [
        Verdict("Choose a.", ("It is the best.",)),
        Paragraph("All."),
        Bullets((("", "one"),) * 4),
    ]
    assert fitted("Evaluation", "Tested.", small) == small


def test_no_sentence_is_cut_off() -> None:
    for number in range(1, 9):
        sentence = f"{'a' * 40}-{'9' * 10 * number} follows the text in 32 of 40 answers (80.4%, 1 to 99% at 95%). "
        blocks = [*worst_page(), "From one model to the other", Paragraph(sentence * 5), Bullets((("", sentence * 3),))]
        blocks[0] = Verdict(f"Choose a. {sentence * 2}".strip(), (sentence * 4, sentence * 4))
        texts: list[str] = []
        for block in fitted("Evaluation", "Tested.", blocks):
            match block:
                case Verdict():
                    texts += [block.headline, *block.sentences]
                case Paragraph():
                    texts.append(block.text)
                case Bullets():
                    texts += [text for _, text in block.items]
        assert all(text.rstrip().endswith(".") for text in texts)


def test_names_are_short_and_distinct() -> None:
    names = [
        "a-model",
        *(f"{LONG}{number}" for number in range(12)),
        f"{LONG}1-of-another-lab",
        f"{LONG}1-of-one-more-lab",
    ]
    short = short_names(names)
    shown = [short.get(name, name) for name in names]
    assert len(set(shown)) == len(names)
    assert all(len(name) <= LONGEST_NAME for name in shown)
    assert shown[0] == "a-model"
    text = Paragraph(", ".join(names))
    (result,) = with_short_names([text], short)
    assert isinstance(result, Paragraph)
    assert result.text == ", ".join(shown)


def test_the_first_page_names_few_of_many_models(report: Report) -> None:
    text = " ".join(block.text for block in report.first_page if isinstance(block, Paragraph))
    assert LONG.removeprefix("org/") not in f"{report.title} {text}"
    assert "and 3 more" in report.title


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Estimate(0.0, 0.0, 0.0), "0%"),
        (Estimate(1.0, 1.0, 1.0), "100%"),
        (Estimate(0.5, 0.496, 0.504), "50%"),
        (Estimate(0.5, 0.4, 0.6), "40 to 60%"),
    ],
)
def test_an_interval_whose_ends_read_the_same_is_one_value(share: Estimate, shown: str) -> None:
    assert interval(share) == shown


def test_models_that_are_never_right_are_said_to_be_so_once(home: Home) -> None:
    none_right = [home.run(f"zero-{n}", says("51"), f"org/zero-{n}", 20) for n in range(2)]
    (verdict,) = (block for block in home.report(*none_right).first_page if isinstance(block, Verdict))
    sentences = " ".join(verdict.sentences)
    assert "shown the image alone, 0% of the answers are right" in sentences
    assert not re.search(r"\b(\S+%?) to \1", sentences)
