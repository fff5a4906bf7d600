"""Origin of a file's option and page numbers, which a single row does not show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from benchmarks.rows.cell_answers import option_texts, plain_text
from benchmarks.rows.cell_images import image_values, page_number
from benchmarks.rows.placeholder_texts import is_placeholder
from benchmarks.rows.reader_types import Fields, RowProblem

UNCLEAR_NUMBER = (
    "it is unclear whether the answer is an option's number or the text of an option; write the option's text"
)
PAGES_FROM_ZERO = "the pages are counted from 0, since a row names page 0; add 1 to each, a PDF's first page is 1"

_INTEGER = re.compile(r"\d{1,2}(?:[.,]0+)?")


class Counting:
    """The numbers of a file's first option and first page.

    ``rows`` reads the rows by column; all of them are read once when an answer is a number, and once when an image is a page.
    """

    def __init__(self, rows: Callable[[], Iterable[Fields]]) -> None:
        self._rows = rows

    def option(self, answer: str, options: Sequence[str]) -> str:
        """Return the option whose number is ``answer``, or else ``answer``. Raises RowProblem if it may be the option's text."""
        if not _INTEGER.fullmatch(answer) or self._first_option is None:
            return answer
        number = _integer(answer)
        place, named = number - self._first_option, _named(number, options)
        if named == [place] or (not named and self._all_numbers and 0 <= place < len(options)):
            return options[place] or answer
        if named and number <= len(options):
            raise RowProblem(UNCLEAR_NUMBER)
        return answer

    def check_pages(self, images: Iterable[object]) -> None:
        """Raise RowProblem if one of a row's images is a page of a PDF, and a row of the file names page 0."""
        if any(page_number(image) is not None for image in images) and self._pages_from_zero:
            raise RowProblem(PAGES_FROM_ZERO)

    @property
    def _first_option(self) -> int | None:
        """The number of the first option, 0 or 1; None if no answer can be an option's number only."""
        return self._options[0]

    @property
    def _all_numbers(self) -> bool:
        """True if all answers to questions with options are numbers of options."""
        return self._options[1]

    @cached_property
    def _options(self) -> tuple[int | None, bool]:
        has_numbers = zero = False
        all_numbers, over = True, -1
        for fields in self._rows():
            try:
                options, answer = option_texts(fields), plain_text(fields.get("answer"))
            except RowProblem:
                continue
            if not options or not answer or is_placeholder(answer):
                continue
            if not _INTEGER.fullmatch(answer):
                all_numbers = False
                continue
            number = _integer(answer)
            named = _named(number, options)
            zero = zero or number == 0
            has_numbers = has_numbers or not named
            over = max(over, number - len(options))
            all_numbers = all_numbers and not (named and number == 0)
        first = 0 if zero else 1
        return first if has_numbers else None, all_numbers and over < first

    @cached_property
    def _pages_from_zero(self) -> bool:
        return any(page_number(value) == 0 for fields in self._rows() for value in image_values(fields.get("image")))


def _integer(text: str) -> int:
    return int(re.split("[.,]", text)[0])


def _named(number: int, options: Sequence[str]) -> list[int]:
    """Return the places of the options that are a number, with or without a unit."""
    return [
        place
        for place, option in enumerate(options)
        if re.fullmatch(rf"\W*0*{number}(?:[.,]0+)?(?![.,]?\d)\W*\w{{0,12}}\W*", option)
    ]
