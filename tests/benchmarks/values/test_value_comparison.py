"""Equality of values: pairs labelled by hand, every writer's notation of one value, any text, and the time it takes."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.values import compare
from benchmarks.values.number_comparison import compare_numbers, in_one_unit
from benchmarks.values.numerals import find_numbers
from benchmarks.values.parse_value import parse
from benchmarks.values.question_facts import read_question
from tests.support.sampled import some_fast

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT.parent / "shared" / "cases" / "values.jsonl"


def _pairs(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


PAIRS = _pairs(ROOT / "tests" / "data" / "value_pairs.jsonl")


def _verdict(a: str, b: str, question: str = "") -> str:
    verdict = compare(a, b, question).verdict
    assert compare(b, a, question).verdict == verdict, (a, b)
    return verdict


def _all_same(notations: list[str], question: str = "") -> None:
    for a in notations:
        for b in notations:
            assert _verdict(a, b, question) == "same", (a, b, compare(a, b, question))


# --- pairs ---------------------------------------------------------------------------------------


def test_there_are_pairs_of_each_verdict() -> None:
    assert len(PAIRS) == 146
    assert {pair["expect"] for pair in PAIRS} == {"same", "different", "unclear"}


@pytest.mark.parametrize("pair", PAIRS + _pairs(CASES), ids=lambda pair: f"{pair['a']} | {pair['b']}")
def test_pair_has_its_verdict(pair: dict[str, str]) -> None:
    a, b, question = pair["a"], pair["b"], pair.get("question", "")
    assert _verdict(a, b, question) == pair["expect"], compare(a, b, question).reason


@pytest.mark.parametrize(
    ("a", "b", "question"),
    [
        ("43", "43%", "What percentage is it?"),
        ("1.5", "1.5 million", "How many million people live there?"),
        ("$15", "15", "How many dollars does it cost?"),
        ("Larva", "(B)", "What comes next? (A) Egg (B) Larva"),
    ],
)
def test_the_question_settles_what_the_pair_leaves_open(a: str, b: str, question: str) -> None:
    assert _verdict(a, b, question) == "same"
    assert _verdict(a, b) != "same"


def test_numbers_within_the_tolerance_are_the_same() -> None:
    assert compare("102", "100", tolerance=0.05).verdict == "same"
    assert compare("106", "100", tolerance=0.05).verdict == "different"
    assert compare("102 km", "100,000 m", tolerance=0.05).verdict == "same"


def test_order_of_a_list_counts_only_where_the_question_asks_for_it() -> None:
    assert _verdict("rye, kale", "kale and rye") == "same"
    assert _verdict("rye, kale", "kale and rye", "Rank them from highest to lowest.") == "different"


def test_numbers_without_a_common_unit_have_no_readings_in_one() -> None:
    kilometre, metre, kilogram = (find_numbers(text)[0] for text in ("1 km", "1,000 m", "1 kg"))
    readings = in_one_unit(kilometre, metre)
    assert readings is not None
    assert readings[0][0].value == readings[1][0].value
    assert in_one_unit(kilometre, kilogram) is None
    assert compare_numbers(kilometre, metre, read_question("")).verdict == "same"


# --- one value in every notation -----------------------------------------------------------------

ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
"""
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def in_words(n: int) -> str:
    """Return an English number."""
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if n >= size:
            rest = n % size
            return f"{in_words(n // size)} {name}" + (f" {in_words(rest)}" if rest else "")
    if n >= 20:
        return TENS.split()[n // 10 - 2] + (f"-{ONES.split()[n % 10]}" if n % 10 else "")
    return ONES.split()[n]


def notations_of(n: int) -> list[str]:
    grouped = f"{n:,}"
    return [
        str(n),
        grouped,
        grouped.replace(",", " "),
        grouped.replace(",", "'"),
        grouped.replace(",", "\u202f"),
        f"{grouped}.0",
        f"{grouped.replace(',', '.')},0",
        in_words(n),
        f"**{n}**",
        f"approximately {grouped}.",
    ]


@given(st.integers(0, 999_999_999))
@example(12_500)
@example(1_984)
def test_number_is_itself_in_every_notation(n: int) -> None:
    _all_same(notations_of(n))


@given(st.integers(1, 10_000), st.sampled_from(["thousand", "million", "billion", "trillion"]))
def test_magnitude_is_written_or_spelled(n: int, name: str) -> None:
    size = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}[name]
    _all_same([f"{n} {name}", f"{n * size:,}", f"{n:,}.0 {name}s"])


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)))
@example(datetime.date(2020, 2, 29))
def test_date_is_itself_in_every_format(date: datetime.date) -> None:
    day, month, year = date.day, date.strftime("%B"), date.year
    _all_same(
        [
            f"{day} {month} {year}",
            f"{month} {day}, {year}",
            f"{date.strftime('%b')} {day} {year}",
            f"{year}-{date.month:02}-{day:02}",
            f"{day:02}.{date.month:02}.{year}",
            f"the {day}th of {month} {year}",
            f"{year}年{date.month}月{day}日",
        ]
    )


