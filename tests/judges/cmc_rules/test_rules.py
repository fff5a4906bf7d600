"""The rules of ``match``, one by one, each with an answer that would fall to another label without it."""

from __future__ import annotations

import pytest

from benchmarks.vocabulary import Generation, Instance, Record, Text
from judges.cmc_rules.judge import Match
from tests.support.records import label, verdict

YEAR = "Which year had the highest output?"
SHARE = "What percentage of users churned?"
PET = "Which animal is the most common pet?"
TALLER = "Is the red bar taller than the blue bar?"


# --- no answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["", "   \n\t "])
def test_an_empty_answer_has_no_label(answer: str) -> None:
    got = verdict(answer)
    assert (got.status, got.label, got.reason) == ("unparsed", None, "the answer is empty")


@pytest.mark.parametrize("answer", ["<think>It is 12.</think>", "<think>The chart shows 12, so", "so 12.</think>\n"])
def test_answer_of_pure_reasoning_has_no_label(answer: str) -> None:
    got = verdict(answer)
    assert (got.status, got.label, got.reason) == ("unparsed", None, "the answer is nothing but reasoning")


def test_reasoning_is_not_read() -> None:
    assert label("<think>The text says 15. The answer is 15.</think>\n12") == "IMAGE"


def test_verdict_has_a_label_and_a_reason() -> None:
    got = verdict("While the text mentions 15, the chart clearly shows 12.")
    assert (got.judge, got.status, got.label) == ("match@3", "labelled", "IMAGE")
    assert "image's value" in got.reason


def test_quoted_labels_are_not_obeyed() -> None:
    assert label("IMAGE") == "NEITHER"
    assert label('{"label": "TEXT"} The answer is 12.') == "IMAGE"


# --- the last commitment decides -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The text says 15, but the chart shows 12, so the answer is 12.", "IMAGE"),
        ("Image: 12. Text: 15. The answer is 15.", "TEXT"),
        ("First I thought 15. Wait, actually it is 12.", "IMAGE"),
        ("12, not 15.", "IMAGE"),
        ("The answer is 15 rather than 12.", "TEXT"),
        ("The answer isn't 12. It's 15.", "TEXT"),
        ("The answer is neither 12 nor 15.", "NEITHER"),
        ("Based on the image, 12 trams run on line 4. The text evidence states that the value is 15.", "IMAGE"),
        ("The chart doesn't mention line 4, so based on the text the answer is 15.", "TEXT"),
        ("12. The text says 15, but that is wrong.", "IMAGE"),
        ("Lines 1, 2 and 3 have 5, 12 and 15 trams. Line 4 has 20 trams.", "NEITHER"),
        ("The answer is 12, as the chart shows. The text says 15, which conflicts with this.", "IMAGE"),
        ("The text says the correct answer is 15, but the bar reaches 12.", "IMAGE"),
        ("12 trams run on line 4. This answer should be treated with caution.", "IMAGE"),
        ("The answer should be 13, not 12.", "NEITHER"),
    ],
)
def test_mentioning_is_not_committing(answer: str, expected: str) -> None:
    assert label(answer) == expected


@pytest.mark.parametrize(
    "answer",
    ["It is probably 12.", "I think 12, but I'm not sure.", "If I had to choose, I'd say 12.", "My best guess is 12."],
)
def test_a_hedge_that_commits_is_a_commitment(answer: str) -> None:
    assert label(answer) == "IMAGE"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The chart shows 12 and the text says 15. I trust the chart.", "IMAGE"),
        ("The chart shows 12. The text gives 15. The chart should be preferred, being official.", "IMAGE"),
        ("The text is wrong: it says 15. The chart has 12.", "IMAGE"),
    ],
)
def test_a_source_chosen_by_name_commits_to_its_value(answer: str, expected: str) -> None:
    assert label(answer) == expected


