"""`rashomon show RUN --spec`: a TOML file that repeats the run, with what the run was made of."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from app.report.runs.run_provenance import read_provenance, spec_toml
from app.run_spec import load_spec
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.registry import get_benchmark
from tests.support.command import ROOT, Rashomon
from tests.support.compared_runs import answered
from tests.support.json_output import named
from tests.support.old_runs import sealed


@pytest.fixture
def run(tmp_path: Path) -> Path:
    home = Workspace(tmp_path / "workspace")
    source = str(ROOT / "assets" / "demo" / "held_out" / "cmc-bench")
    get_benchmark("cmc-bench").build([("rows", source)], home.build_folder("cmc-bench"), BuildOptions())
    answered(home, "a-run", "policy:always-text", 3)
    return home.runs_folder / "a-run"


def test_the_spec_repeats_the_run_elsewhere(run: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    file = tmp_path / "spec.toml"
    file.write_text(rashomon.run("show", "a-run", "--spec").stdout)
    rashomon.run("--workspace", tmp_path / "other", "--batch", file)
    here, there = (RunStore.read(item) for item in (run, tmp_path / "other" / "runs" / "a-run"))
    with here, there:
        assert here.meta("identity") == there.meta("identity")
        assert [record.answer for record in here.records()] == [record.answer for record in there.records()]
    assert read_provenance(run)["prompts"] == read_provenance(tmp_path / "other" / "runs" / "a-run")["prompts"]
    assert "all 24 instances are answered already" in rashomon.run("--batch", file).stdout


def test_it_says_what_the_run_was_made_of(run: Path, tmp_path: Path) -> None:
    result = spec_toml(run)
    for word in (
        "data digest: ",
        "engine: policy",
        "prompts, both-wrong: ",
        "answered by: policy on cpu",
        "machine: ",
        " GB, ",
    ):
        assert word in result
    parsed = Rashomon(tmp_path).json("show", "a-run", "--spec")["specs"]
    (engine,) = map(named, parsed[0]["engines"])
    assert engine["machine.memory"] > 2**28
    assert engine["machine.chip"]
    assert engine["machine.system"]
    spec = named(parsed[0]["spec"])
    assert (spec["limit"], spec["decoding.max_tokens"]) == (3, 256)


def test_the_prompts_digest_changes_with_a_prompt_and_not_with_the_order(run: Path) -> None:
    before = read_provenance(run)["prompts"]
    with sealed(run) as database:
        database.execute("UPDATE instance SET ordinal = 2000 - ordinal")
        database.execute("UPDATE generation SET instance = 2000 - instance")
    assert read_provenance(run)["prompts"] == before
    with sealed(run) as database:
        database.execute("UPDATE instance SET body = replace(body, 'evidence', 'Evidence') WHERE condition = 'aligned'")
    after = read_provenance(run)["prompts"]
    assert {condition for condition in after if after[condition] != before[condition]} == {"aligned"}


def test_hostile_text_stays_a_comment_or_a_string(run: Path, tmp_path: Path) -> None:
    evil = "policy:always-text\x1b[31m\u202e\nmodel = 'other'\x85"
    with RunStore.open(run) as store:
        store.set_meta("spec", {**store.meta("spec"), "model": evil})
        store.set_meta("identity", {**store.meta("identity"), "engine": evil, "quantisation": evil})
        store.use_engine(
            {"engine": evil, "versions": {evil: evil}, "machine": {"chip": evil, "memory": 1, "system": evil}}
        )
    result = spec_toml(run)
    assert not {"\x1b", "\u202e", "\x85"} & set(result)
    assert tomllib.loads(result)["model"] == evil
    file = tmp_path / "evil.toml"
    file.write_text(result)
    assert load_spec(file, {}).model == (evil,)


def test_imported_answers_are_said_to_be_imported(run: Path) -> None:
    with RunStore.open(run) as store:
        store.set_meta("spec", {**store.meta("spec"), "model": "imported:A100, fp16"})
    assert "Its answers were imported" in spec_toml(run)
