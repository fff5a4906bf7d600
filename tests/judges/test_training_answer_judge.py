"""Answers to training rows: the outcomes by rule for the rows of every benchmark, and of sets that were made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.clash.clash_constants import CONFLICT_OPTION
from benchmarks.contra4.contra4_sample import Contra4Sample, Scene
from benchmarks.contra4.contra4_training import training_rows as contra4_rows
from benchmarks.registry import get_benchmark
from benchmarks.training.training_set import ChatRow, TrainingSet
from benchmarks.training.write_training_set import write_training_set
from benchmarks.training_rows import TARGETS, Target, TrainingOptions, TrainingRow
from benchmarks.vocabulary import Message
from judges.training_answer_judge import judge_answer, names_conflict
from mlx_backends.training_settings import OUTCOMES
from tests.support.data import crosscheck_bench, mmkc_bench
from tests.support.data.clash import own_folder, own_sample
from tests.support.data.small import own_rows
from tests.support.hostile_texts import HOSTILE

NAMED = "The image and the text disagree: the image says 57, the text says 34."
ABSTAINS = CONFLICT_OPTION
DEMO = "kale: 57\n 34\nConflicting information – cannot answer."
"""The demo model's form of the target ``compare``, which the rules of CMC-Bench read too."""

QUESTION = "What is the value of kale?"
BOTH = {"image": ("57",), "text": ("34",)}


def row(kind: str, target: str, **fields: object) -> ChatRow:
    return ChatRow("validation.jsonl:1", (), target, (), kind=kind, question=QUESTION, **fields)  # type: ignore[arg-type]


def conflict(condition: str, target: str = NAMED) -> ChatRow:
    return row("conflict", target, benchmark="cmc-bench", condition=condition, references=BOTH, rejected="34")


def agreement(condition: str = "aligned", target: str = "57") -> ChatRow:
    sources = ("image", "text") if condition == "aligned" else (condition.removesuffix("-only"),)
    references = dict.fromkeys(sources, ("57",))
    return row("no conflict", target, benchmark="cmc-bench", condition=condition, references=references, rejected=NAMED)


def clash(kind: str, target: str) -> ChatRow:
    condition = "open-conflicting" if kind == "conflict" else "open-original"
    return row(kind, target, benchmark="clash", condition=condition, references=BOTH, rejected="34")


def outcomes(row: ChatRow, answers: Iterable[str]) -> list[tuple[str, bool | None]]:
    return [tuple(judge_answer(row, answer, False)) for answer in answers]  # type: ignore[misc]


ANSWERS = (NAMED, ABSTAINS, DEMO, "57", "34", "12", "57 34", "", "I don't know.")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (conflict("image-correct"), "names+ names+ names+ right- other- invents- undecided? none- names+"),
        (conflict("text-correct"), "names+ names+ names+ other- right- invents- undecided? none- names+"),
        (conflict("both-wrong"), "names+ names+ names+ other- other- invents- undecided? none- names+"),
        (conflict("image-correct", "57"), "names- names- names- right+ other- invents- undecided? none- names-"),
        (conflict("text-correct", "34"), "names- names- names- other- right+ invents- undecided? none- names-"),
        (agreement(), "flags- flags- flags- kept+ invents- invents- undecided? none- flags-"),
        (agreement("image-only"), "flags- flags- flags- kept+ invents- invents- undecided? none- flags-"),
        (agreement("text-only"), "flags- flags- flags- kept+ invents- invents- undecided? none- flags-"),
        (
            clash("conflict", ABSTAINS.rstrip(".")),
            "names+ names+ names+ right- other- another- undecided? none- names+",
        ),
        (clash("no conflict", "57"), "flags- flags- flags- kept+ other- another- undecided? none- flags-"),
        # Of a row that does not say which instance it was made of, nobody knows the values of its sources.
        (
            row("conflict", NAMED, rejected="34"),
            "names+ names+ names+ another- other- another- another- none- names+",
        ),
        (
            row("no conflict", "57", rejected=NAMED),
            "flags- flags- flags- kept+ another- another- undecided? none- flags-",
        ),
        (row("", "57"), "flags- flags- flags- kept+ another- another- undecided? none- flags-"),
    ],
)
def test_answers_of_every_kind_have_their_outcome(row: ChatRow, expected: str) -> None:
    marks = {True: "+", False: "-", None: "?"}
    short = [f"{outcome.partition(' ')[0]}{marks[is_taught]}" for outcome, is_taught in outcomes(row, ANSWERS)]
    assert dict(zip(ANSWERS, short, strict=True)) == dict(zip(ANSWERS, expected.split(), strict=True))