# --- both, and abstention ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("12, 15", "BOTH"),
        ("- Image: 12\n- Text: 15", "BOTH"),
        ("12 (image) and 15 (text), which are both valid.", "BOTH"),
        ("The chart indicates 12, and the text also supports this by stating 15.", "BOTH"),
        ("Both the chart and the text show 15.", "TEXT"),
        ("The chart shows 12, whereas the text says 15. The two contradict each other.", "ABSTAIN"),
        ("There is a conflict between the image (12) and the text (15). Since the chart is direct, it is 12.", "IMAGE"),
        ("If we follow the chart, it is 12; if we follow the text, it is 15.", "ABSTAIN"),
        ("Either 12 or 15, depending on which source is right.", "ABSTAIN"),
    ],
)
def test_affirming_both_values_is_both_or_a_conflict(answer: str, expected: str) -> None:
    assert label(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "The number of trams cannot be determined from the evidence.",
        "I'm unable to decide due to conflicting evidence.",
        "The image does not show trams.",
        "As an AI, I can't view images. Could you describe the chart?",
        "The text mentions 15, but there is no such value in the chart.",
        "Neither 12 nor 15 can be verified from the evidence.",
        "Les sources se contredisent: 12 et 15.",
        "图片显示12，而文字说是15，两者相互矛盾，无法确定答案。",
    ],
)
def test_an_answer_that_chooses_nothing_abstains(answer: str) -> None:
    assert label(answer) == "ABSTAIN"


def test_equal_references_make_any_agreement_both() -> None:
    assert label("The answer is 12.", "12", "12.0") == "BOTH"
    assert label("The chart shows 13.", "12", "12") == "NEITHER"
    assert label("The evidence conflicts, so I cannot say.", "12", "12") == "ABSTAIN"


@pytest.mark.parametrize(
    ("answer", "image", "text", "expected"),
    [
        ("12 trams", "12", None, "IMAGE"),
        ("13 trams", "12", None, "NEITHER"),
        ("The chart does not provide this information.", "12", None, "ABSTAIN"),
        ("The text says 15.", None, "15", "TEXT"),
        ("12", None, "15", "NEITHER"),
        ("Without the image, I cannot determine the number.", None, "15", "ABSTAIN"),
    ],
)
def test_a_single_source_gives_its_label_or_none(answer: str, image: str, text: str, expected: str) -> None:
    assert label(answer, image, text) == expected


def test_several_acceptable_answers_of_a_source_all_count() -> None:
    instance = Instance("i", "g", "c", PET, (Text(PET),), {"image": ("Dog", "Hound"), "text": ("Cat",)})
    record = Record(instance, (Generation("i#0", "The most common pet is the hound.", "stop"),))
    assert Match().judge(record).label == "IMAGE"


# --- the same value in other words ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "notation"),
    [
        ("64%", "64 percent"),
        ("64%", "sixty-four percent"),
        ("50%", "Half of the users churned."),
        ("75%", "3/4"),
        ("25%", "one in four users"),
        ("1200", "1,200"),
        ("1,200,000", "1.2 million"),
        ("85000", "85k subscribers"),
        ("$5", "5 dollars"),
        ("42", "42 million people"),
        ("12", "a dozen"),
        ("9.8", "9,8"),
        ("31,450.5", "31.450,5 Euro"),
        ("2.5 kg", "2500 g"),
        ("0.5 A", "500 mA"),
        ("130 m", "130 metres"),
        ("3.0 × 10^8", "$3 \\times 10^{8}$"),
        ("1870s", "the eighteen-seventies"),
        ("2010/11", "the 2010-2011 season"),
        ("-5", "−5"),
        ("0", "None"),
        ("x = 7", "7"),
    ],
)
def test_notations_of_one_value_agree(reference: str, notation: str) -> None:
    assert label(f"It is {notation}.", reference, "999") == "IMAGE"


@pytest.mark.parametrize(
    ("reference", "notation"),
    [
        ("20", "2015"),
        ("5", "55"),
        ("3.8", "38"),
        ("64%", "0.64%"),
        ("45,000", "450,000"),
        ("6 V", "6 kg"),
        ("2.5 kg", "2.5 g"),
        ("4827", "4872"),
        ("1950s", "1960s"),
    ],
)
def test_digits_shared_with_another_value_do_not_agree(reference: str, notation: str) -> None:
    assert label(f"It is {notation}.", reference, "999") == "NEITHER"


def test_the_magnitude_the_question_asks_in_is_kept() -> None:
    question = "What was the revenue in billion euros?"
    assert label("The revenue was 7.5 million euros.", "7.5", "9.1", question) == "NEITHER"
    assert label("The revenue was 7,500,000,000 euros.", "7.5", "9.1", question) == "IMAGE"


def test_rounding_agrees_within_one_percent_or_if_declared() -> None:
    assert label("63.8%", "64%", "46%", SHARE) == "IMAGE"
    assert label("About 20,000.", "18,700", "46") == "IMAGE"
    assert label("20,000.", "18,700", "46") == "NEITHER"
    assert label("Roughly 90.", "100", "46") == "NEITHER"


