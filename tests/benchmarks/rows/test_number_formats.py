"""Values of spreadsheet cells as their owner sees them."""

from __future__ import annotations

import datetime

import pytest

from benchmarks.rows.number_formats import NOT_DISPLAYED, displayed_moment, displayed_number, displayed_text


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (0.125, "0%", "13%"),
        (0.145, "0%", "15%"),
        (2.5, "0", "3"),
        (1.25, "0.0", "1.3"),
        (1234.5, "#,##0", "1235"),
        (1.005, "0.00", "1.01"),
        (-2.5, "0", "-3"),
        (-0.3, "0", "0"),
        (0.482, "0.0 %", "48.2 %"),
        (48, '0"%"', "48%"),
        (1234567, "#,##0,", "1235"),
        (1500000, '0.0,,"m"', "1.5m"),
        (1500, '0.0, "K"', "1.5 K"),
        (12345, "0.00E+00", "12300"),
        (0.5, "# ?/?", "0.5"),
        (0.3421, "# ?/?", NOT_DISPLAYED),
        (-1, '"up";"down";"flat"', "down"),
        (0, '"up";"down";"flat"', "flat"),
        (0, '0;-0;"none"', "none"),
        (1, '[=1]"yes";[=0]"no";0', "yes"),
        (7, '[=1]"yes";[=0]"no";0', "7"),
        (1500, '[>=1000]#,##0.0,"K";0', "1.5K"),
        (5, ";;;", ""),
        (43, ";;", ""),
        (-1200, "#,##0;(#,##0)", "-1200"),
        (-1200, '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)', "$-1200.00"),
        (-0.052, "0.0%;[Red]-0.0%", "-5.2%"),
        (0.052, "+0.0%;-0.0%", "+5.2%"),
        (-5, "0.00;[Red]0.00", NOT_DISPLAYED),
        (5, '"<"0', "<5"),
        (1.5, '"$"0.0"B"', "$1.5B"),
        (4, '0" / 5"', "4 / 5"),
        (43, '"Level "0', "Level 43"),
        (43, '"Q1: "0', "Q1: 43"),
        (43, '0\\ \\k\\g', "43 kg"),
        (43, 'General" km"', "43 km"),
        (-43, 'General" km"', "-43 km"),
        (1200, "[$£-809]#,##0", "£1200"),
        (1200, "#,##0 [$kr-41D]", "1200 kr"),
        (123456789, "000-00-0000", NOT_DISPLAYED),
        (12.5, "0.0#", "12.5"),
        (7, "000", "007"),
        (7, "0;0;0;@", "7"),
    ],
)  # fmt: skip
def test_numbers(value: float, code: str, text: str) -> None:
    assert displayed_number(float(value), code) == text


NINTH = datetime.datetime(2024, 3, 9, 14, 5)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("dddd", "Saturday"),
        ("ddd", "Sat"),
        ("d", "9"),
        ("mmmm", "March"),
        ("m", "3"),
        ("h:mm", "14:05"),
        ("h:mm AM/PM", "14:05"),
        ("h AM/PM", "2 PM"),
        ("mm:ss", "05:00"),
        ('"Q1" yyyy', "Q1 2024"),
        ('"FY"yy', "FY24"),
        ("yyyy", "2024"),
        ("mmm-yy", "March 2024"),
        ("d.m.", "March 9"),
        ("ddd d mmm", "Sat 9 Mar"),
        ("d mmm yyyy", "2024-03-09"),
        ("[$-F800]dddd, mmmm dd, yyyy", "2024-03-09"),
        ('yyyy"年"m"月"d"日"', "2024-03-09"),
        ("dd/mm/yyyy hh:mm", "2024-03-09 14:05"),
        ("", "2024-03-09 14:05"),
        ("General", "2024-03-09 14:05"),
    ],
)
def test_dates(code: str, text: str) -> None:
    assert displayed_moment(NINTH, code) == text


def test_times_and_texts() -> None:
    assert displayed_moment(datetime.time(14, 5), "h:mm") == "14:05"
    assert displayed_moment(datetime.time(14, 5, 9), "h:mm:ss") == "14:05:09"
    assert displayed_moment(datetime.timedelta(hours=36), "[h]:mm") == "36:00:00"
    assert [displayed_text("43", code) for code in ("@", '@" km"', '0;-0;0;"text "@', "0;0;0;")] == [
        "43", "43 km", "text 43", "",
    ]  # fmt: skip
