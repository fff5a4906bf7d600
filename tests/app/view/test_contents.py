"""Contents of the page: the same outcomes as everywhere else, read again as runs change."""

from __future__ import annotations

import io
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from app.annotation.label_override import override, retract_override
from app.exports.export_input import load_runs
from app.report.samples.sample_rows import sample_to_row
from app.report.tables.judge_selection import effective_judges
from app.store.run_store import RunStore
from app.store.sample_lists import SampleRow
from app.store.store_types import NewAnswer
from app.store.workspace import Workspace
from app.view.contents.page_contents import Contents, kind_of
from app.view.contents.page_instance import sibling_names
from app.view.contents.page_json import to_json
from app.view.contents.page_types import DISPUTED, LONGEST, OVERRIDDEN, TRUNCATED
from benchmarks.errors import RashomonError, SpecError
from benchmarks.protocols.repeats import RepeatedInstances
from benchmarks.registry import BUILT_IN, get_benchmark
from benchmarks.vocabulary import Generation, Instance, Media, Text, Verdict
from tests.support.every_outcome import every_outcome_run
from tests.support.runs import instances, make_run, says
from tests.support.tui_stage import Stage
from tests.support.viewed import decoded, listed

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e\u200b"
ESCAPED = "<img src=x onerror=alert(1)>\\x1b[31m\\u202e\\u200b"


def rows_of(folder: Path, judge: str) -> dict[str, SampleRow]:
    """Return the rows of a list of samples, by instance."""
    with RunStore.read(folder) as store:
        return {row.id: row for row in store.sample_rows(range(len(store.ids())), (judge,))}