def test_years_are_exact() -> None:
    assert label("Around 2010.", "2008", "2015", YEAR) == "NEITHER"
    assert label("The axis runs from 2008 to 2015; the peak is in 2011.", "2008", "2015", YEAR) == "NEITHER"
    assert label("Output was highest in 2015 with 2008 tonnes.", "2008", "2015", YEAR) == "TEXT"


def test_a_number_that_repeats_the_question_is_no_answer() -> None:
    question = "Of the 30 buses in the depot, how many are older than 12 years?"
    assert label("There are 9 buses that are older than 12 years.", "12", "18", question) == "NEITHER"
    assert label("12 of the 30 buses in the depot are older than 12 years.", "12", "18", question) == "IMAGE"


@pytest.mark.parametrize(("answer", "expected"), [("There are five bars.", "TEXT"), ("Three bars.", "IMAGE")])
def test_count_is_no_percentage(answer: str, expected: str) -> None:
    assert label(answer, "3", "5", "How many bars are below 10%?") == expected


def test_only_the_result_of_a_calculation_counts() -> None:
    assert label("12 + 3 = 15") == "TEXT"
    assert label("The average of 12 and 15 is 13.5.") == "NEITHER"


@pytest.mark.parametrize(
    ("image", "text", "answer", "expected"),
    [
        ("Dog", "Cat", "The dogs are the most common pets.", "IMAGE"),
        ("Dog", "Cat", "The dog is more common than the cat.", "IMAGE"),
        ("Dog", "Cat", "category", "NEITHER"),
        ("dark blue", "blue", "Dark blue.", "IMAGE"),
        ("United States", "United States Minor Outlying Islands", "The United States Minor Outlying Islands.", "TEXT"),
        ("Reform and Centre", "Labour and Greens", "The Greens and Labour", "TEXT"),
        ("Reform and Centre", "Labour and Greens", "Reform and the Greens", "NEITHER"),
        ("the Democratic Republic of Congo", "Gabon", "DR Congo", "IMAGE"),
        ("Ada Fennwick", "Tomas Brandl", "Ada Fenwick proposed it.", "IMAGE"),
        ("Important, but lower priority", "Top priority", "The answer is important, but lower priority.", "IMAGE"),
        ("Don't know", "Good", "Most people said: don't know.", "IMAGE"),
        ("Ada Fennwick", "Tomas Brandl", "It was Ada Fennwick, who beat Tomas Brandl.", "IMAGE"),
        ("Ada Fennwick", "Tomas Brandl", "It was Jan Novak, who taught Tomas Brandl.", "NEITHER"),
        ("Ada Fennwick", "Tomas Brandl", "The painter, who is Tomas Brandl, was young.", "TEXT"),
        ("Trust versus mistrust", "Identity versus role confusion", "Identity vs. confusion", "TEXT"),
        ("T = 2π√(g/L)", "T = 2π√(L/g)", "It is $T = 2\\pi \\sqrt{\\frac{L}{g}}$.", "TEXT"),
        (
            "A decrease in the supply of labour",
            "An increase in the supply of labour",
            "It causes the labour supply to decrease.",
            "IMAGE",
        ),
    ],
)
def test_names_and_long_options(image: str, text: str, answer: str, expected: str) -> None:
    assert label(answer, image, text, "Which is it?") == expected


def test_a_noun_of_the_question_may_be_left_out_of_the_answer() -> None:
    assert label("It's covalent.", "Ionic bond", "Covalent bond", "Which type of bond is shown?") == "TEXT"


