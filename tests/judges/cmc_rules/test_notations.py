"""Notations of one value: dates, times, units, amounts in parts, rates, names and option letters."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.cmc_rules.clauses import fold
from judges.cmc_rules.clock_times import find_times
from judges.cmc_rules.dates import find_dates
from judges.cmc_rules.options import chosen_option, parse_options
from judges.cmc_rules.quantities import find_quantities
from judges.cmc_rules.telephone import telephone_pattern
from judges.cmc_rules.units import unit_size
from tests.support.records import label

OPENED = "When did the shop open?"
SIZE = "How large is it?"

DATE_FORMATS: list[Callable[[date], str]] = [
    lambda d: f"{d.day} {d:%B} {d.year}",
    lambda d: f"{d:%B} {d.day}, {d.year}",
    lambda d: f"{d:%b}. {d.day} {d.year}",
    lambda d: f"{d.day}th of {d:%B}, {d.year}",
    lambda d: d.isoformat(),
    lambda d: f"{d:%Y/%m/%d}",
    lambda d: f"{d:%d.%m.%Y}",
    lambda d: f"{d:%d-%b-%Y}",
    lambda d: f"{d:%A}, {d:%B} {d.day}, {d.year}",
]
FRAMES = ["{}", "The answer is {}.", "It opened on {}.", "The text says otherwise, but the shop opened on **{}**"]
DAYS = st.dates(date(1900, 1, 1), date(2099, 12, 31))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(DAYS, st.sampled_from(DATE_FORMATS), st.sampled_from(DATE_FORMATS), st.sampled_from(FRAMES), st.integers(1, 400))
def test_date_agrees_in_every_format_and_another_day_does_not(
    day: date, reference: Callable[[date], str], answer: Callable[[date], str], frame: str, later: int
) -> None:
    other = day + timedelta(days=later)
    third = day - timedelta(days=later)
    said = frame.format(answer(day))
    assert label(said, reference(day), reference(other), OPENED) == "IMAGE"
    assert label(said, reference(other), reference(day), OPENED) == "TEXT"
    assert label(said, reference(other), reference(third), OPENED) == "NEITHER"


@pytest.mark.parametrize(
    ("answer", "image", "text", "expected"),
    [
        ("12/3/21", "12 March 2021", "15 March 2021", "IMAGE"),
        ("3/12/2021", "12 March 2021", "15 March 2021", "IMAGE"),
        ("12/3/21", "12 March 2021", "3 December 2021", "NEITHER"),
        ("12.3.21", "12 March 2021", "3 December 2021", "IMAGE"),
        ("2/1/2010", "1/2/2010", "5/5/2011", "NEITHER"),
        ("12 March", "12 March 2021", "15 March 2021", "IMAGE"),
        ("12 March", "12 March 2021", "12 March 2020", "NEITHER"),
        ("March 2021", "12 March 2021", "15 March 2021", "NEITHER"),
        ("03/2021", "March 2021", "April 2021", "IMAGE"),
        ("2003-04-12", "12 April 2003", "2003-04-13", "IMAGE"),
        ("12. März 2021", "12 March 2021", "15 March 2021", "IMAGE"),
        ("31/02/2021", "28 February 2021", "3 March 2021", "NEITHER"),
        ("Not 2021-03-12 but 2021-03-15.", "12 March 2021", "15 March 2021", "TEXT"),
        (
            "The chart says 12 March 2021; the text, 2021-03-15. I trust the text.",
            "Mar 12, 2021",
            "Mar 15, 2021",
            "TEXT",
        ),
    ],
)
def test_ambiguous_and_partial_dates(answer: str, image: str, text: str, expected: str) -> None:
    assert label(answer, image, text, OPENED) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("15:30", "IMAGE"),
        ("3.30 p.m.", "IMAGE"),
        ("It opens at half past three.", "IMAGE"),
        ("At 3:30", "IMAGE"),
        ("At 3:30 am.", "NEITHER"),
        ("16:00", "TEXT"),
        ("4 o'clock in the afternoon", "TEXT"),
        ("noon", "NEITHER"),
    ],
)
def test_times_of_day(answer: str, expected: str) -> None:
    assert label(answer, "3:30 PM", "4 PM", "When does it open?") == expected


@pytest.mark.parametrize(
    ("reference", "notation"),
    [
        ("0.0174 m^3/s", "17.4 L/s"),
        ("20 m/s", "72 km per hour"),
        ("20 m/s", "20 metres per second"),
        ("2 g/cm^3", "2000 kg/m³"),
        ("1.5 hours", "an hour and a half"),
        ("1.5 h", "90 minutes"),
        ("1.5 h", "1 hour and 30 minutes"),
        ("66 inches", "5 ft 6 in"[:-2] + "inches"),
        ("3.5 cups", "3 1/2 cups"),
        ("2.5", "two and a half"),
        ("68 °F", "20 °C"),
        ("£5", "5 pounds"),
        ("4.536 kg", "10 pounds"),
        ("$3.2m", "USD 3.2 million"),
        ("100000000", "10^8"),
        ("1200.50", "1 200.50"),
        ("3.14159", "3.1"),
        ("twenty-first", "21st"),
        ("20500", "20.5 billion"),
        ("USD 99 per year", "$8.25 per month"),
        ("20 km", "20 km per week"),
        ("03-5418-2200", "+81 3 5418 2200"),
        ("Type 2 diabetes", "type II diabetes"),
        ("Dr. Maria Lopez", "Maria Lopez"),
        ("bacterium", "bacteria"),
        ("carbon dioxide", "CO₂"),
        ("Shop.com", "Shop"),
        ("evaporation", "evapouration"),
    ],
)
def test_notations_of_one_value_agree(reference: str, notation: str) -> None:
    for frame in ("{}", "It is {}.", "The answer is {}"):
        assert label(frame.format(notation), reference, "777", SIZE) == "IMAGE"


@pytest.mark.parametrize(
    ("reference", "notation"),
    [
        ("0.0174 m^3/s", "17.4 m^3/s"),
        ("60 km/h", "60 m/s"),
        ("1.5 h", "1.5 minutes"),
        ("20 °C", "22 °C"),
        ("20 °C", "20 °F"),
        ("USD 99 per year", "$99 per month"),
        ("5 kg", "5 V"),
        ("3.14159", "3.2"),
        ("0.174", "0.2"),
        ("20500", "20.6 billion"),
        ("03-5418-2200", "03-5418-2201"),
        ("03-5418-2200", "03-5418-22001"),
        ("Type 2 diabetes", "type I diabetes"),
        ("typical", "atypical"),
        ("absorption", "adsorption"),
        ("carbon dioxide", "CO"),
    ],
)
def test_similar_notations_of_another_value_do_not_agree(reference: str, notation: str) -> None:
    for frame in ("{}", "It is {}.", "The answer is {}"):
        assert label(frame.format(notation), reference, "777", SIZE) == "NEITHER"


LETTERED = "Which vehicle is it? A. red car B. blue van C. green bus"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", "TEXT"),
        ("(a)", "IMAGE"),
        ("The answer is (B).", "TEXT"),
        ("Option A", "IMAGE"),
        ('{"answer": "A"}', "IMAGE"),
        ("C", "NEITHER"),
        ("D", "NEITHER"),
        ("A or B", "NEITHER"),
        ("It is not A", "NEITHER"),
        ("The answer is A: green bus", "NEITHER"),
        ("The answer is A. It is a green bus, as shown.", "NEITHER"),
    ],
)
def test_letter_stands_for_the_option_that_the_question_prints(answer: str, expected: str) -> None:
    assert label(answer, "red car", "blue van", LETTERED) == expected


def test_letter_means_nothing_without_printed_options() -> None:
    assert label("B", "red car", "blue van", "Which vehicle is it?") == "NEITHER"
    assert label("red car", "A", "B", LETTERED) == "IMAGE"


@pytest.mark.parametrize(
    ("answer", "image", "text", "question", "expected"),
    [
        ("Total: $23\nTax: $2\nSubtotal: $21", "$23", "$27", "What is the total?", "IMAGE"),
        ("- Bolivia\n- Germany", "[Germany, Bolivia]", "[Chile, Peru]", "Which countries?", "IMAGE"),
        ("They spend $246 - $329.", "246", "329", "How much do they spend?", "BOTH"),
        ("The axis runs from 246 to 329.", "246", "329", "How much do they spend?", "NEITHER"),
        ("Ada has the second highest score.", "Yes", "No", "Does Ada have the highest score?", "TEXT"),
        ("Not always.", "Yes", "No", "Does it only decline?", "TEXT"),
        (
            "The volume falls as the pressure goes up.",
            "decreases",
            "increases",
            "What does the volume do when pressure rises?",
            "IMAGE",
        ),
        ("The label is too blurry to read.", "12", None, "What is the price?", "ABSTAIN"),
        ("The dashboard shows 12, but the report lists 15.", "12", "15", "How many?", "ABSTAIN"),
    ],
)
def test_lists_spans_and_changes(answer: str, image: str, text: str | None, question: str, expected: str) -> None:
    assert label(answer, image, text, question) == expected


def test_unknown_and_hostile_units_have_no_size() -> None:
    assert unit_size("widgets") is None
    assert unit_size("dollar per kg") is None
    assert unit_size("m/" * 500) is None


READERS: list[Callable[[str], object]] = [
    find_dates,
    find_times,
    find_quantities,
    parse_options,
    telephone_pattern,
    unit_size,
    lambda text: chosen_option(text, {"A": "one", "B": "two"}),
]
PIECES = "12 3 2021 march mar. / - . : , am p.m. past to half quarter and a an hour m^3 /s per kg $ (a) B. 10^ e9 \n + ' ° 1/2"
HOSTILE = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES.split(" ")), max_size=40).map(" ".join))


@given(HOSTILE)
def test_readers_accept_any_text(text: str) -> None:
    for reader in READERS:
        reader(text)
        reader(fold(text))


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "12/",
        "1-",
        "march ",
        "12 march ",
        "3:",
        "half ",
        "1 m/",
        "5 per ",
        "a",
        "A. ",
        "1 and a ",
        "10^",
        "(1)",
        "1 h 2 m ",
    ],
)
def test_readers_take_linear_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000] + "x"
    started = time.process_time()
    for reader in READERS:
        reader(text)
    assert time.process_time() - started < 3  # seconds, on a slow machine
