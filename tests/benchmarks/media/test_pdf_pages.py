"""Pages of PDF files: rendered in the decoder process, cached by content, and refused in a sentence."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.build import BuildOptions
from benchmarks.errors import ExtraMissingError, MediaError
from benchmarks.media import pdf_pages
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.media_limits import LARGEST_PAGE
from benchmarks.media.pdf_pages import PdfPage, parse_page
from benchmarks.registry import get_benchmark
from benchmarks.rows.files import NO_PAGE_NAMED, RawRow, image_loader
from benchmarks.rows.reader_types import RowProblem
from tests.support.pdf_files import encrypted_pdf, picture_pdf, raw_pdf


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pdf-pages"
    monkeypatch.setattr(pdf_pages, "_cache_folder", lambda: folder)
    return folder


def pixels(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def test_a_page_is_rendered_at_its_resolution(tmp_path: Path) -> None:
    (tmp_path / "two.pdf").write_bytes(picture_pdf(2))
    second = pixels(PdfPage(tmp_path / "two.pdf", 2)())
    assert second.size == (150, 75)
    assert second.getpixel((70, 30)) == pytest.approx((40, 10, 200), abs=4)


def test_a_page_is_rendered_once_and_again_after_its_file_changed(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(picture_pdf(1))
    first = PdfPage(file, 1)()
    (tmp_path / "copy.pdf").write_bytes(file.read_bytes())
    monkeypatch.setattr(pdf_pages, "run_decoder", lambda *_, **__: pytest.fail("a page was rendered again"))
    assert PdfPage(file, 1)() == PdfPage(tmp_path / "copy.pdf", 1)() == first
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(pdf_pages, "run_decoder", run_decoder)
    file.write_bytes(picture_pdf(2)[:-20] + b"\n%" + b"x" * 40 + b"\n%%EOF")
    assert pixels(PdfPage(file, 2)()).size == (150, 75)


def test_a_damaged_cache_is_rendered_again(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(picture_pdf(1))
    first = PdfPage(tmp_path / "a.pdf", 1)()
    next(cache.iterdir()).write_bytes(b"no picture")
    assert PdfPage(tmp_path / "a.pdf", 1)() == first


def test_a_poster_is_scaled_down(tmp_path: Path) -> None:
    (tmp_path / "poster.pdf").write_bytes(raw_pdf(b"", box="0 0 14400 14400"))
    width, height = pixels(PdfPage(tmp_path / "poster.pdf", 1)()).size
    assert 0.9 * LARGEST_PAGE < width * height <= 1.01 * LARGEST_PAGE


@pytest.mark.parametrize(
    ("data", "page", "reason"),
    [
        (picture_pdf(1)[:300], 1, pdf_pages.DAMAGED),
        (b"%PDF-1.7\n" + bytes(5000), 1, pdf_pages.DAMAGED),
        (b"", 1, pdf_pages.NO_PDF),
        (b"\x89PNG\r\n\x1a\n", 1, pdf_pages.NO_PDF),
        (encrypted_pdf(), 1, pdf_pages.ENCRYPTED),
        (picture_pdf(1), 2, pdf_pages.NO_PAGE),
        (picture_pdf(1), 0, pdf_pages.NO_PAGE),
    ],
    ids=["truncated", "junk", "empty", "picture", "encrypted", "beyond", "zero"],
)
def test_a_hostile_or_broken_file_is_refused(tmp_path: Path, data: bytes, page: int, reason: str) -> None:
    (tmp_path / "bad.pdf").write_bytes(data)
    with pytest.raises(MediaError) as error:
        PdfPage(tmp_path / "bad.pdf", page)()
    assert error.value.reason == reason


@pytest.mark.slow
def test_a_page_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bomb.pdf").write_bytes(raw_pdf(b" " * 600_000_000))
    with pytest.raises(MediaError):
        PdfPage(tmp_path / "bomb.pdf", 1)()


def test_a_row_names_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(picture_pdf(1))
    row = RawRow("log:1", {"image": "a.pdf#page=1"}, (tmp_path,), anywhere=True)
    assert pixels(image_loader(row, "image")()).size == (150, 75)
    with pytest.raises(RowProblem, match="page") as problem:
        image_loader(RawRow("log:1", {"image": "a.pdf"}, (tmp_path,), anywhere=True), "image")
    assert str(problem.value) == NO_PAGE_NAMED


def test_a_build_names_the_page_of_each_row(tmp_path: Path) -> None:
    pages = 4
    (tmp_path / "report.pdf").write_bytes(picture_pdf(pages))
    lines = [f"report.pdf#page={n},Which year is on page {n}?,{1990 + 7 * n}" for n in range(1, pages + 1)]
    (tmp_path / "rows.csv").write_text("\n".join(["image,question,answer", *lines]), "utf-8")
    build = get_benchmark("cmc-bench").build([("rows", str(tmp_path / "rows.csv"))], tmp_path / "out", BuildOptions())
    assert {row.picture for row in build.built_rows()} == {f"report.pdf#page={n}" for n in range(1, pages + 1)}


def test_a_row_of_a_folder_names_no_page_outside_it(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(picture_pdf(1))
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link.pdf").symlink_to(tmp_path / "a.pdf")
    for name in ("../a.pdf#page=1", "link.pdf#page=1"):
        with pytest.raises(RowProblem):
            image_loader(RawRow("log:1", {"image": name}, (tmp_path / "inside",)), "image")


def test_the_forms_of_a_page_name() -> None:
    assert parse_page("a/B.PDF#page=3") == ("a/B.PDF", 3)
    assert parse_page("b.pdf#4") == ("b.pdf", 4)
    assert parse_page("b.pdf") == ("b.pdf", None)
    assert parse_page("b.pdf#page=x") == ("b.pdf", None)
    assert parse_page("b.png") is None


def test_a_pdf_without_its_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(ExtraMissingError):
        PdfPage(tmp_path / "a.pdf", 1)()