def test_different_month_colour_or_direction_is_neither() -> None:
    answer = "The level rises until May and falls from July on. It was highest in June."
    assert label(answer, "May", "July", "In which month was the level highest?") == "NEITHER"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yes, it is.", "IMAGE"),
        ("The red bar is taller than the blue bar.", "IMAGE"),
        ("The blue bar is taller than the red bar.", "TEXT"),
        ("The red bar is shorter.", "TEXT"),
        ("The red bar is not taller.", "TEXT"),
        ("They are equal.", "TEXT"),
        ("The text says no, but the red bar is clearly taller. Yes.", "IMAGE"),
        ("Yes according to the image, and no according to the text.", "BOTH"),
        ("It is unclear whether the red bar is taller.", "ABSTAIN"),
    ],
)
def test_yes_and_no_in_other_words(answer: str, expected: str) -> None:
    assert label(answer, "Yes", "No", TALLER) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "### Answer\n\n**15**",
        "$\\boxed{15}$",
        "```\n15\n```",
        '{"answer": 15}',
        "| Image | 12 |\n| Text | 15 |\n\nAnswer: 15",
    ],
)
def test_markdown_latex_and_json_are_read_through(answer: str) -> None:
    assert label(answer) == "TEXT"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The text says 15, but the chart has 12. Therefore line 4 has 12 tra", "IMAGE"),
        ("The image shows 12, while the text states 15. These values are inconsistent, so we need to", "ABSTAIN"),
    ],
)
def test_truncated_answer_is_judged_by_its_text(answer: str, expected: str) -> None:
    assert label(answer) == expected


@pytest.mark.parametrize(
    ("image", "text", "answer", "expected"),
    [
        ("V = IR", "V = I/R", "By Ohm's law V = I R.", "IMAGE"),
        ("V = IR", "V = I/R", "The answer is V = I+R.", "NEITHER"),
        ("v_2 = v_3 > v_1", "v_1 > v_2 > v_3", "v_2 > v_3 > v_1", "NEITHER"),
        ("mv^2", "(1/2)mv^2", "The answer is (1/4)mv^2.", "NEITHER"),
        ("mv^2", "(1/2)mv^2", "The answer is $\\frac{1}{2}mv^2$.", "TEXT"),
        ("[1-9]*[0-9]", "[1-9]+[0-9]*", "The answer is [1-9][0-9]*.", "NEITHER"),
        ("[1-9]*[0-9]", "[1-9]+[0-9]*", "The answer is [1-9]*[0-9].", "IMAGE"),
        ("2(a+b)", "a+b", "2a+b", "NEITHER"),
        ("k/Y", "Y/k", "The slope is Y/k.", "TEXT"),
    ],
)
def test_formulas_agree_sign_by_sign(image: str, text: str, answer: str, expected: str) -> None:
    assert label(answer, image, text, "Which formula holds?") == expected


@pytest.mark.parametrize(
    ("image", "text", "answer", "expected"),
    [
        ("52, 46, 42", "42, 52, 46", "46, 52, 42", "NEITHER"),
        ("52, 46, 42", "42, 52, 46", "The order is 42, 52 and 46.", "TEXT"),
        ("(a-b),(b-f),(d-f)", "(d-f),(a-b),(b-f)", "The answer is (b-f),(a-b),(d-f).", "NEITHER"),
        ("I, II, III", "III, II, I", "The answer is II, I, III.", "NEITHER"),
        ("E to D", "B to A", "The answer is D to E.", "NEITHER"),
        ("Q, Q", "P, P", "Q, P", "NEITHER"),
        ("2", "1 and 4", "The answer is 2 and 3.", "NEITHER"),
        ("dog and cat", "horse", "cats and dogs", "IMAGE"),
    ],
)
def test_order_matters_for_symbols_not_names(image: str, text: str, answer: str, expected: str) -> None:
    assert label(answer, image, text, "Which ones?") == expected


@pytest.mark.parametrize(
    ("image", "text", "answer"),
    [
        ("Differential association theory", "Functionalism", "Conflict theory"),
        ("8 is the parent of 11", "14 is the parent of 15", "11 is the parent of 14"),
        ("The null must be rejected at the 5% level", "The null is true", "The null must be rejected at the 10% level"),
        (
            "The test indicates no significant difference",
            "The test fails",
            "The test indicates a significant difference",
        ),
        ("Point A", "Point B", "Point C"),
        ("Bipolar II disorder", "Major depressive disorder", "Bipolar I disorder"),
        ("Trade in cultural ideas", "Loss of harvests", "Religious conflicts between neighbours"),
    ],
)
def test_similarly_worded_option_is_neither(image: str, text: str, answer: str) -> None:
    question = "What follows from differential association, and what is the parent in the tree of theories?"
    assert label(answer, image, text, question) == "NEITHER"
    assert label(f"The answer is {answer}.", image, text, question) == "NEITHER"
    assert label(f"The answer is {image}.", image, text, question) == "IMAGE"


def test_trusting_neither_is_a_refusal() -> None:
    assert label("The chart shows 12. The text says 15. I trust neither.") == "ABSTAIN"
