"""Passages and the values that they state; the expected results were written by hand before the code had seen the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cmc_bench.construction.value_in_passage import (
    CONTRADICTS_COLUMN,
    NO_PASSAGE,
    SEVERAL,
    SILENT,
    UNCLEAR_STATED,
    UNREAD,
    UNTOLD,
    KnownNames,
    slip_warning,
    stated_answer,
)
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.rows.reader_types import RowProblem
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
    ("How many employees?", "104", "Headcount in DACH: 440 at the end of the year.", UNREAD),
    ("How many employees?", "1,204", "At the end of 2024 the company had 1,340 employees.", "1,340"),
    ("Wie viele Mitarbeiter?", "1.340", "Im Jahr 2025 waren es 1.204 Mitarbeiter.", "1.204"),
    ("Wie viele Mitarbeiter?", "1.340", "Im Jahr 2025 waren es 1340 Mitarbeiter.", UNCLEAR_STATED),
    ("How many units were sold?", "12", "On 12 March 2025 the shop reported 44 units.", "44"),
    ("How many units were sold?", "44", "On 12 March 2025 the shop reported 44 units.", RIGHT),
    ("How many units?", "7", "Of the 19 planned, 12 were built and 3 sold.", UNREAD),
    ("How many units?", "7", "The factory is closed on Sundays.", SILENT),
    ("How many units?", "7", "As table notes, one of the largest sites built 9.", UNREAD),
    ("How many sites in 2019?", "7", "In 2019 there were 9 sites.", "9"),
    ("Wie hoch war der Umsatz?", "32,1", "Der Umsatz betrug rund 32 Mio. EUR.", UNCLEAR_STATED),
    ("How many km?", "43", "The road is more than 40 km long.", UNCLEAR_STATED),
    ("How many visitors?", "1,998", "About 2,000 visitors came.", UNCLEAR_STATED),
    ("How many visitors?", "1,998", "About 3,500 visitors came.", "3,500"),
    ("What is the change?", "8", "The change is -8 points.", "-8"),
    ("What is the temperature?", "21 °C", "It was 19 °C at noon.", "19 °C"),
    ("How long is it?", "90 minutes", "The trip takes 1 h 30 min.", RIGHT),
    ("How long is it?", "90 minutes", "The trip of 40 km takes 2 hours.", "2 hours"),
    ("Wie lange?", "798 Tage", "Stand 31.12.2024: 611 Tage.", "611 Tage"),
    ("tausender punkt?", "1.204,5", "Wert: 1.204,5 Mio. EUR", RIGHT),
    ("How many?", "three", "There were five of them.", "five"),
    ("How many?", "3", "There were three of them.", RIGHT),
    ("How many units?", "1002", "Im Jahr 2024 lag der Absatz bei 6303 Stück.", UNREAD),
    ("How many units?", "1950", "In 2024 it was 1.870.", "1.870"),
    ("Headcount?", "1950", "In 2024 it was 1.870.", SEVERAL),
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
    ("What was the margin?", "12%", "Sales came to $40m.", UNREAD),
    # Years, dates and times.
    ("When did the bridge open?", "2015", "The bridge opened on 3 May 2019.", "3 May 2019"),
    ("When did the bridge open?", "2019", "The bridge opened on 3 May 2019.", RIGHT),
    ("In which year did sales peak?", "2015", "Sales peaked in 2017 with 44 units.", "2017"),
    ("In which year did sales peak?", "2015", "Sales peaked in 2017, after the crisis of 2008.", SEVERAL),
    ("Which year after 2008 was best?", "2015", "After 2008 the best one was 2017.", "2017"),
    ("In welchem Jahr?", "2015", "Der Rekord fiel ins Jahr 2021.", "2021"),
    ("In which year?", "2015", "It went well.", SILENT),
    ("In which year?", "2015", "It went well, with 44 units.", UNREAD),
    ("When is it due?", "12 March 2024", "It is due on 14 March 2024, as agreed in 2021.", "14 March 2024"),
    ("When is it due?", "12 March 2024", "Fällig am 12.03.2024.", RIGHT),
    ("Wann ist es fällig?", "12. März 2024", "Fällig ist es am 15. April 2024.", "15. April 2024"),
    ("When is it due?", "12 March 2024", "It is due in March 2024.", UNCLEAR_STATED),
    ("When does it start?", "9:30 am", "Doors open at 10:15 am.", "10:15 am"),
    ("Which quarter was best?", "Q3", "The best quarter was Q2.", "Q2"),
    # Names, yes and no, lists.
    ("Which region leads?", "DACH", "The leader is Benelux.", "Benelux"),
    ("Which region leads?", "DACH", "The leader is dach, as before.", UNCLEAR_STATED),
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
    # Rows that were added once the code had been written, with results by hand.
    (
        "What was the revenue in 2023?",
        "4.2 billion",
        "The report lists sales of $3.9 billion and 12,000 employees.",
        "$3.9 billion",
    ),
    ("What was the revenue in 2023?", "$4.2bn", "In 2023 revenue reached $4.2 billion.", RIGHT),
    ("Wie viele Filialen gab es 2022?", "87", "2022 gab es 91 Filialen.", "91"),
    (
        "Wie viele Filialen gab es 2022?",
        "87",
        "Ende 2021 zählte die Kette 91 Filialen und 2.300 Beschäftigte.",
        "91",
    ),
    ("How many days does delivery take?", "5 days", "Delivery takes 7 days within Europe.", "7 days"),
    ("How many days does delivery take?", "5", "Delivery takes 7 days within Europe.", "7 days"),
    ("How many days does delivery take?", "5", "Delivery takes 5 working days.", RIGHT),
    ("What is the CEO's name?", "Maria Lopez", "Since May, Jonas Weber has led the company.", "Jonas Weber"),
    ("What is the market share?", "23 %", "Its market share stood at 19.5%, ahead of Acme.", "19.5%"),
    ("What is the market share?", "23 %", "Its market share fell by 2 percentage points to 19.5%.", "19.5%"),
    ("What is the market share?", "23%", "Der Marktanteil beträgt 23,0 %.", RIGHT),
    ("Which year had the most sales?", "2018", "According to the report, 2020 had the most sales.", "2020"),
    ("Which year had the most sales?", "2018", "The report of 2021 says that 2020 had the most sales.", SEVERAL),
    ("What is the height?", "324 m", "The tower is 330 metres high and was finished on 31 March 1889.", "330 metres"),
    ("What is the height?", "324 m", "The tower is 324 metres high.", RIGHT),
    ("What is the height?", "324 m", "The tower is 1,063 feet high.", UNCLEAR_STATED),
    ("What does it cost?", "€49", "The plan costs €59 a month.", "€59"),
    ("What does it cost?", "49 EUR", "Das Paket kostet 49 Euro.", RIGHT),
    ("What does it cost?", "49", "Der Preis beträgt 59,00 EUR zzgl. 19 % MwSt.", UNREAD),
    ("How many goals?", "3", "They scored twice before the break.", SILENT),
    ("How many goals?", "3", "They won by four goals.", "four"),
    ("When was it founded?", "1998", "Founded in 1996 in Berlin, it has 40 staff.", "1996"),
    ("When was it signed?", "5 June 2021", "The contract dates from 2021-06-05.", RIGHT),
    ("When was it signed?", "5 June 2021", "The contract dates from 2021-06-15.", "2021-06-15"),
    ("What was the loss?", "-12.5", "The result was -14.0 in the end.", "-14.0"),
    ("What was the growth?", "8.2%", "Growth: 8.2 per cent (revised from 7.9 per cent).", RIGHT),
    ("What was the growth?", "8.2%", "Growth was 7.9 per cent in Q2 and is put at 8.4 per cent for Q3.", SEVERAL),
    ("Combien d'employés ?", "120", "L'entreprise compte 140 salariés.", UNREAD),
    ("What is the capital ratio?", "14.7", "Tier 1 capital ratio: 15.1", SEVERAL),
    ("What is on the sign?", "Exit 5", "The sign reads Exit 7.", UNTOLD),
    ("Is it open on Sundays?", "Yes", "Closed on Sundays.", SILENT),
    ("Is it open on Sundays?", "No", "Open on Sundays? Yes!", "Yes"),
    ("What was the headcount?", "1,950", "Headcount in 2024: 1,870.", "1,870"),
    ("What was the headcount?", "1950", "In 2024 headcount stood at 1870.", SEVERAL),
    ("How many patients?", "45", "A total of 60 patients (32 women, 28 men) took part.", "60"),
    ("How high is the dose?", "20 mg", "The dose is 0.02 g.", RIGHT),
    ("How high is the dose?", "20 mg", "The dose is 40 mg/day for 6 weeks.", "40 mg/day"),
    ("What time is the train?", "14:05", "The train leaves at 15:20 from platform 4.", "15:20"),
    ("Which quarter?", "Q1 2024", "Best was Q3 2024.", "Q3 2024"),
    ("What's the total?", "2,345", "| item | total |\n| all | 2,543 |", "2,543"),
    # Contexts in which a value is spelled, but not stated, or stated otherwise.
    ("How many visitors came?", "12,000", "The museum had 9,800 visitors in 2019.", "9,800"),
    ("How many visitors came?", "12,000", "The museum had 12,000 visitors, more than ever.", RIGHT),
    ("How many visitors came?", "12,000", "Fewer than 12,000 visitors came.", UNCLEAR_STATED),
    ("How many visitors came?", "12,000", "Version 12.0 of the report counts visitors.", UNREAD),
    ("How many employees?", "240", "See footnote 3 on employees.", UNREAD),
    ("What was the price?", "$19.99", "Formerly $19.99, the price is now $24.99.", UNCLEAR_STATED),
    ("What was the price?", "$19.99", "The price rose from $19.99 to $24.99.", UNCLEAR_STATED),
    ("What was the price?", "$24.99", "The price rose from $19.99 to $24.99.", RIGHT),
    ("What was the growth?", "5%", "Revenue contracted by 5%.", UNCLEAR_STATED),
    ("What was the growth?", "-5%", "Revenue contracted by 5%.", RIGHT),
    ("What was the growth?", "-5%", "Revenue fell by 7%.", "-7%"),
    ("How much did sales fall?", "5%", "Sales fell by 5%.", RIGHT),
    ("What was the loss?", "$3 million", "The loss was $3 million.", RIGHT),
    ("How old is she?", "43", "A 43-year-old woman.", UNCLEAR_STATED),
    ("Which country won?", "Poland", "Poland won; the polish team celebrated.", RIGHT),
    ("Which month?", "May", "You may go in June.", UNCLEAR_STATED),
    ("Which month?", "May", "May was best.", RIGHT),
    ("Who?", "Will Smith", "Will Smith won.", RIGHT),
    ("What is the yield?", "3.2%", "The yield is between 3.2% and 3.5%.", UNCLEAR_STATED),
    ("How many seats?", "101", "There are 101 seats in hall 3.", RIGHT),
    ("How many seats?", "101", "Hall 101 has 240 seats.", UNCLEAR_STATED),
    ("How many tonnes of rye?", "60", "Rye: 60 t.", RIGHT),
    ("How many tonnes of rye?", "60", "Rye: 55 t.", "55 t"),
    ("How many kilometres?", "12", "The road is 12 miles long.", UNCLEAR_STATED),
    ("Is it open?", "Yes", "Yes.", RIGHT),
    ("Is it open?", "Yes", "Yes and no.", UNCLEAR_STATED),
    ("Is it open?", "Yes", "No; closed.", "No"),
    ("In what year did it open?", "1998", "It opened in 2001 with 1998 guests.", UNCLEAR_STATED),
    ("In what year did it open?", "1998", "It has 1998 seats.", UNCLEAR_STATED),
    ("In what year did it open?", "1998", "The museum, opened in 1998, has 40 rooms.", RIGHT),
    ("What was the turnover?", "€5 million", "The turnover came to 5 million euros.", RIGHT),
    ("What was the turnover?", "€5 million", "The turnover was not 5 million euros.", UNCLEAR_STATED),
    ("What was the turnover?", "€5 million", "The city has 5 million inhabitants.", UNREAD),
    ("Wie viele Gäste kamen?", "340", "Es kamen mehr als 340 Gäste.", UNCLEAR_STATED),
    ("Wie viele Gäste kamen?", "340", "Es kamen 340 bis 360 Gäste.", UNCLEAR_STATED),
    ("Wie viele Gäste kamen?", "340", "Es kamen nicht 340, sondern 280 Gäste.", UNCLEAR_STATED),
    ("Wie viele Gäste kamen?", "340", "Es kamen 280 Gäste.", "280"),
    ("Wie hoch war die Veränderung?", "-3 %", "Der Umsatz ging um 3 % zurück.", UNCLEAR_STATED),
    ("Wie hoch war der Preis?", "12 €", "Siehe Seite 14.", UNREAD),
    ("How long is the bridge?", "850 m", "The bridge is 850m long (2,789 ft).", RIGHT),
    ("What is the score?", "75", "Score: 57.", "57"),
    ("What is the share?", "20%", "The share is 0.2%.", "0.2%"),
    ("How many planes?", "320", "The Airbus A320 was sold to 31 airlines.", UNREAD),
    ("What was the temperature?", "20 °C", "It was 20 °C, then 25 °C.", RIGHT),
    ("What was the dose?", "5 mg", "Patients got 5-10 mg.", UNCLEAR_STATED),
    ("What was the dose?", "5 mg", "The dose is 7 mg (n = 5).", "7 mg"),
    ("What percentage agreed?", "43", "43 people agreed.", UNCLEAR_STATED),
    ("What percentage agreed?", "43", "43 percent agreed.", RIGHT),
    ("How many people agreed?", "43", "43 percent agreed.", UNCLEAR_STATED),
    ("What is the population?", "1.2 million", "The population is 1.4 million.", "1.4 million"),
    ("Which team won?", "US", "Contact us for details.", UNCLEAR_STATED),
    ("What grade?", "B", "The grade is b.", UNCLEAR_STATED),
    ("What was revenue?", "4.1", "Revenue was 4.3 (2019: 3.9).", SEVERAL),
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
    if expected in (SEVERAL, UNCLEAR_STATED, SILENT, UNREAD, UNTOLD):
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


@pytest.mark.parametrize(
    ("passage", "column"), [("Kale: 51 tonnes.", "43 tonnes"), ("It is due on 5 May 2021.", "6 May 2021")]
)
def test_column_that_the_passage_contradicts_is_a_problem(passage: str, column: str) -> None:
    assert stated("What is the value of kale?", "43 tonnes", passage, text_answer=column).startswith(CONTRADICTS_COLUMN)


@pytest.mark.parametrize(
    ("answer", "value", "expected"),
    [
        ("64", "46", True),
        ("20%", "0.2%", True),
        ("1,204", "12,040", True),
        ("64", "67", False),
        ("2015", "2019", False),
        ("Rome", "Paris", False),
    ],
)
def test_slip_in_the_digits_is_a_warning(answer: str, value: str, expected: bool) -> None:
    assert bool(slip_warning(answer, value)) == expected