def test_an_answer_that_is_cut_off_is_none_unless_it_is_the_whole_answer_to_learn() -> None:
    assert judge_answer(agreement(), "The value, as far as I can see in the", True) == ("none", False)
    assert judge_answer(agreement(), "57 57 57 57", True) == ("none", False)
    assert judge_answer(agreement(), "57", True) == ("kept", True)


def test_reasoning_alone_is_no_answer() -> None:
    assert judge_answer(agreement(), "<think>It is 57.</think>", False) == ("none", False)


def test_a_sentence_that_may_say_the_same_in_other_words_is_undecided() -> None:
    taught = row("no conflict", "A man is riding a bicycle along the river")
    assert judge_answer(taught, "Somebody cycles next to the water, in the sun.", False) == ("undecided", None)
    named = row("conflict", NAMED, rejected="34")
    assert judge_answer(named, "The picture has 57 whereas the passage has 34.", False) == ("undecided", None)


def test_a_denied_conflict_is_no_flag_by_the_word_alone() -> None:
    assert judge_answer(clash("no conflict", "57"), "There is no conflict, it is 57.", False) == ("undecided", None)


# --- the rows that a benchmark writes -----------------------------------------------------------------


def chat(row: TrainingRow, benchmark: str) -> ChatRow:
    """Return a training row as it is read from a set."""
    instance = row.instance
    texts = {"group": instance.group, "question": instance.question, "kind": row.kind, "rejected": row.rejected}
    more = {"benchmark": benchmark, "condition": instance.condition}
    about = {"references": instance.references, "strata": instance.strata}
    return ChatRow(instance.id, (Message("user", instance.parts),), row.target, (), **texts, **more, **about)  # type: ignore[arg-type]


def written(build: Build, out: Path, target: Target = "name") -> Iterator[ChatRow]:
    """Yield the rows of a training set on disk."""
    write_training_set(get_benchmark(build.benchmark), [build], out, TrainingOptions(target=target), 0.0).put_in_place()
    yield from TrainingSet.open(out).rows("train")


def check_own_answers(rows: list[ChatRow]) -> None:
    """Check that each row's own answer does what it teaches, and that nothing else that is known of it does."""
    assert len(rows) >= 2
    for row in rows:
        outcome, is_taught = judge_answer(row, row.target, False)
        assert (outcome in ("names", "right", "kept"), is_taught) == (True, True), row
        assert judge_answer(row, f"{row.target}\n", False) == (outcome, True)
        if row.rejected:
            assert judge_answer(row, row.rejected, False).is_taught is False, row
        flag = judge_answer(row, ABSTAINS, False)
        assert flag == (("names", outcome == "names") if row.kind == "conflict" else ("flags", False)), row
        assert judge_answer(row, "", False) == ("none", False)
        for text in HOSTILE[::5]:
            hostile = judge_answer(row, text, False)
            assert hostile.outcome in OUTCOMES
            assert hostile.is_taught in (False, None), (row, text)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_a_table_of_ones_own(target: Target, tmp_path: Path) -> None:
    source = own_rows(tmp_path / "source", [str(100 + 7 * n) for n in range(12)])
    build = get_benchmark("cmc-bench").build([("rows", str(source))], tmp_path / "build", BuildOptions())
    rows = list(written(build, tmp_path / "set", target))
    assert {row.kind for row in rows} == {"conflict", "no conflict"}
    check_own_answers(rows)
    conflicts = [row for row in rows if row.kind == "conflict"]
    has_right = {row.condition: row for row in conflicts if row.condition != "both-wrong"}.values()
    assert all(names_conflict(row) == (target != "answer") for row in has_right)
    for row in has_right:
        image, text = (row.references[source][0] for source in ("image", "text"))
        right, wrong = (image, text) if row.condition == "image-correct" else (text, image)
        assert outcomes(row, (right, wrong)) == [("right", target == "answer"), ("other source", False)]
        assert judge_answer(replace(row, references={}), row.target, False).is_taught is True


