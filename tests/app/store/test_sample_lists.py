"""Choosing samples: what SQL finds is what a plain filter over the records finds; and overriding a label."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.annotation.label_override import override, retract_override
from app.report.tables.run_tables import tables_of
from app.store.database_schema import MIGRATIONS
from app.store.run_store import RunStore
from app.store.sample_lists import ORDERS, SAMPLE_OUTCOMES, SampleFilter
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from app.tui.sample_query import QueryVocabulary, parse_query
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Generation, Instance, Record, Text, Verdict
from tests.support.command import Rashomon
from tests.support.old_runs import as_version
from tests.support.runs import instances, make_run, says

CONDITIONS, LABELS = ("plain", "twisted"), ("YES", "NO")
CORRECT = {"plain": ["YES"], "twisted": ["NO"]}
JUDGES = ("even@1", "gpt@1", "override:ann@1")
WORDS = st.sampled_from(["tram", "TRAM", "%", "_", "'", "Straße", "STRASSE", "É", "é", "a\x00b", "\\", "q 1", "\ud800"])


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[Instance, list[Generation], dict[str, Verdict], bool]]:
    """A few instances with what was answered and said of them, and whether they are done."""
    items = []
    for number in range(draw(st.integers(1, 8))):
        question = " ".join(draw(st.lists(WORDS, max_size=3)))
        instance = Instance(
            f"{number // 2}/{number % 2}",
            str(number // 2),
            CONDITIONS[number % 2],
            question,
            (Text(question),),
            {},
            {"kind": draw(st.sampled_from("ab")), "odd key.$": draw(st.sampled_from(["x y", '"']))},
        )
        steps = [
            Generation(
                f"{instance.id}#{step}",
                " ".join(draw(st.lists(WORDS, max_size=3))),
                draw(st.sampled_from(["stop", "length", "error"])) if step else "stop",
                completion_tokens=draw(st.none() | st.integers(0, 3)),
            )
            for step in range(draw(st.integers(0, 2)))
        ]
        values = {}
        if steps and steps[-1].finish_reason != "error":
            for judge in draw(st.sets(st.sampled_from(JUDGES))):
                label = draw(st.none() | st.sampled_from(LABELS))
                status = "labelled" if label else draw(st.sampled_from(["unparsed", "undecided", "judge-failed"]))
                values[judge] = Verdict(judge, status, label)  # type: ignore[arg-type]
        items.append((instance, steps, values, bool(steps)))
    return items


filters = st.builds(
    SampleFilter,
    judges=st.lists(st.sampled_from(JUDGES), unique=True, max_size=3).map(tuple),
    conditions=st.sets(st.sampled_from(CONDITIONS)).map(tuple),
    strata=st.sets(st.sampled_from([("kind", "a"), ("kind", "b"), ("odd key.$", '"'), ("none", "x")])).map(tuple),
    labels=st.sets(st.sampled_from(LABELS)).map(tuple),
    outcomes=st.sets(st.sampled_from(SAMPLE_OUTCOMES)).map(tuple),
    words=st.lists(WORDS.filter(lambda word: word != "\ud800"), max_size=2).map(tuple),
    disputing=st.sets(st.sampled_from(JUDGES)).map(tuple),
    disagree=st.booleans(),
    overridden=st.booleans(),
    truncated=st.booleans(),
    mismatch=st.booleans(),
    order=st.sampled_from(list(ORDERS)),
)


def create(folder: Path, asked: Sequence[Instance]) -> RunStore:
    folder.mkdir(exist_ok=True)
    return RunStore.create(folder, {"conditions": list(CONDITIONS), "correct": CORRECT}, asked)


def fate(record: Record, judges: Sequence[str]) -> tuple[str, str | None]:
    judge = next((judge for judge in judges if judge in record.verdicts), "nobody")
    outcome = record.outcome(judge)
    if outcome != "labelled":
        return outcome, None
    label = str(record.verdicts[judge].label)
    return ("right" if label in CORRECT[record.instance.condition] else "wrong"), label


def has(text: str, word: str) -> bool:
    folded: Callable[[str], str] = (
        (lambda string: re.sub("[A-Z]", lambda match: match[0].lower(), string))
        if word.isascii() and "\0" not in word
        else str.casefold
    )
    return folded(word) in folded(text)


def fits(record: Record, wanted: SampleFilter) -> bool:
    now, label = fate(record, wanted.judges)
    last = record.answer
    disputing = wanted.disputing or JUDGES[:2]
    message = {v.label for judge, v in record.verdicts.items() if judge in disputing and v.status == "labelled"}
    # SQLite reads the escape of a lone surrogate in a row as U+FFFD; records show the escape.
    question = record.instance.question.replace(r"\ud800", "\ufffd")
    texts = [record.instance.id, question, *(g.text for g in record.generations)]
    keys = {key for key, _ in wanted.strata}
    return (
        (not wanted.conditions or record.instance.condition in wanted.conditions)
        and all((key, record.instance.strata.get(key)) in wanted.strata for key in keys)
        and (not wanted.labels or label in wanted.labels)
        and (not wanted.outcomes or now in wanted.outcomes)
        and all(any(has(text, word) for text in texts) for word in wanted.words)
        and (not wanted.disagree or len(message) > 1)
        and (not wanted.mismatch or len(message) > 1 or now == "wrong")
        and (not wanted.overridden or JUDGES[2] in record.verdicts)
        and (not wanted.truncated or (last is not None and last.finish_reason == "length"))
    )


@settings(max_examples=60, deadline=None)
@given(run=runs(), several=st.lists(filters, min_size=1, max_size=8))
def test_a_filter_finds_what_a_plain_loop_finds(
    tmp_path_factory: pytest.TempPathFactory,
    run: list[tuple[Instance, list[Generation], dict[str, Verdict], bool]],
    several: list[SampleFilter],
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with create(folder, [instance for instance, *_ in run]) as store:
        store.use_engine({})
        for ordinal, (instance, steps, message, _) in enumerate(run):
            for step, created in enumerate(steps):
                last = step == len(steps) - 1
                verdicts = tuple(message.values()) if last else ()
                store.commit([NewAnswer(ordinal, instance.condition, step, "d", created, last, verdicts)])
    with RunStore.read(folder) as store:
        records = list(store.records())
        for wanted in several:
            sample_ordinals = store.sample_ordinals(wanted)
            assert sorted(sample_ordinals) == [n for n, record in enumerate(records) if fits(record, wanted)], wanted
            if wanted.order == "run":
                assert sample_ordinals == sorted(sample_ordinals)
            rows = store.sample_rows(sample_ordinals[::-1], wanted.judges)
            assert [row.ordinal for row in rows] == sample_ordinals[::-1]
            for row in rows:
                record = records[row.ordinal]
                assert (row.outcome, row.label) == fate(record, wanted.judges)
                assert row.overridden == (JUDGES[2] in record.verdicts)
        for ordinal, record in enumerate(records):
            siblings = [n for n, other in enumerate(records) if other.instance.group == record.instance.group]
            assert [row.ordinal for row in store.siblings(ordinal)] == siblings


def test_a_run_of_an_older_rashomon_can_be_looked_through(tmp_path: Path) -> None:
    folder = make_run(Workspace(tmp_path), "old", instances(3, question="Wie viele \ud800?"), says("12"))
    with RunStore.open(folder) as store:
        before = store.sample_ordinals(SampleFilter(words=("wie",)))
    as_version(folder, next(version for version, step in enumerate(MIGRATIONS) if "TABLE sample" in step))
    with RunStore.read(folder) as store:
        assert store.sample_ordinals(SampleFilter(words=("wie",))) == before == list(range(18))
        assert store.strata()["type"] == ["factual"]


def test_samples_are_read_while_a_run_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    asked = [Instance(str(n), str(n), "plain", "q", (Text("q"),), {}, {}) for n in range(20)]
    with create(folder, asked) as writer:
        writer.use_engine({})
        for ordinal in range(20):
            writer.commit([NewAnswer(ordinal, "plain", 0, "d", Generation(f"{ordinal}#0", "x", "stop"), True)])
            with RunStore.read(folder) as reader:
                assert len(reader.sample_ordinals(SampleFilter(outcomes=("pending",)))) == 20  # no judge has been
                assert len(reader.sample_ordinals(SampleFilter(words=("x",)))) == ordinal + 1


@pytest.mark.parametrize(
    ("word", "expected"), [("b", [0]), ("A", [0]), ("a\0b", [0]), ("\0", [0]), ("a b", []), ("é", [0])]
)
def test_text_after_a_nul_is_searched(tmp_path: Path, word: str, expected: list[int]) -> None:
    instance = Instance("0", "0", "plain", "a\0b é", (Text("a\0b é"),), {}, {})
    with create(tmp_path / "r", [instance]):
        pass
    with RunStore.read(tmp_path / "r") as store:
        assert store.sample_ordinals(SampleFilter(words=(word,))) == expected


# --- what is typed ---------------------------------------------------------------------------------

KNOWN = QueryVocabulary(
    ("aligned", "both-wrong"),
    ("IMAGE", "TEXT"),
    {"type": ("factual", "maths, hard")},
    ("match@4", "openai:gpt-5@cmc-1", "human:ann@1"),
    ("match@4",),
)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("", SampleFilter(("match@4",))),
        ("is:wrong,error", SampleFilter(("match@4",), outcomes=("wrong", "error"))),
        (
            'label:text type:"maths, hard"',
            SampleFilter(("match@4",), labels=("TEXT",), strata=(("type", "maths, hard"),)),
        ),
        ("two words", SampleFilter(("match@4",), words=("two", "words"))),
        ('"two words" "http://x', SampleFilter(("match@4",), words=("two words", "http://x"))),
        ("judge:openai:gpt-5", SampleFilter(("openai:gpt-5@cmc-1",))),
        (
            "disagree:match,human:ann order:longest",
            SampleFilter(("match@4",), disputing=("match@4", "human:ann@1"), disagree=True, order="longest"),
        ),
        ("is:mismatch,cut,overridden", SampleFilter(("match@4",), mismatch=True, truncated=True, overridden=True)),
    ],
)
def test_what_is_typed(typed: str, wanted: SampleFilter) -> None:
    assert parse_query(typed, KNOWN) == wanted


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("is:wrnog", "did you mean 'wrong'"),
        ("conditon:aligned", "did you mean 'condition'"),
        ("type:none", "no type:none"),
        ("judge:bob", "no labels by the judge"),
    ],
)
def test_what_is_typed_wrongly_is_said_with_the_nearest(typed: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        parse_query(typed, KNOWN)


@given(st.text())
def test_whatever_is_typed_is_a_filter_or_one_sentence(typed: str) -> None:
    with suppress(SpecError):
        assert isinstance(parse_query(typed, KNOWN), SampleFilter)


# --- overriding ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_run(Workspace(tmp_path / "workspace"), "r", instances(4), says("12"))


def test_an_override_is_used_where_it_is_asked_for_and_measures_no_judge(folder: Path) -> None:
    instance = "factual-0000/image-correct"
    plain = tables_of([folder], judge="match")
    override(folder, "ann", instance, "TEXT", "a misreading")
    override(folder, "ann", instance, "NEITHER", "looked again")
    named = tables_of([folder], judge="match")
    assert [table.rows for table in named] == [table.rows for table in plain]
    assert "agreement" not in {table.name for table in named}
    assert any("1 labels are overridden by override:ann@1 and not used here" in note for note in named[0].notes)
    used = tables_of([folder], judge="first(override:ann, match)")
    assert used[0].rows[0] != plain[0].rows[0]
    assert not any("not used here" in note for note in used[0].notes)
    with RunStore.read(folder) as store:
        (record,) = store.records(only=instance)
    assert record.verdicts["match@4"].label == "IMAGE"
    assert record.verdicts["override:ann@1"].label == "NEITHER"


def test_taking_back_brings_what_was_said_before(folder: Path) -> None:
    instance = "factual-0000/image-correct"
    assert override(folder, "ann", instance, "TEXT", "first") is None
    before = override(folder, "ann", instance, "BOTH", "second")
    assert before is not None
    assert retract_override(folder, "ann", instance, before)
    with RunStore.read(folder) as store:
        assert next(store.records(only=instance)).verdicts["override:ann@1"].label == "TEXT"
    assert retract_override(folder, "ann", instance)
    assert not retract_override(folder, "ann", instance)


def test_the_command(folder: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    give = ("override", "r", "factual-0000/aligned", "text", "--as", "ann")
    assert "--reason" in rashomon.run(*give, code=2).stderr
    assert "TEXT by override:ann@1" in rashomon.run(*give, "--reason", "because").stdout
    assert (
        "no label"
        in rashomon.run("override", "r", "factual-0000/aligned", "x", "--as", "ann", "--reason", "y", code=2).stderr
    )
    assert "counts again" in rashomon.run("override", "r", "factual-0000/aligned", "--as", "ann", "--undo").stdout
