"""Citations: what the papers state, what a model's card states, and nothing else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from app.report.runs import citations
from app.report.runs.citations import bibliography, tool_entry
from app.store.workspace import Workspace
from benchmarks.plain import DATA_SETS
from benchmarks.registry import BUILT_IN
from benchmarks.source_licences import LICENCES
from mlx_backends.models.model_licence import stated_licence
from tests.support.command import ROOT, Rashomon
from tests.support.front_matter import front_matter
from tests.support.runs import instances, make_run, says

PAPERS = {
    "catapang-cmc-bench": "cmc-bench",
    "popordanoska-clash": "clash",
    "tian-crosscheck-bench": "crosscheck-bench",
    "jia2025benchmarking": "mmkc-bench",
    "contra4": "contra4",
}
TEXTS = ROOT.parent / "shared" / "papers"


def test_the_citation_file_has_what_the_format_requires() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    cff = front_matter(f"---\n{text}---\n")
    assert cff["cff-version"] == "1.2.0"
    assert cff["message"]
    assert cff["type"] == "software"
    assert set(cff) <= {"cff-version", "message", "title", "abstract", "type", "license", "authors"}
    assert f"author = {{{{{cff['authors'][0]['name']}}}}}" in tool_entry()
    assert cff["title"] in tool_entry()
    assert cff["license"] in tool_entry()
    assert cff["authors"][0]["name"] in (ROOT / "LICENSE").read_text("utf-8")


def test_every_stored_entry_is_complete_bibtex_and_is_cited() -> None:
    text = citations.BIBLIOGRAPHY.read_text("utf-8")
    entries = bibliography()
    assert len(entries) == text.count("\n@")
    cited = {*citations._PAPERS.values(), *citations._ENGINES.values()}
    assert {*cited, *(key for keys in citations._SOURCES.values() for key in keys)} == set(entries)
    for key, entry in entries.items():
        assert {"title", "author"} <= set(re.findall(r"^  (\w+) = \{.*\},$", entry, re.MULTILINE)), key
        assert entry.count("{") == entry.count("}"), key


def test_every_benchmark_and_each_of_its_sources_is_known() -> None:
    assert set(citations._PAPERS) == set(BUILT_IN) - set(DATA_SETS), "of these no authors are stored"
    assert all(source in LICENCES[benchmark] for benchmark, source in citations._SOURCES)


@pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not here")
@pytest.mark.parametrize("key", PAPERS)
def test_titles_and_authors_are_those_of_the_papers(key: str) -> None:
    printed = (TEXTS / f"{PAPERS[key]}.txt").read_text("utf-8")[:2000].replace("Contrastrive", "Contrastive")
    paper = re.sub(r"[^a-z]", "", printed.casefold())
    fields = dict(re.findall(r"^  (\w+) = \{(.*)\},$", bibliography()[key], re.MULTILINE))
    assert re.sub(r"[^a-z]", "", fields["title"].casefold()) in paper
    for author in fields["author"].split(" and "):
        family, _, first = author.strip("{}").partition(", ")
        assert re.sub(r"[^a-z]", "", f"{first} {family}".casefold()) in paper, author


@pytest.fixture(scope="module")
def home(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    folder = tmp_path_factory.mktemp("cited")
    shutil.copytree(built, folder / "workspace" / "benchmarks")
    rashomon = Rashomon(folder)
    rashomon.run(
        *("batch", "--benchmark", "cmc-bench", "--model", "policy:random", "--limit", "1", "--display", "none"),
        *("--name", "random"),
    )
    return rashomon


def test_a_run_cites_the_tool_its_benchmark_and_its_sources(home: Rashomon) -> None:
    facts = home.json("cite", "random")
    assert list(facts["entries"]) == ["rashomon", "catapang-cmc-bench", "masry2022chartqa", "yue2024mmmu"]
    assert facts["data"] == {f"cmc-bench/{name}": LICENCES["cmc-bench"][name].text for name in ("chartqa", "mmmu")}
    assert (facts["models"], facts["unknown"]) == ({}, [])
    printed = home.run("cite", "random").stdout
    outside = re.sub(r"^@.*?^\}$", "", printed, flags=re.DOTALL | re.MULTILINE)
    assert all(line.startswith("%") for line in outside.splitlines() if line)


CARDS = (
    ("---\nlicense: apache-2.0\n---\n", "apache-2.0"),
    ('---\ntags: [x]\nlicense: "mit"\n---\ntext', "mit"),
    ("---\nlicense: other\nlicense_name: gemma\n---\n", "gemma"),
    ("---\nlicense: other\n---\n", "other"),
    ("# no front matter\nlicense: mit\n", None),
    ("---\ntags: []\n---\nlicense: mit\n", None),
    ("---\nlicense: \x1b[31mred\n---\n", None),
    ("", None),
)


@pytest.mark.parametrize(("card", "licence"), CARDS)
def test_a_models_licence_is_that_of_its_card(tmp_path: Path, card: str, licence: str | None) -> None:
    (tmp_path / "README.md").write_text(card)
    assert stated_licence(str(tmp_path)) == licence


def test_no_name_leaves_its_comment(tmp_path: Path) -> None:
    here = Rashomon(tmp_path)
    for name, model in (
        ("r", "x\n@misc{hostile,\n}\r\u2028"),
        ("s", 'endpoint:m@preamble{"\\input{x}"}@http://127.0.0.1:9'),
    ):
        make_run(Workspace(here.workspace), name, instances(1), says("12"), model=model)
    printed = here.run("cite", "r", "s").stdout
    assert set(re.findall(r"@\w+\{?(\S*),", printed)) <= {"rashomon", *bibliography()}
    assert printed.count("@") == printed.count("\n}\n")


def test_a_licence_that_is_not_stored_is_not_guessed(home: Rashomon, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "README.md").write_text(CARDS[0][0])
    here = Rashomon(tmp_path)
    models = (str(tmp_path / "model"), "mlx-community/nowhere-4bit", "endpoint:m@http://127.0.0.1:9")
    for number, model in enumerate(models):
        make_run(Workspace(here.workspace), f"r{number}", instances(1), says("12"), model=model)
    facts = here.json("cite", "r0", "r1", "r2")
    assert facts["models"]["model"].startswith("apache-2.0")
    assert facts["models"][models[1]].startswith("not stored")
    assert "remote" in facts["models"][models[2]]