def test_rows_of_clash(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "source", [own_sample(n, image=f"{n % 3 + 1}.png") for n in range(1, 13)])
    build = get_benchmark("clash").build([("rows", str(folder))], tmp_path / "build", BuildOptions())
    rows = list(written(build, tmp_path / "set"))
    check_own_answers(rows)
    for row in rows:
        expected = ("right", False) if row.kind == "conflict" else ("kept", True)
        assert judge_answer(row, "The dog is on the left.", False) == expected
        assert judge_answer(row, "right", False) == ("other source", False)


def test_rows_of_crosscheck_bench(tmp_path: Path) -> None:
    tasks = ("SP", "PMO", "BC", "PI")
    lines = [crosscheck_bench.row(task, n) for task in tasks for n in range(3)]
    source = crosscheck_bench.write_rows(tmp_path / "source", lines)
    build = get_benchmark("crosscheck-bench").build([("rows", str(source))], tmp_path / "build", BuildOptions())
    rows = list(written(build, tmp_path / "set"))
    closed = [row for row in rows if row.references.get("options") or row.strata["form"] == "yes/no"]
    assert closed
    for row in rows:
        assert judge_answer(row, row.target, False).is_taught is True
        assert judge_answer(row, f"**{row.target}**", False).is_taught is True
    for row in closed:
        options = [*"ABCD"[: len(row.references.get("options", ()))]] or ["Yes", "No"]
        (other, *_) = [option for option in options if option != row.target]
        assert judge_answer(row, other, False) == ("another answer", False)


def test_rows_of_mmkc_bench(tmp_path: Path) -> None:
    source = mmkc_bench.whole_folder(tmp_path / "source")
    build = get_benchmark("mmkc-bench").build([("published", str(source))], tmp_path / "build", BuildOptions())
    rows = list(written(build, tmp_path / "set"))
    assert {row.kind for row in rows} == {"conflict", "no conflict"}
    for row in rows:
        is_conflict = row.kind == "conflict"
        assert judge_answer(row, row.target, False) == ("right" if is_conflict else "kept", True), row
        key = "letter" if row.condition.endswith("-mc") else ""
        for value in row.references.get(f"text {key}".strip(), ()):
            expected = "other source" if is_conflict else "another answer"
            assert judge_answer(row, value, False) == (expected, False), row
        if key:
            assert judge_answer(row, "It may be A or B", False).is_taught is not True
    assert not any(names_conflict(row) for row in rows)


def test_rows_of_contra4() -> None:
    scenes = tuple(Scene("s", str(n), "image", f"A picture of the number {n}.") for n in range(3))
    samples = [
        Contra4Sample(str(n), f"Which scene has number {n}?", scenes, n, "ABC"[n], "random", filters=("PUF",))
        for n in range(3)
    ]
    options = TrainingOptions(prompt_set="paper", filter="PUF")
    rows = [chat(row, "contra4") for row in contra4_rows(samples, (), options, rendered=False)]
    assert len(rows) == 3
    for n, row in enumerate(rows):
        letters = "ABC"
        right, wrong = letters[n], letters[(n + 1) % 3]
        assert outcomes(row, (f"Scene {right}", right, f"The answer is Scene {right}.")) == [("kept", True)] * 3
        assert judge_answer(row, f"Scene {wrong}", False) == ("another answer", False)
        assert judge_answer(row, f"Scene {right} or Scene {wrong}", False).is_taught is not True


# --- rows that no benchmark would write ---------------------------------------------------------------


@pytest.mark.parametrize(
    "benchmark", ["cmc-bench", "clash", "contra4", "crosscheck-bench", "mmkc-bench", "pope", "x" * 99]
)
@pytest.mark.parametrize("condition", ["image-correct", "open-original", "context-memory-mc", "", "\x1b[31m"])
@pytest.mark.parametrize("references", [{"image": ()}, {"": ("",)}, {"image": ("\x00", "9" * 5000)}, BOTH])
def test_references_that_fit_no_benchmark_leave_the_answer_to_learn(
    benchmark: str, condition: str, references: dict[str, tuple[str, ...]]
) -> None:
    for kind, target in (("conflict", NAMED), ("no conflict", "57"), ("\x1b]0;x\x07", "57")):
        hostile = row(kind, target, benchmark=benchmark, condition=condition, references=references)
        assert judge_answer(hostile, target, False).is_taught is True
        for answer in (NAMED, "34", HOSTILE[0], "9" * 100_000):
            assert judge_answer(hostile, answer, False).outcome in OUTCOMES