@given(st.times())
def test_time_of_day_is_itself_on_either_clock(clock: datetime.time) -> None:
    hour, half = clock.hour % 12 or 12, "a" if clock.hour < 12 else "p"
    notations = [
        f"{hour}:{clock.minute:02} {half}m",
        f"{hour}.{clock.minute:02} {half}.m.",
        f"{hour:02}:{clock.minute:02}{half.upper()}M",
    ]
    if clock.hour >= 13 or clock.hour < 10:
        notations += [f"{clock.hour:02}:{clock.minute:02}", f"{clock.hour:02}.{clock.minute:02} Uhr"]
    _all_same(notations)


@given(st.integers(1, 47), st.integers(1, 59))
def test_duration_is_itself_in_every_unit(hours: int, minutes: int) -> None:
    total = 60 * hours + minutes
    _all_same([f"{hours} h {minutes} min", f"{total} minutes", f"{total * 60} seconds", f"{total * 60:,} s"])


@given(st.integers(1, 99_999))
def test_length_is_itself_in_every_unit(n: int) -> None:
    _all_same([f"{n} km", f"{n:,}.0 kilometres", f"{n * 1000} m", f"{n * 1000:,} metres", f"{n * 100_000} cm"])
    kilometres, millimetres = divmod(n * 1_609_344, 1_000_000)
    _all_same([f"{n} miles", f"{n} mi", f"{kilometres}.{millimetres:06} km", f"{n * 1760} yards"])


CURRENCIES = [
    ("€", "EUR", "euros"),
    ("US$", "USD", "US dollars"),
    ("£", "GBP", "British pounds"),
    ("¥", "JPY", "yen"),
    ("₹", "INR", "rupees"),
]


