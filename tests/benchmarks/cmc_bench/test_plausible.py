"""Plausible contradicting values: of the right one's kind, unit, precision and magnitude, and nothing that gives them away."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from benchmarks.build import Build, BuildOptions, Difficulty
from benchmarks.cmc_bench import CMCBench
from benchmarks.cmc_bench.construction.contradiction_pairing import COMPOUND
from benchmarks.cmc_bench.construction.plausible_values import fits, made_values, value_kind
from benchmarks.cmc_bench.construction.written_number import read_number
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow
from benchmarks.values import compare
from benchmarks.values.dates_and_times import Moment
from benchmarks.values.parse_value import parse
from benchmarks.vocabulary import RIGHT_VALUE
from tests.support.command import ROOT, Rashomon
from tests.support.data.small import REAL_DATA, original_chartqa, write_lines, write_picture


def row(answer: str, question: str = "What is it?", **fields: str) -> SourceRow:
    return SourceRow("rows", "rows.csv:2", "chartqa", question, answer, lambda: b"", **fields)  # type: ignore[arg-type]


def values(answer: str, question: str = "What is it?", difficulty: Difficulty = "near", **fields: str) -> list[str]:
    """Return every value that is made for a row under ten seeds."""
    own = row(answer, question, **fields)
    kind = value_kind(own)
    made = [value for seed in range(10) for value in made_values(own, kind, difficulty, str(seed))]
    return [value for value in dict.fromkeys(made) if fits(own, kind, value)]


def build(folder: Path, rows: list[dict[str, str]], **options: object) -> Build:
    """Build rows, each with a picture of its own unless it names one."""
    rows = [{"image": f"{number}.png", "question": "What is it?", **own} for number, own in enumerate(rows)]
    folder.mkdir()
    for name in {own["image"] for own in rows}:
        write_picture(folder / name, int(name[0:-4]) if name[0].isdigit() else 1000 + ord(name[0]))
    write_lines(folder / "rows.jsonl", rows)
    return CMCBench().build([("rows", str(folder))], folder / "built", BuildOptions(**options))  # type: ignore[arg-type]


def contradictions(built: Build) -> dict[str, str]:
    """Return the wrong value of each right one."""
    rows = [own for own in built.rows() if own["condition"] == "image-correct"]
    return {own["references"]["image"]: own["references"]["text"] for own in rows}


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("$5.20", r"\$1?\d\.[1-9]0"),
        ("1,204", r"(\d,)?\d{3}"),
        ("1.234.567,89 €", r"(\d\.)?\d{3}\.\d{3},\d[1-9] €"),
        ("12 345", r"\d{1,2} \d{3}"),
        ("1,23,456", r"\d{1,2},\d\d,\d{3}|\d\d,\d{3}"),
        ("13.500", r"\d{1,2}\.\d00"),
        ("-4.5 °C", r"-\d\.\d °C"),
        ("1.4 billion", r"\d\.\d billion"),
        ("12,5 %", r"\d{1,2},[1-9] %"),
        ("400", r"\d00"),
        ("40 km/h", r"\d0 km/h"),
        ("3rd", r"1st|2nd|[4-9]th"),
        ("Three bars", r"(One|Two|Four|Five|Six) bars"),
        ("FY 2019", r"FY 20[12]\d"),
        ("$19.99", r"\$\d\d\.99"),
    ],
)
def test_number_keeps_its_unit_precision_and_notation(answer: str, form: str) -> None:
    made = values(answer)
    assert len(made) > 1
    assert [value for value in made if not re.fullmatch(form, value)] == []


@pytest.mark.parametrize("answer", ["7", "43", "98", "1,204", "0.69", "2372.1", "1065731", "$5.20"])
@pytest.mark.parametrize(("difficulty", "least", "most"), [("near", 1.12, 1.4), ("far", 1.4, 3.0)])
def test_number_is_within_the_band_of_its_difficulty(
    answer: str, difficulty: Difficulty, least: float, most: float
) -> None:
    right = read_number(answer)
    assert right is not None
    for value in (made := values(answer, difficulty=difficulty)):
        wrong = read_number(value)
        assert wrong is not None
        low, high = sorted((right.value, wrong.value))
        assert least <= high / low <= most
        assert compare(value, answer, tolerance=0.05).verdict == "different"
    assert any(read_number(value).value > right.value for value in made)  # type: ignore[union-attr]
    assert any(read_number(value).value < right.value for value in made)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("answer", "question", "form"),
    [
        ("54.43", "What is the average of the three bars?", r"\d\d\.43"),
        ("1,204.5", "What is the mean of both?", r"(\d,)?\d{3}\.5"),
        ("4.33", "What is the difference?", r"[356]\.33"),
        ("2.5", "What is the median?", r"[13]\.5"),
        ("0.69", "What is the ratio?", r"0\.\d[1-9]"),
        ("23.075", "What was it in 2014?", r"\d\d\.\d[27]5"),
        ("4", "What is the average?", r"[35]"),
        ("2", "How many are there?", r"[13]"),
    ],
)
def test_computed_number_keeps_the_fraction_that_shows_its_form(answer: str, question: str, form: str) -> None:
    made = values(answer, question)
    assert made
    assert [value for value in made if not re.fullmatch(form, value)] == []


def test_sum_of_equal_parts_stays_divisible() -> None:
    made = values("141", "What is the sum of the three same values?")
    assert len(made) > 2
    assert {int(value) % 3 for value in made} == {0}


def test_answer_that_states_its_value_twice_is_left_out_with_the_reason(tmp_path: Path) -> None:
    rows = [{"answer": "2.72 / 2720"}, {"answer": "$3 million ($3,000,000)"}, {"answer": "4/5"}, {"answer": "3 of 5"}]
    built = build(tmp_path / "rows", rows)
    assert set(contradictions(built)) == {"4/5", "3 of 5"}
    assert built.manifest["generated_values"]["none"] == {COMPOUND: 2}


@pytest.mark.parametrize(
    ("answer", "question", "low", "high"),
    [
        ("97", "What percentage agrees?", 0, 100),
        ("88%", "How many agree?", 0, 100),
        ("4", "What is the rating on a scale of 1 to 5?", 1, 5),
        ("11", "How many of the 12 regions grew?", 0, 12),
        ("4/5", "What is the score?", 1, 5),
        ("1", "How many bars are there?", 0, 3),
        ("2014", "In which year between 2010 and 2015 was it highest?", 2010, 2015),
        ("2025", "In which year was it highest?", 2020, 2025),
    ],
)
def test_value_that_the_question_excludes_is_not_made(answer: str, question: str, low: int, high: int) -> None:
    made = values(answer, question)
    assert made
    numbers = [number.value for value in made if (number := read_number(value))]
    assert len(numbers) == len(made)
    assert low <= min(numbers) <= max(numbers) <= high


def test_value_that_the_passage_or_another_option_states_is_not_made() -> None:
    assert "8" in values("7")
    assert "8" not in values("7", passage="It was 7, after 8 before.")
    own = SourceRow("rows", "1", "mmmu", "How many?", "7", lambda: b"", options=("7", "8"))
    assert not fits(own, value_kind(own), "8")


@pytest.mark.parametrize(
    ("answer", "question", "members"),
    [
        ("light blue", "What color is the bar?", {"dark blue", "light gray", "light green"}),
        ("Rot", "Welche Farbe hat der Balken?", {"Blau", "Grün"}),
        ("Frankreich", "Welches Land?", {"Deutschland", "Spanien"}),
        ("POLAND", "Which country?", {"GERMANY", "FRANCE"}),
        ("Monday", "Which day?", {"Tuesday", "Sunday"}),
        ("May", "Which month?", {"April", "November"}),
        ("Yes", "Is it higher?", {"No"}),
        ("Very satisfied", "What did most say?", {"Very dissatisfied", "Dissatisfied"}),
        ("Ohio", "Which state?", {"Texas", "Utah"}),
        ("increase", "Does it increase over time?", {"decrease"}),
        ("35 to 44", "Which age group?", {"25 to 34", "45 to 54"}),
        ("2010/11", "Which season?", {"2009/10", "2011/12"}),
        ("Q3 2020", "Which quarter?", {"Q2 2020"}),
        ("May '21", "In which month did it peak?", {"June '21"}),
    ],
)
def test_words_and_dates_are_changed_to_another_of_their_kind(answer: str, question: str, members: set[str]) -> None:
    assert members <= set(values(answer, question))


def test_list_changes_one_member_to_another_of_its_kind() -> None:
    for value in (made := values("France, Germany and Spain", "Which countries?")):
        kept = {"France", "Germany", "Spain"} & set(re.split(", | and ", value))
        assert len(kept) == 2
        assert value.count(",") == 1
        assert " and " in value
    assert len(made) > 2


@pytest.mark.parametrize("answer", ["12.03.2019", "2019-03-12", "March 12, 2019", "14:30"])
def test_date_keeps_its_format(answer: str) -> None:
    made = values(answer, "When?")
    assert len(made) > 2
    assert all(isinstance(parse(value), Moment) for value in made)
    letters = re.sub(r"[^\W\d_]+", "M", answer)
    assert {re.sub(r"\d", "9", re.sub(r"[^\W\d_]+", "M", v)) for v in made} == {re.sub(r"\d", "9", letters)}


def test_rows_of_a_picture_lend_each_other_their_answers(tmp_path: Path) -> None:
    rows = [
        {"image": "a.png", "question": "What was it in 2019?", "answer": "52.3"},
        {"image": "a.png", "question": "What was it in 2018?", "answer": "43.1"},
        {"image": "b.png", "question": "Which company leads?", "answer": "Codelco"},
        {"image": "b.png", "question": "Which company is second?", "answer": "Glencore"},
        {"image": "c.png", "question": "Which category leads?", "answer": "Crafts"},
    ]
    built = build(tmp_path / "rows", rows)
    assert contradictions(built) == {
        "52.3": "43.1",
        "43.1": "52.3",
        "Codelco": "Glencore",
        "Glencore": "Codelco",
    }
    assert built.manifest["generated_values"]["same picture"] == 4
    assert sum(built.manifest["generated_values"]["none"].values()) == 1


def test_computed_numbers_lend_only_to_others_of_their_form(tmp_path: Path) -> None:
    average = "What is the average?"
    averages, others = ("52.33", "61.33", "70.33"), ("43.21", "52.34", "47.25")
    rows = [{"answer": value, "question": average} for value in averages] + [{"answer": value} for value in others]
    lent = contradictions(build(tmp_path / "rows", rows))
    assert {lent[value] for value in averages} == {*averages}
    assert not {lent[value] for value in others} & {*averages}


def test_words_are_lent_in_the_style_and_among_the_nouns_of_the_right_one(tmp_path: Path) -> None:
    rows = [
        {"question": "Which product is first?", "answer": "coffee"},
        {"question": "Which product leads?", "answer": "Tea"},
        {"question": "Which tech company leads?", "answer": "Apple"},
        {"question": "Which tyre company leads?", "answer": "Michelin"},
        {"question": "What company pays most?", "answer": "Bridgestone (Japan)"},
        {"question": "What company pays least?", "answer": "Nike"},
    ]
    assert contradictions(build(tmp_path / "rows", rows)) == {"coffee": "tea", "Tea": "Coffee"}


@pytest.mark.parametrize(
    ("answer", "question", "fitting", "other"),
    [
        ("Pink", "What color is the bar?", "Orange", "orange"),
        ("Georgia", "Which country had most?", "Germany", "Texas"),
        ("Georgia", "Which country data is red?", "Germany", "Texas"),
        ("Georgia", "Which state leads?", "Texas", "Germany"),
    ],
)
def test_words_that_are_several_names_count_as_what_is_asked(
    answer: str, question: str, fitting: str, other: str
) -> None:
    made = values(answer, question)
    assert fitting in made
    assert other not in made
    assert values("Georgia", "What is shown in red?") == []


def test_second_largest_does_not_get_the_largest_of_its_picture(tmp_path: Path) -> None:
    rows = [
        {"image": "a.png", "question": "Which company is the largest?", "answer": "Codelco"},
        {"image": "a.png", "question": "Which company is the second largest?", "answer": "Glencore"},
        {"answer": "43"},
    ]
    assert set(contradictions(build(tmp_path / "rows", rows))) == {"43"}


def test_every_lent_value_is_right_once_and_wrong_once(tmp_path: Path) -> None:
    """Whoever counts how often a value occurs learns nothing, and nor does its order in the table tell."""
    answers = [str(number) for number in range(31, 100, 2) if number % 10]
    built = build(tmp_path / "rows", [{"answer": answer} for answer in answers])
    wrong = contradictions(built)
    lent = [right for right, value in wrong.items() if value in answers]
    assert len(lent) > len(answers) * 0.8
    assert {wrong[right] for right in lent} == set(lent)
    backwards = [{"answer": answer, "image": f"{number}.png"} for number, answer in enumerate(answers)][::-1]
    assert contradictions(build(tmp_path / "backwards", backwards)) == wrong


def test_the_question_decides_between_the_things_that_it_names(tmp_path: Path) -> None:
    question = "Which of the countries has more, Belgium or New Zealand?"
    rows = [{"question": question, "answer": "New Zealand"}, {"question": "Which country?", "answer": "France"}]
    assert contradictions(build(tmp_path / "rows", rows))["New Zealand"] == "Belgium"


def test_published_sources_keep_their_construction_unless_a_difficulty_is_named(tmp_path: Path) -> None:
    source = [("chartqa", str(original_chartqa(tmp_path / "chartqa", 24)))]
    papers = CMCBench().build(source, tmp_path / "paper", BuildOptions())
    assert "generated_values" not in papers.manifest
    near = CMCBench().build(source, tmp_path / "near", BuildOptions(difficulty="near"))
    assert near.manifest["difficulty"] == "near"
    numbers = near.manifest["generated_values"]["numbers"]
    assert (numbers["same unit"], numbers["within a factor of 3"]) == (1.0, 1.0)


def test_the_command_takes_a_difficulty_and_prints_the_distribution(rashomon: Rashomon, tmp_path: Path) -> None:
    answers = (1204, 1533, 27)
    for number in range(len(answers)):
        write_picture(tmp_path / f"{number}.png", number)
    lines = [f"{number}.png,How many?,{answer}" for number, answer in enumerate(answers)]
    (tmp_path / "rows.csv").write_text("\n".join(["image,question,answer", *lines]))
    result = rashomon.run("build", "cmc-bench", "--from", str(tmp_path / "rows.csv"), "--check", "--difficulty", "near")
    assert result.returncode == 0
    assert "2 same column" in result.stdout
    result = rashomon.run(
        "build", "cmc-bench", "--from", str(tmp_path / "rows.csv"), "--difficulty", "far", "--json", "--replace"
    )
    assert result.returncode == 0
    assert json.loads(result.stdout)["result"]["manifest"]["difficulty"] == "far"
    rashomon.run("build", "pope", "--difficulty", "far", code=2)


@pytest.mark.slow
@pytest.mark.skipif(not REAL_DATA.is_dir(), reason="needs the charts")
def test_numbers_of_real_charts_are_near_and_as_often_larger_as_smaller() -> None:
    from benchmarks.cmc_bench.construction.cmc_construction import construct
    from tests.performance.plausible_values import cross_validated, lent_pairs, made_pairs, number_features, usable_rows

    rows = usable_rows(REAL_DATA / "chartqa" / "qa_test_with_images.jsonl")
    examples = [e for e in construct(rows, seed=0, per_type=len(rows)).all if e.value]
    for pairs in (lent_pairs(examples), list(made_pairs(rows, 0))):
        numbers = [
            (a, b) for p in pairs if (a := read_number(p.right)) and (b := read_number(p.wrong)) and a.units and b.units
        ]
        logs = [math.log(b.value / a.value) for a, b in numbers]
        larger, spread = sum(log > 0 for log in logs), 2.6 * math.sqrt(len(logs)) / 2
        assert abs(larger - len(logs) / 2) < spread
        assert sum(abs(log) <= math.log(3.001) for log in logs) >= 0.95 * len(logs)
        assert sum(a.surroundings == b.surroundings for a, b in numbers) >= 0.95 * len(logs)
        features, labels, groups, _ = number_features(pairs)
        accuracy, count = cross_validated(features, labels, groups)
        assert abs(accuracy - 0.5) < 2.6 / (2 * math.sqrt(count))


@pytest.mark.parametrize("answer", ["1" * 400, "0." + "0" * 330 + "1", "3 of " + "9" * 400])
def test_numbers_beyond_all_sense_end_nothing(answer: str) -> None:
    values(answer)
    assert values("12", f"Is it {answer}?")
    assert read_number(answer) is None


def test_years_that_are_far_are_lent_over_the_whole_band(tmp_path: Path) -> None:
    rows = [{"answer": str(1925 + n % 90), "question": f"In what year was number {n} built?"} for n in range(180)]
    pairs = [
        {image["references"]["image"], image["references"]["text"]}
        for image in build(tmp_path / "rows", rows, difficulty="far").rows()
        if image["condition"] == "image-correct"
    ]
    distances = [max(map(int, pair)) - min(map(int, pair)) for pair in pairs]
    assert len({*distances}) > 5
    assert max(distances.count(distance) for distance in distances) < len(distances) / 2


@pytest.mark.parametrize(("answer", "question"), [("janv.", "Quel mois ?"), ("Mo.", "An welchem Tag?")])
def test_abbreviated_months_and_days_have_a_kind(answer: str, question: str) -> None:
    words = value_kind(row(answer, question)).words
    assert words is not None
    assert len(words.members) > 5


def test_old_years_are_years_where_one_is_asked_for() -> None:
    for answer in ("1789", "1066"):
        made = values(answer, "When was the bridge built?")
        assert made
        assert all(abs(int(value) - int(answer)) <= 5 for value in made)
    assert any(abs(int(value) - 1789) > 20 for value in values("1789", "How many bridges are there?"))


def test_the_wrong_pictures_value_is_not_always_the_one_unlike_the_others(tmp_path: Path) -> None:
    """Of three values that are all offered, the farther one from the text's would otherwise be known to be wrong."""
    benchmark = CMCBench()
    rows = str(ROOT / "assets/demo/held_out/cmc-bench")
    examples = benchmark.instances(benchmark.build([("rows", rows)], tmp_path / "out", BuildOptions()), "paper")
    farther = []
    for instance in (instance for instance in examples if instance.condition == "both-wrong"):
        image, text, right = (float(instance.references[name][0]) for name in ("image", "text", RIGHT_VALUE))
        farther.append(abs(math.log(image / text)) > abs(math.log(right / text)))
    assert 0.3 < sum(farther) / len(farther) < 0.7
