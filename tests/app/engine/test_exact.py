"""``exact`` is part of what a run is, and what a run's canary found is shown."""

from __future__ import annotations

from pathlib import Path

from app.run_spec import RunSpec, load_spec
from app.store.run_store import RunStore
from tests.support.charts import draw_sources
from tests.support.command import Rashomon


def test_exact_is_part_of_what_a_run_is_and_changes_no_name_without_it() -> None:
    spec = RunSpec(benchmark="cmc-bench", model="m", prompt_set="paper")
    exact = spec.model_copy(update={"exact": True})
    assert exact.run_name("d") != spec.run_name("d")
    assert exact.identity() == {**spec.identity(), "exact": True}
    assert spec.run_name("d") == "cmc-bench-m-paper-" + spec.run_name("d")[-8:]


def test_exact_is_said_in_the_file_or_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text('benchmark = "cmc-bench"\nmodel = "policy:random"\nexact = true\n')
    assert all(run.exact for run in load_spec(path, {}).runs())
    path.write_text('benchmark = "cmc-bench"\nmodel = "policy:random"\n')
    assert not any(run.exact for run in load_spec(path, {}).runs())
    assert all(run.exact for run in load_spec(path, {"exact": True}).runs())


def test_what_the_canary_found_is_shown(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    draw_sources(tmp_path / "sources")
    rashomon.run("build", "cmc-bench", "--source", tmp_path / "sources")
    asked = ("--batch", "--benchmark", "cmc-bench", "--model", "policy:random", "--limit", "2", "--display", "none")
    rashomon.run(*asked, "--name", "run")
    assert " asked " not in rashomon.run("show", "run").stdout
    values = {
        "at": 0.0,
        "model": "a \x1b[31mmodel",
        "way": "one at a time",
        "cases": 6,
        "tokens": 48,
        "noise": 0.0123,
        "failed": {"together": "token 3 of an answer was another one"},
        "lacks": "what a \x1b[31mmodel cannot have",
    }
    with RunStore.open(rashomon.workspace / "runs" / "run") as store:
        store.set_meta("canary", [values])
    result = rashomon.run("show", "run").stdout.splitlines()
    first = result.index(
        "  a \\x1b[31mmodel answered one at a time: compared with sequential answers on 6 requests and 48 tokens, "
        "where padding moves a logit by 0.012"
    )
    assert result[first + 1] == "  not together: token 3 of an answer was another one"
    assert result[first + 2] == "  what a \\x1b[31mmodel cannot have"