@pytest.mark.parametrize(
    "benchmark",
    [name if name in ("cmc-bench", "clash") else pytest.param(name, marks=pytest.mark.slow) for name in BUILT_IN],
)
def test_outcomes_are_those_of_lists_and_exports(benchmark: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    folders = [every_outcome_run(workspace, benchmark, f"run-{seed}", seed=seed) for seed in (1, 2)]
    contents = Contents(workspace, folders)
    for place, (folder, run) in enumerate(zip(folders, load_runs(workspace, folders, None), strict=True)):
        rows, columns = rows_of(folder, run.judge), listed(contents, place)
        exported = {record.instance.id: sample_to_row(record, run.judge) for record in run.records}
        assert columns.keys() == rows.keys() == exported.keys()
        for id_, column in columns.items():
            expected = exported[id_]
            is_labelled = expected["outcome"] == "labelled"
            assert column.outcome == rows[id_].outcome
            assert (column.outcome in ("right", "wrong")) == is_labelled
            assert is_labelled or column.outcome == expected["outcome"]
            assert column.label == (expected["label"] if is_labelled else None)
            assert bool(column.flags & TRUNCATED) == (expected.get("finish_reason") == "length")
        for number in range(0, len(contents.instances), 5):
            instance = contents.instance(number)
            answer = instance.answers[place]
            assert answer is not None
            column = columns[instance.id]
            assert (answer.outcome, answer.label) == (column.outcome, column.label)
            assert answer.answer == ("" if answer.error else (exported[instance.id]["answer"] or ""))


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_label_that_unparsed_answers_count_as_is_wrong(name: str) -> None:
    benchmark = get_benchmark(name)
    if (label := benchmark.unparsed_label) is not None:
        assert {kind_of(benchmark, condition, label) for condition in benchmark.conditions} == {"wrong"}


def test_instances_are_those_of_all_runs_in_order_of_appearance(tmp_path: Path) -> None:
    workspace, items = Workspace(tmp_path), instances(3)
    folders = [
        make_run(workspace, "first", items[6:], says("12")),
        make_run(workspace, "second", items[:12], says("15")),
    ]
    contents = Contents(workspace, folders)
    assert contents.instances.ids == tuple(item.id for item in (*items[6:], *items[:6]))
    assert listed(contents, 1)[items[-1].id].outcome is None
    row = contents.rows([0, len(items) - 1])
    assert row[0].answers == ("12", "15")
    assert row[1].answers == (None, "15")
    instance = contents.instance(len(items) - 1)
    assert instance.answers[0] is None
    assert [contents.instances.ids[sibling.number] for sibling in instance.siblings] == [item.id for item in items[:6]]
    assert contents.number(items[0].id) == 12
    with pytest.raises(SpecError, match="matches 18 instances"):
        contents.number("factual-")
    with pytest.raises(SpecError, match="no instance"):
        contents.number("nothing")


def test_strata_and_documents_are_columns(tmp_path: Path) -> None:
    items = [
        replace(item, strata={**item.strata, "document": f"page {number % 2}"})
        for number, item in enumerate(instances(1))
    ]
    contents = Contents(Workspace(tmp_path), [make_run(Workspace(tmp_path), "run", items, says("12"))])
    strata = contents.index().strata
    assert strata["document"].values == ("page 0", "page 1")
    assert decoded(strata["document"].codes, "u4").tolist() == [1, 2, 1, 2, 1, 2]
    assert strata["type"].values == ("factual",)


def test_a_repeated_question_has_its_other_answers(tmp_path: Path) -> None:
    once = instances(2)
    items = list(RepeatedInstances(once, 3))
    texts = iter(range(100))
    workspace = Workspace(tmp_path)
    other = make_run(workspace, "other", once, says("12"), model="policy:random")
    folder = make_run(workspace, "run", items, lambda item: says(f"{next(texts)}")(item))
    with RunStore.open(folder) as store:
        store.repeat(["aligned"])
    contents = Contents(workspace, [folder, other])
    assert contents.instances.ids == tuple(item.id for item in once), "each repeat is in the cell of its instance"
    assert "repeat" not in contents.index().strata
    rows = rows_of(folder, "match@4")
    assert {id_: column.outcome for id_, column in listed(contents).items()} == {
        item.id: rows[item.id].outcome for item in once
    }
    answer, beside = contents.instance(1).answers
    assert answer is not None
    assert beside is not None
    assert [(item.number, item.answer) for item in answer.repeats] == [(None, "7"), (None, "13")]
    assert [(item.outcome, item.label) for item in answer.repeats] == [
        (rows[id_].outcome, rows[id_].label) for id_ in (f"{items[1].id}~repeat-2", f"{items[1].id}~repeat-3")
    ]
    assert beside.repeats == ()
    assert len(contents.instance(1).siblings) == 6
    assert contents.search("13") == [1], "as a repeat answers"
    assert contents.number(f"{items[1].id}~repeat-2") == contents.number(items[1].id) == 1
    changes = [numbers for pair in contents.overview().pairs for numbers in pair.changes.values()]
    assert all(len({*numbers}) == len(numbers) and max(numbers, default=0) < len(once) for numbers in changes)
    before = contents.revision
    with RunStore.open(folder) as store:
        store.use_engine({})
        pending = [item for item in store.pending() if item.instance.id == f"{items[0].id}~repeat-2"]
        answers = [(item, says("15")(item.instance)) for item in pending]
        store.commit([NewAnswer(p.ordinal, p.instance.condition, 0, "", answer, True) for p, answer in answers])
    contents.refresh()
    assert [change.number for change in contents.changes(before).changes] == [0], "its cell is drawn again"


def test_labels_have_meanings_and_rules_are_no_models(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    folders = [stage.run(name, asked=instances(1), model=model) for name, model in (("a", "m"), ("b", "policy:random"))]
    head = Contents(stage.workspace, folders).head()
    assert head.meanings["TEXT"] == "follows the text"
    assert [run.is_policy for run in head.runs] == [False, True]


def test_instances_under_the_same_condition_have_names_of_their_own() -> None:
    ids = ["x/aligned", "x/image-only/right", "x/image-only/wrong", "x/text", "x/text~2"]
    conditions = ["aligned", "image-only", "image-only", "text", "text"]
    names = ["aligned", "image-only: right", "image-only: wrong", "text", "text 2"]
    assert sibling_names(ids, conditions) == names


def test_instances_read_together_are_those_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, items = Workspace(tmp_path), list(RepeatedInstances(instances(20), 2))
    texts = iter(range(1_000))
    folders = [
        make_run(workspace, "some", items[100:], says("12")),
        make_run(workspace, "all", items, lambda item: says(f"{next(texts)}")(item)),
    ]
    database = sqlite3.connect(folders[1] / "run.sqlite")
    with database:
        database.execute("UPDATE generation SET text = 'forged' WHERE instance = 146")
    database.close()
    contents = Contents(workspace, folders)
    count = len(contents.instances)
    numbers = [*range(0, count, 2), count - 1, 5]
    single = [contents.instance(number) for number in numbers]
    assert list(contents.read_instances(numbers)) == single
    damaged = [instance.id for instance in single if any(answer and answer.error for answer in instance.answers)]
    assert damaged == [items[146].id]
    lookups = 0
    look_up = RunStore.meta

    def counted(store: RunStore, key: str, default: object = None) -> object:
        nonlocal lookups
        lookups += 1
        return look_up(store, key, default)

    contents = Contents(workspace, [folders[0]])
    monkeypatch.setattr(RunStore, "meta", counted)
    count = len(contents.instances)
    assert len(list(contents.read_instances(range(count)))) == count > 50
    assert lookups < 20, "what a run's instances share is read once"


def test_searched_words_may_occur_in_different_runs(tmp_path: Path) -> None:
    workspace, items = Workspace(tmp_path), instances(2)

    def answers(item: Instance) -> Generation:
        return says("a zebra" if item is items[3] else "a horse")(item)

    folders = [make_run(workspace, "first", items, answers), make_run(workspace, "second", items, says("Äpfel"))]
    contents = Contents(workspace, folders)
    assert contents.search("Zebra äpfel") == [3]
    assert contents.search("zebra horse") == []
    assert contents.search("trams") == list(range(12))
    assert contents.search("  ") == list(range(12))


def test_media_of_every_kind_have_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("av")
    workspace = Workspace(tmp_path)
    contents = Contents(workspace, [every_outcome_run(workspace, "contra4", "run", seed=1)])
    numbers = range(len(contents.instances))
    media = {medium.modality: medium for number in numbers for medium in contents.instance(number).media}
    assert {modality: medium.original is not None for modality, medium in media.items()} == {
        "image": True,
        "audio": True,
        "video": True,
        "point_cloud": False,
    }
    for medium in media.values():
        assert medium.preview is not None
        picture = contents.media.preview(medium.preview.removeprefix("media/"))
        assert picture is not None
        width, height = Image.open(io.BytesIO(picture)).size
        assert max(width, height) <= 1_600
        assert medium.modality != "point_cloud" or width * 2 == height * 3, "three views beside each other, in two rows"


# --- changes -------------------------------------------------------------------------------------


def test_answers_and_labels_appear_as_they_come(tmp_path: Path) -> None:
    stage, items = Stage(tmp_path), instances(2)
    folder = stage.run("run", asked=items, done=4, state="running")
    try:
        contents = Contents(stage.workspace, [folder])
        contents.refresh()
        before = contents.revision
        assert (contents.head().runs[0].state, contents.head().runs[0].done) == ("running", 4)
        assert contents.refresh() == before
        stage.answer(folder, items[:7], says("15"))
        assert contents.refresh() == before + 1
        changes = contents.changes(before)
        assert [change.number for change in changes.changes] == [4, 5, 6]
        assert (changes.runs[0].done, changes.whole) == (7, False)
        assert contents.changes(contents.revision).changes == ()
        assert contents.changes(contents.revision + 1).whole, "another server's revision"
        rows = rows_of(folder, "match@4")
        assert {id_: column.outcome for id_, column in listed(contents).items()} == {
            id_: row.outcome for id_, row in rows.items()
        }
        stage.note(folder, "judging")
        assert contents.refresh() > changes.revision
        assert contents.head().runs[0].state == "judging"
    finally:
        stage.close()


def test_an_override_is_in_force_until_it_is_retracted(tmp_path: Path) -> None:
    stage, items = Stage(tmp_path), instances(1)
    folder = stage.run("run", asked=items)
    contents = Contents(stage.workspace, [folder])
    before = listed(contents)[items[1].id]
    override(folder, "me", items[1].id, "NEITHER", "it says so")
    contents.refresh()
    assert listed(contents)[items[1].id] == (
        "wrong",
        "NEITHER",
        OVERRIDDEN,
    )
    (answer,) = contents.instance(1).answers
    assert answer is not None
    assert (answer.label, answer.overridden, answer.reason) == ("NEITHER", True, "it says so")
    by_judge = Contents(stage.workspace, [folder], judge="match")
    assert listed(by_judge)[items[1].id].label == before.label
    assert retract_override(folder, "me", items[1].id)
    contents.refresh()
    assert listed(contents)[items[1].id] == before
    with RunStore.open(folder) as store:
        store.repeat(["aligned"])
    contents.refresh()
    assert listed(contents)[items[0].id].outcome == "pending"
    assert contents.rows([0])[0].answers == (None,)


def test_a_model_that_is_asked_what_a_rule_leaves_undecided_counts_once_it_has_labelled(tmp_path: Path) -> None:
    items = instances(1)
    folder = make_run(Workspace(tmp_path), "run", items, says("12"), undecided=lambda item: item is items[1])
    with RunStore.open(folder) as store:
        spec = store.meta("spec")
        store.set_meta("spec", {**spec, "judge": [*spec["judge"], "org/judge"], "undecided_by": spec["judge"][0]})
    contents = Contents(Workspace(tmp_path), [folder])
    assert listed(contents)[items[1].id].outcome == "undecided"
    with RunStore.open(folder) as store:
        answer = store.answer_of(items[1].id)
        assert answer is not None
        store.add_verdicts([(*answer, Verdict("org/judge@1", "labelled", "TEXT", "so"))])
    contents.refresh()
    assert contents.head().runs[0].judge == "first(match@4, org/judge@1)"
    with RunStore.read(folder) as store:
        rows = {row.id: row for row in store.sample_rows(range(6), effective_judges(store))}
    assert {id_: (column.outcome, column.label) for id_, column in listed(contents).items()} == {
        id_: (row.outcome, row.label) for id_, row in rows.items()
    }
    assert listed(contents)[items[1].id].label == "TEXT"


def test_a_panel_labels_as_in_exports(tmp_path: Path) -> None:
    stage, items = Stage(tmp_path), instances(2)
    folder = stage.run("run", asked=items, answering=says("12"))
    with RunStore.open(folder) as store:
        given = [store.answer_of(item.id) for item in items[:8]]
        verdicts = [
            (*answer, Verdict("other@1", "labelled", "TEXT" if place % 2 else "IMAGE"))
            for place, answer in enumerate(given)
            if answer is not None
        ]
        store.add_verdicts([(generation, condition, verdict) for generation, condition, verdict in verdicts])
    other = stage.run("other", asked=items, model="policy:random")  # without the panel's second member
    both = Contents(stage.workspace, [folder, other], judge="all(match, other)")
    assert {column.outcome for column in listed(both, 1).values()} == {"pending"}
    contents = Contents(stage.workspace, [folder], judge="all(match, other)")
    (run,) = load_runs(stage.workspace, [folder], "all(match, other)")
    columns = listed(contents)
    for record in run.records:
        outcome, column = record.outcome(run.judge), columns[record.instance.id]
        assert column.outcome == outcome or (outcome == "labelled" and column.outcome in ("right", "wrong"))
        (answer,) = contents.instance(contents.number(record.instance.id)).answers
        assert answer is not None
        assert (answer.outcome, answer.label) == (column.outcome, column.label)
    assert {column.outcome for column in columns.values()} >= {"pending", "judge-failed"}
    assert any(column.flags & DISPUTED for column in columns.values())


# --- runs that are gone, and hostile ones --------------------------------------------------------


def _remove(folder: Path) -> None:
    shutil.rmtree(folder)


def _damage(folder: Path) -> None:
    (folder / "run.sqlite").write_bytes(b"SQLite format 3\0" + bytes(4096))


def _replace(folder: Path) -> None:
    shutil.rmtree(folder)
    make_run(Workspace(folder.parent.parent), folder.name, instances(1), says("1"))


@pytest.mark.parametrize("harm", [_remove, _damage, _replace])
def test_a_run_that_is_gone_is_a_problem_of_its_own(harm: Callable[[Path], None], tmp_path: Path) -> None:
    workspace, items = Workspace(tmp_path / "w"), instances(2)
    folders = [make_run(workspace, name, items, says("12"), model=f"policy:{name}") for name in ("text", "image")]
    contents = Contents(workspace, folders)
    kept = tmp_path / "kept"
    shutil.copytree(folders[0], kept)
    harm(folders[0])
    contents.refresh()
    gone, there = contents.head().runs
    assert gone.problem is not None
    assert str(tmp_path) not in gone.problem
    assert there.problem is None
    assert contents.overview().problem is not None
    assert contents.rows([0])[0].answers == (None, "12")
    first, second = contents.instance(0).answers
    assert first is not None
    assert second is not None
    assert (first.error is not None, second.answer) == (True, "12")
    assert contents.search("12") == list(range(12))
    shutil.rmtree(folders[0], ignore_errors=True)
    kept.rename(folders[0])
    contents.refresh()
    assert contents.head().runs[0].problem is None, "it was restored"


def test_no_run_is_left(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    folder = make_run(workspace, "run", instances(1), says("12"))
    contents = Contents(workspace, [folder])
    shutil.rmtree(folder)
    with pytest.raises(RashomonError, match="is not a run"):
        contents.instance(0)


def test_hostile_texts_are_escaped_and_no_path_is_told(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    item = Instance(
        HOSTILE,
        HOSTILE,
        "aligned",
        HOSTILE,
        (Text(HOSTILE), Media("0" * 64, ".png"), Media("../../etc/passwd", ".html")),
        {"image": (HOSTILE,), HOSTILE: (HOSTILE,)},
        {HOSTILE: HOSTILE, "type": HOSTILE},
    )
    failing = Generation("x", "", "error", error=f"{HOSTILE} {workspace.path}/secret")
    folders = [
        make_run(workspace, "run", [item], says(HOSTILE)),
        make_run(workspace, "failed", [item], lambda _: failing, model="policy:random", data=tmp_path / "build"),
    ]
    contents = Contents(workspace, folders)
    instance = contents.instance(0)
    texts = [contents.head(), contents.index(), contents.rows([0]), instance, contents.changes(0), contents.overview()]
    for text in map(to_json, texts):
        assert b"\\u001b" not in text
        assert not {"\u202e", "\u200b", "\x1b"} & set(text.decode())
        assert str(tmp_path) not in text.decode()
    assert instance.question == instance.id == ESCAPED
    assert [medium.original for medium in instance.media] == [None, None]
    assert all("not there" in medium.facts for medium in instance.media)


def test_an_answer_of_ten_megabytes_is_read_in_parts(tmp_path: Path) -> None:
    text = "".join(f"{number}: naïve\x1b\n" for number in range(700_000))
    folder = make_run(Workspace(tmp_path), "run", instances(1)[:1], says(text), failing=lambda _: True)
    contents = Contents(Workspace(tmp_path), [folder])
    instance = contents.instance(0)
    (answer,) = instance.answers
    assert answer is not None
    assert len(answer.answer) == LONGEST
    assert len(to_json(instance)) < 5 * LONGEST
    assert len(to_json(contents.rows([0]))) < 1_000
    expected = text.strip().replace("\x1b", "\\x1b")
    assert answer.length == len(expected)
    part, length = contents.answer_text(0, 0, LONGEST)
    assert (answer.answer + part, length) == (expected[: 2 * LONGEST], len(expected))
    assert contents.answer_text(0, 0, length - 3)[0] == expected[-3:]
    assert contents.answer_text(0, 0, length + 5)[0] == ""
    for number, run in ((0, 1), (1, 0)):
        with pytest.raises(SpecError):
            contents.answer_text(number, run, 0)