@given(st.integers(2, 10**9), st.sampled_from(CURRENCIES), st.sampled_from(CURRENCIES))
def test_amount_of_money_is_itself_by_sign_code_and_name(
    n: int, currency: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    def notations(sign: str, code: str, name: str) -> list[str]:
        return [f"{sign}{n:,}", f"{code} {n:,}", f"{n} {code}", f"{n:,} {name}", f"{n:,}.00 {code}"]

    _all_same(notations(*currency))
    if currency != other:
        assert _verdict(notations(*currency)[0], notations(*other)[1]) == "different"


# --- different values ----------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.data())
def test_different_numbers_are_never_the_same(a: int, b: int, data: st.DataObject) -> None:
    if a != b:
        first, second = (data.draw(st.sampled_from(notations_of(n))) for n in (a, b))
        assert _verdict(first, second) != "same"


@given(st.integers(1, 9_999), st.sampled_from(["km", "kg", "%", "hours", "€", "°C"]), st.sampled_from(["m", "g", "s"]))
def test_unit_is_part_of_the_value(n: int, unit: str, other: str) -> None:
    assert _verdict(f"{n} {unit}", f"{n} {other}") == "different"
    assert _verdict(f"{n} {unit}", f"{n}") == "unclear"


@given(st.dates(datetime.date(1000, 1, 1), datetime.date(2999, 12, 31)), st.integers(1, 10_000))
def test_different_dates_are_never_the_same(date: datetime.date, days: int) -> None:
    other = date - datetime.timedelta(min(days, date.toordinal() - datetime.date(1000, 1, 1).toordinal()))
    if date != other:
        assert _verdict(date.isoformat(), f"{other.day} {other.strftime('%B')} {other.year}") == "different"


# --- any text ------------------------------------------------------------------------------------

PIECES = """
12 1,200 1.234,5 ½ 3/4 1/0 10^999 5e300 one twenty hundred third half dozen % $ € 5t 5 km km/h m^2 °C dB/m qm^4·qm^4 pH XYZ 5ᵗʰ
31.02.2013 2月30日 13月40日 25:61 0:00 am 13 pm noon Q3 1920s March may 2014-03 FY '20 between from to and or not no yes fıve sİx
United States UK A+ Dr. J. Smith II \\frac{1}{0} \\boxed{ $x$ { } ( ) [ ] " ' * _ . , ; : - – ~ ≈ < > | # \n \t \x00 \x85 \u2028
\ud800 \ue000 \u200b \u202e \u0301 ß ﬃ ① ٣ १ 万 年 はい 是 🙂 👩‍👩‍👧 ẞ İ ŉ ǅ
"""
FRAGMENTS = st.builds(
    lambda words, space: space.join(words),
    st.lists(st.sampled_from(PIECES.split(" ")), max_size=12),
    st.sampled_from(" ,"),
)
ANY_TEXT = st.one_of(st.text(), st.text(st.characters()), FRAGMENTS)


@settings(max_examples=400)
@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_two_texts_compare_and_in_either_order_alike(a: str, b: str, question: str) -> None:
    _verdict(a, b, question)
    assert _verdict(a, a, question) == "same"


HOSTILE = {
    "letters": "a" * 100_000,
    "words": "ab " * 33_000,
    "combining characters": "e" + "\u0301" * 100_000,
    "right to left": "\u202e" + "שלום " * 20_000,
    "400 digits": "9" * 400,
    "5,000 digits": "9" * 5_000,
    "commas": "1," * 50_000,
    "points": "1." * 50_000,
    "blanks": " " * 100_000,
    "number words": "twenty " * 15_000,
    "and": "one and " * 12_000,
    "units": "km/h " * 20_000,
    "brackets": "(" * 100_000,
    "formula": "\\frac{" * 16_000,
    "fractions": "1/0" * 30_000,
    "dates that do not exist": "31.02.2013, 30 February, 2月30日",
    "unknown currencies": "XQZ 12 ₿ 15 ZZZ",
    "not characters": "\ud800\udfff\x00\ufffe",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_only_itself(name: str) -> None:
    text = HOSTILE[name]
    assert _verdict(text, text, text) == "same"
    assert _verdict(text, "43 km", text) == "different"
    assert _verdict(text, text + " 43 km", text) != "same"


UNITS = [
    "a",
    "1,",
    "1 ",
    "twenty ",
    "(",
    "\\frac{",
    "\\text{",
    "$ ",
    "½",
    "\u0301",
    "' 1",
    "no, ",
    "2014-",
    "A. ",
    "km/h ",
]


def _seconds(text: str, other: str) -> float:
    """Return the process time of one comparison, the least of three."""
    times = []
    for _ in range(3):
        parse.cache_clear()
        read_question.cache_clear()
        start = time.process_time()
        compare(text, other, text)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("unit", some_fast(UNITS, 5))
def test_time_is_linear_in_the_length(unit: str) -> None:
    n = 200_000 // len(unit)
    short, long = _seconds(unit * n, "x" + unit * n), _seconds(unit * 2 * n, "x" + unit * 2 * n)
    assert long < 3 * short


def test_reason_is_a_phrase() -> None:
    results: list[Any] = [compare(pair["a"], pair["b"]) for pair in PAIRS]
    assert all(result.reason and not result.reason.endswith(".") for result in results)
