"""The virtual table: any number of rows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from app.tui.style_sheets import STYLES
from app.tui.theme import legible_colours
from app.tui.widgets.table_columns import Column, Row
from app.tui.widgets.truncate_text import fit
from app.tui.widgets.virtual_table import VirtualTable
from tests.support.tui_stage import screen_text, strips, until

MILLION = 1_000_000


class Styled(App[None]):
    """An app with our styles and the colours they name."""

    CSS_PATH = STYLES

    def get_css_variables(self) -> dict[str, str]:
        variables = super().get_css_variables()
        return variables | legible_colours(variables)


class Shown(Styled):
    """A table of rows ``row 0``, ``row 1`` ..., and the pages it asked for."""

    def __init__(self, count: int, threaded: bool = False) -> None:
        super().__init__()
        self.count, self.threaded = count, threaded
        self.asked: list[int] = []
        self.said: list[str] = []

    def compose(self) -> ComposeResult:
        yield VirtualTable([Column("number", 9, right=True), Column("text", 0)], frozen=1)

    def on_mount(self) -> None:
        table = self.query_one(VirtualTable)
        table.show(self.count, self.page, threaded=self.threaded)
        table.focus()

    def page(self, first: int, count: int) -> Sequence[Row]:
        self.asked.append(first)
        return [[str(number), [(f"row {number} [b]\x1b", "bold")]] for number in range(first, first + count)]

    def on_virtual_table_selected(self, event: VirtualTable.Selected) -> None:
        self.said.append(f"selected {event.key}")


def grounds(strip: Strip) -> set[str]:
    """Return the colours that stand behind a line."""
    return {str(segment.style.bgcolor) for segment in strip if segment.style is not None and segment.text.strip()}


def test_a_million_rows_of_which_only_pages_are_asked() -> None:
    async def perform() -> None:
        app = Shown(MILLION)
        async with app.run_test(size=(60, 20)) as pilot:
            table = app.query_one(VirtualTable)
            assert r"row 0 [b]\x1b" in screen_text(app)
            assert grounds(strips(app)[1]) != grounds(strips(app)[2]), "the row under the cursor looks different"
            await pilot.press("j", "j", "k", "pagedown", "enter")
            await pilot.pause()
            assert app.said == ["selected 20"]
            assert "row 20 " in screen_text(app)
            await pilot.press("G")
            await pilot.pause()
            assert table.cursor == MILLION - 1
            assert f"row {MILLION - 1}" in screen_text(app)
            await pilot.press("g")
            await pilot.pause()
            assert "row 0 " in screen_text(app)
            assert len(app.asked) <= 4
            assert all("\x1b" not in strip.text for strip in strips(app))

    asyncio.run(perform())


def test_rows_that_come_from_a_thread() -> None:
    async def perform() -> None:
        app = Shown(500, threaded=True)
        async with app.run_test(size=(60, 20)) as pilot:
            await until(pilot, lambda: "row 3 " in screen_text(app))
            await pilot.press("G")
            await until(pilot, lambda: "row 499 " in screen_text(app))

    asyncio.run(perform())


def test_the_cursor_stays_with_its_row_when_rows_are_shown_anew() -> None:
    async def perform() -> None:
        app = Shown(3)
        async with app.run_test(size=(60, 20)) as pilot:
            table = app.query_one(VirtualTable)

            def page(first: int, count: int) -> Sequence[Row]:
                return [["", "x"]] * count

            table.show(3, page, keys=["a", "b", "c"])
            await pilot.press("j")
            table.toggle_mark()
            assert (table.cursor_key, table.marks) == ("b", {"b"})
            await pilot.press("j")
            table.show(4, page, keys=["new", "a", "c", "b"])
            assert table.cursor_key == "c"
            table.show(2, page, keys=["new", "a"])
            assert str(table.cursor_key) == "a"
            table.show(0, page, keys=[])
            assert table.cursor_key is None
            await pilot.press("j", "enter", "G")
            assert "nothing here" in screen_text(app)

    asyncio.run(perform())


def test_the_row_under_the_cursor_is_seen() -> None:
    async def perform() -> None:
        app = Shown(3)
        async with app.run_test(size=(60, 20)) as pilot:
            await pilot.press("j")
            await pilot.pause()
            lines = [list(strip)[:-1] for strip in strips(app)[1:4]]  # without the scroll bar
            grounds = [{segment.style.bgcolor for segment in line if segment.style} for line in lines]
            assert grounds[0] == grounds[2]
            assert len(grounds[1]) == 1
            assert not grounds[1] & grounds[0]

    asyncio.run(perform())


def lengthy(text: str) -> list[tuple[str, Style]]:
    """``text`` in up to three parts."""
    third = len(text) // 3
    return [(part, Style()) for part in (text[:third], text[third : 2 * third], text[2 * third :]) if part]


def test_names_lose_their_middle_and_keep_the_end_that_tells_them_apart() -> None:
    def cut(text: str, width: int, end: float = 0.5) -> str:
        return "".join(segment.text for segment in fit(lengthy(text), width, False, Style(), end))

    assert cut("Qwen3-VL-4B-Instruct-4bit", 16) == "Qwen3-VL…ct-4bit"
    assert cut("Qwen3-VL-4B-Instruct-8bit", 16) != cut("Qwen3-VL-4B-Instruct-4bit", 16)
    assert cut("short", 16) == "short" + " " * 11
    assert cut("図表の読み取り一号", 10) == "図表 …一号", "five cells and four: a space for half of a character"
    assert cut("abcdef", 1) == "…"
    assert cut("cmc-bench-Qwen3-VL-4B-Instruct-4bit-paper-0a1b2c3d", 24, 5 / 6) == "cmc-…4bit-paper-0a1b2c3d"
    assert "".join(s.text for s in fit(lengthy("Qwen3-VL-4B"), 6, False, Style(), 0)) == "Qwen3…"


@given(
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs", "Mn"))),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.5, 5 / 6, 1.0]),
)
def test_fit_returns_exactly_the_width(text: str, width: int, end: float) -> None:
    segments = fit(lengthy(text), width, False, Style(), end)
    assert sum(segment.cell_length for segment in segments) == width
    if cell_len(text) > width and text.isascii():
        shown = "".join(segment.text for segment in segments)
        begins, _, ends = shown.partition("…")
        assert len(ends) == int((width - 1) * end)
        assert text.startswith(begins)
        assert text.endswith(ends)


def test_a_name_of_any_length_is_cut_in_the_middle_and_made_harmless() -> None:
    class Named(Styled):
        def compose(self) -> ComposeResult:
            yield VirtualTable([Column("run", 0, tail=0.5)])

        def on_mount(self) -> None:
            rows = [["\x1b[31m" + "x" * 100_000 + "\x1b-4bit"]]
            self.query_one(VirtualTable).show(1, lambda first, count: rows)

    async def perform() -> None:
        app = Named()
        async with app.run_test(size=(40, 5)):
            row = screen_text(app).splitlines()[1]
            assert r"\x1b[31mxxx" in row
            assert r"xxx\x1b-4bit" in row

    asyncio.run(perform())


class Questions(Styled):
    """A list of 25 questions that agree in their first five words, and a hostile one."""

    TEXTS = tuple(
        f"What was the revenue in {region} in Q{quarter}?"
        for region in ("DACH", "Benelux", "Nordics", "Iberia", "[red]Asia[/]\x1b[2J")
        for quarter in range(1, 6)
    )

    def compose(self) -> ComposeResult:
        yield VirtualTable([Column("label", 8), Column("question", 0, distinct=True)], header=False)

    def on_mount(self) -> None:
        self.query_one(VirtualTable).show(
            len(self.TEXTS), lambda first, count: [["wrong", text] for text in self.TEXTS]
        )


def test_questions_in_a_narrow_list_show_what_sets_them_apart() -> None:
    async def perform() -> None:
        app = Questions()
        async with app.run_test(size=(30, 30)) as pilot:
            lines = screen_text(app).splitlines()[:25]
            assert len(set(lines)) == 25
            assert all(f"Q{number % 5 + 1}?" in line for number, line in enumerate(lines))
            assert "\x1b" not in "".join(lines)
            await pilot.resize_terminal(90, 30)
            await pilot.pause()
            lines = screen_text(app).splitlines()[:25]
            assert all("What was the revenue in" in line for line in lines)
            assert r"[red]Asia[/]\x1b[2J in Q5?" in lines[-1]

    asyncio.run(perform())
