"""What a passage states, row by row: the expected results were written by hand before the code had seen the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cmc_bench.construction.stated import (
    NO_PASSAGE,
    SEVERAL,
    SILENT,
    UNCLEAR_STATED,
    UNTOLD,
    KnownNames,
    stated_answer,
)
from benchmarks.cmc_bench.sources.base import SourceRow
from benchmarks.rows.base import RowProblem
from benchmarks.values import compare

RIGHT = "right"
NAMES = ("DACH", "Benelux", "Nordics", "Iberia", "New York", "York", "Anna Schmidt", "Jonas Weber", "Blue", "Dark blue")
"""The names among the answers of the table's other rows."""

ROWS = [
    # Numbers, in English and German notation.
    (
        "What was Umsatz in DACH in Q1?",
        "32,1",
        "Laut Bericht lag Umsatz DACH in Q1 bei 16,0 Mio. EUR.",
        "16,0 Mio. EUR",
    ),
    ("What was EBIT in DACH in Q4?", "5.5", "In Q4 2025 EBIT in DACH came to 5.5 Mio. EUR, up from last year.", RIGHT),
    ("What was EBIT in DACH in Q4?", "4", "In Q4 2025 EBIT in DACH came to 5.5 Mio. EUR.", "5.5 Mio. EUR"),
    ("How many employees?", "104", "Headcount in DACH: 440 at the end of the year.", "440"),
    ("How many employees?", "1,204", "At the end of 2024 the company had 1,340 employees.", "1,340"),
    ("Wie viele Mitarbeiter?", "1.340", "Im Jahr 2025 waren es 1.204 Mitarbeiter.", "1.204"),
    ("Wie viele Mitarbeiter?", "1.340", "Im Jahr 2025 waren es 1340 Mitarbeiter.", UNCLEAR_STATED),
    ("How many units were sold?", "12", "On 12 March 2025 the shop reported 44 units.", "44"),
    ("How many units were sold?", "44", "On 12 March 2025 the shop reported 44 units.", RIGHT),
    ("How many units?", "7", "Of the 19 planned, 12 were built and 3 sold.", SEVERAL),
    ("How many units?", "7", "The factory is closed on Sundays.", SILENT),
    ("How many units?", "7", "As table notes, one of the largest sites built 9.", "9"),
    ("How many sites in 2019?", "7", "In 2019 there were 9 sites.", "9"),
    ("Wie hoch war der Umsatz?", "32,1", "Der Umsatz betrug rund 32 Mio. EUR.", UNCLEAR_STATED),
    ("How many km?", "43", "The road is more than 40 km long.", UNCLEAR_STATED),
    ("How many visitors?", "1,998", "About 2,000 visitors came.", UNCLEAR_STATED),
    ("How many visitors?", "1,998", "About 3,500 visitors came.", "3,500"),
    ("What is the change?", "8", "The index moved by -8 points.", "-8"),
    ("What is the temperature?", "21 °C", "It was 19 °C at noon.", "19 °C"),
    ("How long is it?", "90 minutes", "The trip takes 1 h 30 min.", RIGHT),
    ("How long is it?", "90 minutes", "The trip of 40 km takes 2 hours.", "2 hours"),
    ("Wie lange?", "798 Tage", "Stand 31.12.2024: 611 Tage.", "611 Tage"),
    ("tausender punkt?", "1.204,5", "Wert: 1.204,5 Mio. EUR", RIGHT),
    ("How many?", "three", "There were five of them.", "five"),
    ("How many?", "3", "There were three of them.", RIGHT),
    # Money and percentages.
    ("What was revenue?", "$4.1 million", "Revenue fell to $3.2 million.", "$3.2 million"),
    ("What was revenue?", "$3.2 million", "Revenue fell to 3,200,000 dollars.", RIGHT),
    ("What was revenue?", "$4.1 million", "Revenue fell to $3.2 million from $3.9 million.", SEVERAL),
    ("What was revenue?", "$4.1 million", "In 12 countries revenue came to $3.2 million, up 4%.", "$3.2 million"),
    ("Was kostete es?", "7,40 €", "Der Preis beträgt 6,80 €.", "6,80 €"),
    ("What was revenue?", "5.5 Mio. EUR", "Revenue came to 5.5.", UNCLEAR_STATED),
    ("What was the margin?", "12.3%", "The margin was 9.1 percent on sales of $40m.", "9.1 percent"),
    ("Wie hoch war die Stornoquote?", "7,5 %", "Die Stornoquote lag bei 9,1 % nach Abzug von 3 Mio. EUR.", "9,1 %"),
    ("Wie hoch war die Quote?", "7,5 %", "Die Quote sank von 12,3 % auf 9,1 %.", SEVERAL),
    ("What percentage agreed?", "64", "Some 51% agreed; 1,000 people were asked.", "51%"),
    ("What was the margin?", "12%", "The margin was 12.3%.", UNCLEAR_STATED),
    ("What was the margin?", "12%", "Sales came to $40m.", SILENT),
    # Years, dates and times.
    ("When did the bridge open?", "2015", "The bridge opened on 3 May 2019.", "3 May 2019"),
    ("When did the bridge open?", "2019", "The bridge opened on 3 May 2019.", RIGHT),
    ("In which year did sales peak?", "2015", "Sales peaked in 2017 with 44 units.", "2017"),
    ("In which year did sales peak?", "2015", "Sales peaked in 2017, after the crisis of 2008.", SEVERAL),
    ("Which year after 2008 was best?", "2015", "After 2008 the best one was 2017.", "2017"),
    ("In welchem Jahr?", "2015", "Der Rekord fiel ins Jahr 2021.", "2021"),
    ("In which year?", "2015", "It went well.", SILENT),
    ("When is it due?", "12 March 2024", "It is due on 14 March 2024, as agreed in 2021.", "14 March 2024"),
    ("When is it due?", "12 March 2024", "Fällig am 12.03.2024.", RIGHT),
    ("Wann ist es fällig?", "12. März 2024", "Fällig ist es am 15. April 2024.", "15. April 2024"),
    ("When is it due?", "12 March 2024", "It is due in March 2024.", UNCLEAR_STATED),
    ("When does it start?", "9:30 am", "Doors open at 10:15 am.", "10:15 am"),
    ("Which quarter was best?", "Q3", "The best quarter was Q2.", "Q2"),
    # Names, yes and no, lists.
    ("Which region leads?", "DACH", "The leader is Benelux.", "Benelux"),
    ("Which region leads?", "DACH", "The leader is dach, as before.", RIGHT),
    ("Which region leads?", "DACH", "Benelux leads ahead of Iberia.", SEVERAL),
    ("Does DACH or Benelux lead?", "DACH", "Ahead of Benelux are the Nordics.", "Nordics"),
    ("Which region leads?", "DACH", "Osteuropa führt.", UNTOLD),
    ("Which city?", "Boston", "The office is in New York.", "New York"),
    ("Wer leitet das Projekt?", "Anna Schmidt", "Das Projekt leitet seit Mai Jonas Weber.", "Jonas Weber"),
    ("Which colour?", "Blue", "The line is dark blue.", "Dark blue"),
    ("Is it above the target?", "Yes", "No, it is below the target.", "No"),
    ("Is it above the target?", "No", "There is no doubt: yes.", "yes"),
    ("Is it above the target?", "Yes", "There was no change.", SILENT),
    ("Is it above the target?", "Yes", "According to the source, the value is No.", "No"),
    ("Liegt es über dem Ziel?", "Ja", "Nein, es liegt darunter.", "Nein"),
    ("Which two crops tie?", "kale, rye", "Kale and rye tie.", RIGHT),
    ("Which two crops tie?", "kale, rye", "Kale and oats tie.", UNCLEAR_STATED),
    ("Which two crops tie?", "kale, rye", "Oats and beet tie.", UNTOLD),
    ("Which years?", "2005-2008", "It ran from 2005 to 2009.", UNTOLD),
]


