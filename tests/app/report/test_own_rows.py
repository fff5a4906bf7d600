"""Runs over a user's own rows alone: nothing of a paper stands beside their numbers, on any surface."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rashomon
from app.compare.comparison_tables import compare
from app.compare.papers.paper_comparison import paper_models
from app.compare.recommend.recommendation import recommend
from app.compare.result_cache import ResultCache
from app.compare.runs.view_reader import load_views
from app.exports.export_formats import export_runs
from app.exports.hub_data_set import make_data_set
from app.report.tables import run_tables as tables_module
from app.report.tables.paper_rows import without_published
from app.report.tables.run_tables import tables_from, tables_of
from app.report.tables.table_inputs import read_inputs
from app.store.run_references import PublishedRow
from app.store.workspace import Workspace
from benchmarks.cmc_bench.cmc_tables import NOTE_WRONG_IMAGE
from benchmarks.errors import SpecError
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Table
from tests.app.report.tables.test_run_headline import PLACES, Place, records_of, stored_run
from tests.support.runs import instances, make_run, says

OF_PAPER = re.compile(r"\(paper\)|The paper's rows|\b(?:Tables?|Figures?|[Ss]ections?|Appendix) [A-H0-9]")
OWN = {"cmc-bench": "rows", "retrieval": "log", "clash": "rows"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("own") / "workspace")
    for name, answer in (("a", "12"), ("b", "15")):
        make_run(workspace, name, instances(3, source="rows"), says(answer), model=f"org/{name}")
    make_run(workspace, "published", instances(3), says("12"), model="org/c")
    return workspace


@pytest.fixture
def folders(workspace: Workspace) -> list[Path]:
    return [workspace.runs_folder / name for name in ("a", "b")]


def of_paper(*tables: Table) -> list[str]:
    """Return the titles, rows and notes that name a paper's row or number."""
    texts = [text for table in tables for text in (table.title, *table.notes, *(row for row, _ in table.rows))]
    return [text for text in texts if OF_PAPER.search(text)]


def test_only_published_rows_have_wrong_images_that_answer_another_question(workspace: Workspace) -> None:
    def noted(*names: str) -> set[str]:
        tables = tables_of([workspace.runs_folder / name for name in names])
        return {table.name for table in tables if NOTE_WRONG_IMAGE in table.notes}

    assert noted("a", "b") == set()
    assert noted("published") == noted("a", "published") == {"main", "labels", "arbitration"}


@pytest.mark.parametrize("place", [place for place in PLACES if place.benchmark in OWN], ids=str)
def test_no_table_of_own_rows_has_a_papers_row_or_number(tmp_path: Path, place: Place) -> None:
    benchmark = get_benchmark(place.benchmark)
    theirs = Place(**{**vars(place), "strata": {**place.strata, "source": "theirs"}})
    own = Place(**{**vars(place), "strata": {**place.strata, "source": OWN[place.benchmark]}})
    folder = stored_run(Workspace(tmp_path / "own"), benchmark, records_of(own, benchmark))
    other = stored_run(Workspace(tmp_path / "theirs"), benchmark, records_of(theirs, benchmark))
    assert of_paper(*tables_of([folder])) == []
    assert of_paper(*tables_of([other])) != []
    assert of_paper(*tables_of([folder, other])) != [], "one of the runs is comparable"


def test_one_table_costs_no_scorecard(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = tables_of(folders, only="scorecard")
    assert whole in tables_of(folders)

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("computed a scorecard that nobody reads")

    monkeypatch.setattr(tables_module, "scorecard_table", refuse)
    assert [table.name for table in tables_of(folders, only="main")] == ["main"]
    with pytest.raises(AssertionError):
        tables_of(folders)


def test_the_api_and_a_data_set_have_no_row_or_number_of_a_paper(workspace: Workspace, folders: list[Path]) -> None:
    tables = rashomon.open(workspace.path).tables("a", "b")
    assert of_paper(*(table.table for table in tables.values())) == []
    files = make_data_set(workspace, folders, "x/y").files
    assert not [name for name in ("README.md", "results.json") if OF_PAPER.search(files[name].decode())]


@pytest.mark.parametrize("form", ["csv", "md", "latex", "json", "html", pytest.param("report", marks=pytest.mark.slow)])
def test_no_export_has_a_papers_row_or_number(
    workspace: Workspace, tmp_path: Path, form: str, folders: list[Path]
) -> None:
    written = export_runs(workspace, folders, formats=(form,), out=tmp_path)
    texts = {name: _without_references((tmp_path / name).read_text("utf-8", "replace")) for name, _ in written.files}
    assert texts
    assert {name: OF_PAPER.findall(text) for name, text in texts.items() if OF_PAPER.search(text)} == {}


def _without_references(text: str) -> str:
    """Return a document without its references, which name papers, and without the name of the prompt set."""
    return re.split(r"<h2>References|\\begin\{thebibliography\}", text)[0].replace("one prompt template (paper)", "")


def test_comparisons_and_the_interface_offer_no_row_of_a_paper(workspace: Workspace, folders: list[Path]) -> None:
    comparison, recommendation = compare(folders), recommend(folders)
    assert of_paper(*comparison.tables, recommendation.table) == []
    results = ResultCache()
    assert of_paper(*results.tables(folders)) == []
    assert results.paper_models(folders) == []
    with pytest.raises(SpecError):
        compare([folders[0], PublishedRow("Qwen3-VL-4B")])
    published = workspace.runs_folder / "published"
    assert "Qwen3-VL-4B" in paper_models(tables_of([published], published=False), load_views([published]))


def test_hiding_a_papers_rows_hides_no_row_of_a_run(folders: list[Path]) -> None:
    inputs = read_inputs(folders)
    assert [without_published(table) for table in tables_from(inputs)] == tables_from(inputs)
