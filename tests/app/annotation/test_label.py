"""People's labels: blind, resumable, undone, imported; and what tables say of a judge with and without them."""

from __future__ import annotations

import csv
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.annotation.correcting_labels import drawn_samples, restrict_to_sample
from app.commands.people.label_command import LabelArguments, label
from app.report.tables.run_tables import tables_of
from app.store.run_store import RunStore
from app.store.store_types import NewAnswer
from app.store.stored_answers import read_runs
from app.store.workspace import Workspace
from benchmarks.errors import SourceError, SpecError, StoreError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Estimate, Generation, Record, Table
from tests.app.engine.test_judge_faults import make_run
from tests.support.charts import draw_sources
from tests.support.command import Rashomon

ANN = "human:ann@1"


@pytest.fixture(scope="module")
def run_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("labelled")
    draw_sources(home / "sources")
    rashomon = Rashomon(home)
    rashomon.run("build", "cmc-bench", "--source", home / "sources")
    rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "r")
    return home


@pytest.fixture
def workspace(run_home: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(run_home / "workspace", tmp_path / "workspace")
    return Workspace(tmp_path / "workspace")


def says(*words: str) -> Callable[[str], str]:
    """Types these words, one a prompt, then ends the input."""
    typed = iter(words)

    def ask(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    return ask


def take(
    workspace: Workspace,
    ask: Callable[[str], str],
    *,
    n: int | None = 10,
    seed: int | None = None,
    sample_only: bool = True,
) -> int:
    return label(workspace, "r", LabelArguments(annotator="ann", n=n, seed=seed, sample_only=sample_only), ask=ask)


def records(workspace: Workspace) -> list[Record]:
    with RunStore.read(workspace.runs_folder / "r") as store:
        return list(store.records())


def labelled(workspace: Workspace) -> dict[str, str | None]:
    return {r.instance.id: r.verdicts[ANN].label for r in records(workspace) if ANN in r.verdicts}


@pytest.mark.slow
def test_labels_are_kept_at_once_and_gone_on_with(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    take(workspace, says("1", "text", "?", "NEI", "q"))
    assert sorted(filter(None, labelled(workspace).values())) == ["IMAGE", "NEITHER", "TEXT"]
    assert "'?' is none of the labels" in capsys.readouterr().out
    take(workspace, says(*["5"] * 20), n=None)
    result = labelled(workspace)
    assert len(result) == 10
    assert sorted(filter(None, result.values())) == ["ABSTAIN"] * 7 + ["IMAGE", "NEITHER", "TEXT"]
    take(workspace, says(*["5"] * 20), n=15)
    assert set(result) < set(labelled(workspace))
    assert len(labelled(workspace)) == 15


def test_undo_takes_back_the_last_label_also_of_an_earlier_sitting(workspace: Workspace) -> None:
    take(workspace, says("1", "2", "u", "3"))
    assert sorted(filter(None, labelled(workspace).values())) == ["BOTH", "IMAGE"]
    take(workspace, says("u", "u", "u", "4"))
    assert list(labelled(workspace).values()) == ["NEITHER"]
    with RunStore.read(workspace.runs_folder / "r") as store:
        assert sum(p.judged[ANN].labelled for p in store.progress() if ANN in p.judged) == 1


def test_a_person_is_shown_neither_model_nor_condition_nor_label(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    take(workspace, says(*["s"] * 10))
    out = capsys.readouterr().out
    assert "Question: " in out
    assert "Answer:" in out
    for secret in ("uniform", "aligned", "image-correct", "text-correct", "both-wrong", "match@4", "image-only"):
        assert secret not in out


@pytest.mark.slow
def test_a_sample_that_corrects_nothing_says_so_when_it_is_drawn_and_how_many_labels_do(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    take(workspace, says(), n=20)
    out = capsys.readouterr().out
    assert "20 labels are too few to correct the metrics: each condition needs 10" in out
    enough = int(re.search(r"(\d+) labels are enough: --n \1\.", out)[1])  # type: ignore[index]
    take(workspace, says(*["1"] * (enough - 1)), n=enough - 1)
    assert "labels are too few to correct every metric" in capsys.readouterr().out
    assert any(value is None for value in corrected(workspace)), "one label fewer is not enough for every figure"
    take(workspace, says("1"), n=enough)
    assert f"{enough} labels are enough to correct the metrics" in capsys.readouterr().out
    reasons = [reason for reason in corrected_reasons(workspace) if "looked at fewer" in reason]
    assert reasons == []


def corrected_reasons(workspace: Workspace) -> list[str]:
    (table,) = tables_of([workspace.runs_folder / "r"], only="corrected")
    return [
        cell.reason for _, cells in table.rows for cell in cells if isinstance(cell, Estimate) and cell.value is None
    ]


def corrected(workspace: Workspace) -> list[float | None]:
    (table,) = tables_of([workspace.runs_folder / "r"], only="corrected")
    return [cell.value for _, cells in table.rows for cell in cells if isinstance(cell, Estimate)]


def test_a_sample_is_the_same_everywhere_and_another_seed_is_refused(workspace: Workspace) -> None:
    take(workspace, says("1"), seed=3)
    with pytest.raises(SpecError, match="drawn with --seed 3"):
        take(workspace, says("1"), seed=4)


def test_labels_travel_through_a_spreadsheet(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "sample.csv"
    label(workspace, "r", LabelArguments(annotator="ann", n=12, seed=1, export_file=file, sample_only=True))
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    assert len(rows) == 12
    assert set(rows[0]) == {"id", "label", "question", "image", "text", "answer"}
    assert not any("correct" in value for row in rows for value in row.values())
    for number, row in enumerate(rows):
        row["label"] = "image" if number < 5 else ""
    with file.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)
    label(workspace, "r", LabelArguments(annotator="ann", n=None, seed=None, import_file=file, export_file=None))
    label(workspace, "r", LabelArguments(annotator="ann", n=None, seed=None, import_file=file, export_file=None))
    assert list(labelled(workspace).values()) == ["IMAGE"] * 5


def table(tables: Sequence[Table], name: str) -> Table:
    return next(table for table in tables if table.name == name)


def by_the_judge(workspace: Workspace) -> Iterator[str]:
    """A person who labels as ``match`` does, or ABSTAIN where that is undecided, except every seventh answer."""
    from judges.human_labels_and_samples import draw_sample

    by_id = {record.instance.id: record for record in records(workspace)}
    for number, item in enumerate(draw_sample(by_id.values(), 120, 0, stratify_by="type")):
        label = by_id[item].verdicts["match@4"].label
        yield "NEITHER" if number % 7 == 0 else label or "ABSTAIN"


@pytest.mark.slow
def test_every_table_says_how_the_judge_agrees_with_people_or_that_it_is_unknown(workspace: Workspace) -> None:
    folder = workspace.runs_folder / "r"
    before = tables_of([folder])
    unknown = "How match@4 agrees with people or with an API judge is unknown for this run."
    assert all(unknown in item.notes for item in before)
    assert "corrected" not in {item.name for item in before}
    take(workspace, says(*by_the_judge(workspace)), n=120)
    after = tables_of([folder])
    items = [note for note in table(after, "main").notes if note.startswith("match@4 agrees with human:ann@1 on ")]
    assert len(items) == 1
    of_sample = [record for record in records(workspace) if ANN in record.verdicts]
    decided = sum(record.outcome("match@4") == "labelled" for record in of_sample)
    assert f"of {decided} answers, Cohen's kappa 0." in items[0]
    names = {item.name for item in after}
    assert {"corrected", "agreement", "agreement-labels", "confusion"} <= names
    corrected = dict(table(after, "corrected").rows)
    cells = next(cells for row, cells in corrected.items() if row.endswith("MFR"))
    figures = [cell for cell in cells if isinstance(cell, Estimate)]
    assert all(figure.value is not None and figure.low is not None for figure in figures)
    assert unknown not in table(after, "main").notes


def test_a_panel_labels_where_its_members_agree(workspace: Workspace) -> None:
    take(workspace, says(*by_the_judge(workspace)), n=120)
    folder = workspace.runs_folder / "r"
    result = tables_of([folder], judge="all(match, human:ann)")
    failures = dict(table(result, "failures").rows)
    labels = [sum(int(str(cells[i])) for cells in failures.values()) for i in range(1, 7)]
    assert labels[0] + labels[3] == 120
    assert 0 < labels[3] <= 18
    assert "Labels by all(match@4, human:ann@1)." in table(result, "main").notes
    with pytest.raises(SpecError, match="use majority or all"):
        tables_of([folder], judge="any(match, human:ann)")


def test_in_the_terminal(run_home: Path, tmp_path: Path) -> None:
    shutil.copytree(run_home / "workspace", tmp_path / "workspace")
    rashomon = Rashomon(tmp_path)
    stdout = rashomon.run("label", "r", "--as", "ann", "--n", "5", "--sample-only").stdout
    assert "0 of 5 labelled; the same command continues" in stdout
    assert "annotator name" in rashomon.run("label", "r", "--as", "../x", code=2).stderr
    file = tmp_path / "labels.csv"
    file.write_text("id,label\nnobody,IMAGE\n")
    assert "is not the id of an answer" in rashomon.run("label", "r", "--as", "a", "--import", file, code=2).stderr
    rashomon.run("export", "r", "--judge", "majority(match, human:ann, human:bob)", code=2)
    listed = rashomon.json("show", "r")["tables"]
    assert all("notes" in item for item in listed)


def test_a_label_never_ends_up_on_an_answer_that_was_not_seen(workspace: Workspace, tmp_path: Path) -> None:
    folder = workspace.runs_folder / "r"
    file = tmp_path / "sample.csv"
    label(workspace, "r", LabelArguments(annotator="ann", n=4, seed=0, import_file=None, export_file=file))
    file.write_text(file.read_text().replace(",,", ",IMAGE,"))

    def repeated(prompt: str) -> str:
        with RunStore.open(folder) as store:
            store.repeat()
            store.use_engine({})
            store.commit(
                [
                    NewAnswer(
                        p.ordinal, p.instance.condition, 0, "", Generation(f"{p.instance.id}#0", "new", "stop"), True
                    )
                    for p in list(store.pending())
                ]
            )
        return "1"

    with pytest.raises(StoreError, match="have changed in the meantime"):
        take(workspace, repeated)
    assert labelled(workspace) == {}
    with pytest.raises(SourceError, match="is not the id of an answer"):
        label(workspace, "r", LabelArguments(annotator="ann", n=None, seed=None, import_file=file, export_file=None))


def test_no_sample_is_drawn_of_a_run_that_is_not_answered_to_the_end(workspace: Workspace) -> None:
    with RunStore.open(workspace.runs_folder / "r") as store:
        store.repeat(["aligned"])
    with pytest.raises(SpecError, match="finish it first"):
        take(workspace, says("1"))


@pytest.mark.slow
def test_what_was_skipped_counts_as_looked_at(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    take(workspace, says("s", "1", "s", "2"))
    assert f"{ANN}: 2 labelled, 2 skipped, of " in capsys.readouterr().out
    take(workspace, says("u", "3", "1"))
    verdicts = [r.verdicts[ANN] for r in records(workspace) if ANN in r.verdicts]
    assert sorted(v.label or v.reason for v in verdicts) == [
        "BOTH",
        "IMAGE",
        "IMAGE",
        "skipped by hand",
        "skipped by hand",
    ]
    take(workspace, says(*["s"] * 20, *by_the_judge(workspace)), n=120)
    message = table(tables_of([workspace.runs_folder / "r"]), "corrected").notes
    assert any("none that human:ann@1 could give" in note for note in message), message


def corrected_n(workspace: Workspace) -> int:
    rows = table(tables_of([workspace.runs_folder / "r"]), "corrected").rows
    return sum(cells[-1] for _, cells in rows if isinstance(cells[-1], int))


def test_hand_picked_labels_correct_no_figure(workspace: Workspace, tmp_path: Path) -> None:
    chosen = [r.instance.id for r in records(workspace) if r.verdicts["match@4"].label == "NEITHER"]
    file = tmp_path / "picked.csv"
    file.write_text("id,label\n" + "".join(f"{item},IMAGE\n" for item in chosen))
    label(workspace, "r", LabelArguments(annotator="ann", n=None, seed=None, import_file=file, export_file=None))
    assert corrected_n(workspace) == 0
    message = table(tables_of([workspace.runs_folder / "r"]), "corrected").notes
    assert any(note.startswith(f"{len(chosen)} labels by {ANN} are not used here") for note in message)
    label(
        workspace,
        "r",
        LabelArguments(annotator="ann", n=None, seed=None, import_file=file, export_file=None, random_sample=True),
    )
    assert corrected_n(workspace) > 0


def test_of_a_sample_only_the_beginning_counts(workspace: Workspace, tmp_path: Path) -> None:
    take(workspace, says(*by_the_judge(workspace)), n=120)
    whole = corrected_n(workspace)
    first = next(r for r in records(workspace) if ANN in r.verdicts)
    with RunStore.open(workspace.runs_folder / "r") as store:
        drawn = store.meta(f"labelling {ANN}")["sample"]
        store.retract(ANN, instance=drawn[60])
    assert first.instance.id in drawn
    assert corrected_n(workspace) < whole


def test_several_runs_are_shown_by_a_judge_that_labelled_one_of_them(workspace: Workspace) -> None:
    shutil.copytree(workspace.runs_folder / "r", workspace.runs_folder / "s")
    take(workspace, says("1", "2"))
    folders = [workspace.runs_folder / name for name in ("s", "r")]
    notes = table(tables_of(folders, judge="human:ann"), "main").notes
    assert any(note == "human:ann@1 has not labelled s." for note in notes)


def test_a_panel_is_not_measured_by_its_own_members(workspace: Workspace) -> None:
    take(workspace, says(*by_the_judge(workspace)), n=120)
    result = tables_of([workspace.runs_folder / "r"], judge="all(match, human:ann)")
    assert "corrected" not in {item.name for item in result}
    assert not any("agrees with human" in note for note in table(result, "main").notes)


@pytest.mark.slow
def test_asking_for_fewer_answers_later_loses_no_label(workspace: Workspace) -> None:
    take(workspace, says(*by_the_judge(workspace)), n=120)
    whole = corrected_n(workspace)
    take(workspace, says(), n=20)
    assert corrected_n(workspace) == whole


def test_a_line_of_thousands_of_digits_is_no_label(workspace: Workspace) -> None:
    take(workspace, says("9" * 5000, "1"))
    assert list(labelled(workspace).values()) == ["IMAGE"]


def test_what_the_papers_rows_are_compared_with_is_counted_for_each_run(workspace: Workspace, run_home: Path) -> None:
    rashomon = Rashomon(run_home)
    rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:random", "--limit", "3", "--name", "few")
    folders = [workspace.runs_folder / "r", rashomon.workspace / "runs" / "few"]
    by_source = Counter({(r.instance.group, r.instance.strata["source"]) for r in records(workspace)})
    counts = Counter(source for _, source in by_source)
    items = [note for note in table(tables_of(folders), "main").notes if note.startswith("Rows marked (paper)")]
    whole = f"{len(by_source)} examples ({', '.join(f'{n} of {source}' for source, n in sorted(counts.items()))})"
    assert f"policy:uniform on {whole}; policy:random on 3 examples (" in items[0]


UNDECIDED = 7
"""The answers of a run that the judge leaves undecided."""


def make_partly_undecided(home: Path) -> Workspace:
    def say(number: int) -> str:
        if number < 40 - UNDECIDED:
            return f"{1950 + number % 50}"
        return f"The picture has {1950 + number % 50} while the passage has {2001 + number % 20}, so one may wonder."

    workspace = Workspace(home / "workspace")
    make_run(workspace, 40, say)
    Rashomon(home).run("judge", "r", "--judge", "match")
    return workspace


def drawn(workspace: Workspace) -> list[str]:
    with RunStore.read(workspace.runs_folder / "r") as store:
        sample: list[str] = store.meta(f"labelling {ANN}")["sample"]
    return sample


def test_undecided_answers_come_first_and_count_as_no_part_of_the_sample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = make_partly_undecided(tmp_path)
    take(workspace, says(*["3"] * UNDECIDED, "q"), n=20, sample_only=False)
    assert f"First come {UNDECIDED} answers" in capsys.readouterr().out
    undecided = {r.instance.id for r in records(workspace) if r.outcome("match@4") == "undecided"}
    assert set(labelled(workspace)) == undecided
    assert len(undecided) == UNDECIDED

    def in_sample() -> set[str]:
        with RunStore.read(workspace.runs_folder / "r") as store:
            answers = dict(zip("r", read_runs([store], get_benchmark("cmc-bench")), strict=True))
            kept, _ = restrict_to_sample(answers, ANN, drawn_samples({"r": store}, ANN))
            of_person = kept["r"].mask(lambda kind: ANN in kind.verdicts).nonzero()[0].tolist()
            return {record.instance.id for record in kept["r"].read(of_person)}

    assert in_sample() == set(), "they were chosen because they are undecided"
    take(workspace, says(*["1"] * 5, "q"), n=None, sample_only=False)
    decided = [instance for instance in drawn(workspace) if instance not in undecided][:5]
    upto = drawn(workspace)[: drawn(workspace).index(decided[-1]) + 1]
    assert in_sample() == set(upto), "a beginning of the sample, undecided ones included"
    take(workspace, says(*["1"] * 20), n=None, sample_only=False)
    assert in_sample() == set(drawn(workspace))


def test_the_sample_can_be_labelled_alone(tmp_path: Path) -> None:
    workspace = make_partly_undecided(tmp_path)
    take(workspace, says("n", "1", "q"), n=20, sample_only=False)
    (first,) = labelled(workspace)
    assert first in drawn(workspace)
    assert next(r for r in records(workspace) if r.instance.id == first).outcome("match@4") == "labelled"
    label(workspace, "r", LabelArguments("ann", sample_only=True), ask=says(*["1"] * 25))
    assert set(labelled(workspace)) == set(drawn(workspace))