def stated(question: str, answer: str, passage: str, conflict: str = "", text_answer: str = "") -> str:
    """Return what a row's passage states, or the beginning of the reason why it cannot be told."""
    names = KnownNames()
    for name in NAMES:
        names.add(name)
    row = SourceRow("rows", "t.csv:2", "chartqa", question, answer, bytes)
    row = replace(row, passage=passage, conflict=conflict, text_answer=text_answer)
    try:
        return stated_answer(row, names)
    except RowProblem as problem:
        return str(problem)


@pytest.mark.parametrize(("question", "answer", "passage", "expected"), ROWS)
def test_passage_states_what_a_reader_says(question: str, answer: str, passage: str, expected: str) -> None:
    result = stated(question, answer, passage)
    if expected in (SEVERAL, UNCLEAR_STATED, SILENT, UNTOLD):
        assert result.startswith(expected)
    else:
        assert result == (answer if expected == RIGHT else expected)
        assert expected == RIGHT or compare(result, answer, question).verdict == "different"


@pytest.mark.parametrize(("column", "expected"), [("44", "44"), ("7", "7")])
def test_column_says_what_the_passage_states(column: str, expected: str) -> None:
    assert stated("How many?", "7", "Of 44 planned, 12 were built.", text_answer=column) == expected


def test_column_without_a_passage_is_a_problem() -> None:
    assert stated("How many?", "7", "", text_answer="44") == NO_PASSAGE


def test_wanted_conflict_that_the_passage_states_is_what_it_states() -> None:
    assert stated("How many?", "7", "Of 44 planned, 12 were built.", conflict="12") == "12"
