"""Normal forms and coarse types of short answers."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.text.normal_form import coarse_type, normalise, number

_PIECES = [*"the an$€%.,-+0123459 kmb\"'()[]{}?!*_²°−ßİı½ﬁ\u0301\u200b\n", "percent", "million", "us$", "the ", "a "]
answers = st.one_of(st.text(max_size=12), st.lists(st.sampled_from(_PIECES), max_size=10).map("".join))


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("1,200.0", "1200"),
        ("64 %", "64"),
        ("64 percent", "64"),
        ("US$ 1.50", "1.5"),
        ("−5", "-5"),
        (".50", "0.5"),
        ("$1.4b", "1.4 billion"),
        ("5 km", "5 km"),
        ("１２", "12"),
        ("The United States.", "united states"),
        ("“Yes”", "yes"),
        ("Navy  blue", "navy blue"),
        ("10²", "10^2"),
        ("?", "?"),
        ("3.10.2", "3.10.2"),
    ],
)
def test_one_form_of_an_answer_written_differently(answer: str, form: str) -> None:
    assert normalise(answer) == form


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("1,200.5", 1200.5),
        ("-3", -3.0),
        ("40 km/h", 40.0),
        ("1.4 billion", 1.4e9),
        ("300 K", 300.0),
        ("300K", 300_000.0),
        ("12 million people", 12e6),
        ("65+", None),
        ("0-14", None),
        ("2010/11", None),
        ("1990s", None),
        ("5th", None),
        ("between 3 and 4", None),
        ("9 years and younger", None),
        ("[2003,2009]", None),
        ("nan", None),
        ("1e5", 1.0),  # read as 1 with the unit e5: no chart writes numbers so
        ("", None),
    ],
)
def test_numbers_are_whole_answers_only(answer: str, value: float | None) -> None:
    assert number(answer) == value


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("1900", "year"),
        ("2100", "year"),
        ("2008.", "year"),
        ("1899", "number"),
        ("2101", "number"),
        ("2,008", "number"),
        ("64%", "number"),
        ("Yes", "yes/no"),
        ("no.", "yes/no"),
        ("May 2020", "text"),
        ("Navy blue", "text"),
        ("٢٠٠٨", "text"),
    ],
)
def test_coarse_types_follow_the_papers_rule(answer: str, kind: str) -> None:
    assert coarse_type(answer) == kind


@settings(deadline=None)
@given(answers)
@example("e\u20ac\u0301")
@example("5 % %")
@example("$$5 million")
@example("$0B\u0300")
@example("the the cat")
def test_normal_form_is_idempotent(answer: str) -> None:
    normal = normalise(answer)
    assert normalise(normal) == normal
    assert number(normal) == number(answer)


@given(st.integers(-(10**12), 10**12))
def test_integer_notations_have_one_form(value: int) -> None:
    for written in (f"{value}", f"{value:,}", f"{value}.00", f" {value} %", f'"{value}."'):
        assert normalise(written) == str(value)
        assert number(written) == value


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    [
        "the " * 250_000,
        "1,1" * 300_000,
        "$ " * 500_000,
        "5" + " %" * 500_000 + "x",
        "9" * 1_000_000,
        '"(the ' * 150_000,
    ],
    ids=["articles", "separators", "currencies", "percents", "digits", "openings"],
)
def test_a_megabyte_takes_time_linear_in_its_length(hostile: str) -> None:
    started = time.process_time()
    assert normalise(hostile)
    assert number(hostile) is None
    assert time.process_time() - started < 10
