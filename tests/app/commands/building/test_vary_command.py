"""`rashomon vary`: from a build to the table of effects, and designs that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store.run_store import RunStore
from benchmarks.varied_names import example_of
from tests.support.charts import draw_sources
from tests.support.command import Rashomon


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A home where cmc-bench is built from drawn charts."""
    folder = tmp_path_factory.mktemp("vary")
    draw_sources(folder / "sources")
    rashomon = Rashomon(folder)
    rashomon.run("build", "cmc-bench", "--source", folder / "sources")
    return rashomon


def run(home: Rashomon, build: str | Path, name: str, *more: str, model: str = "policy:random") -> None:
    home.run(
        "batch",
        "--benchmark",
        "cmc-bench",
        "--data",
        build,
        "--model",
        model,
        "--name",
        name,
        "--display",
        "none",
        *more,
    )


def test_from_a_build_to_the_effects(home: Rashomon) -> None:
    done = home.run(
        "vary", "cmc-bench", "--factor", "blur=0,2,6", "--factor", "text-source=none,forum post", "--limit", "4"
    )
    assert "4 examples in 6 cells" in done.stdout
    varied = home.workspace / "benchmarks" / "cmc-bench-varied"
    run(home, varied, "one", "--strata", "blur=6")


def test_an_example_counts_once_in_lists_comparisons_and_recommendations(home: Rashomon) -> None:
    home.run("vary", "cmc-bench", "--factor", "blur=0,6", "--factor", "text-date=none,2019", "--out", "dated")
    run(home, "dated", "dated-1")
    run(home, "dated", "dated-2", model="policy:always-text")
    run(home, "dated", "dated-first", "--strata", "blur=0", "--strata", "text-date=none")
    cells = {row["name"]: row["cells"] for row in home.json("runs")}
    assert (cells["dated-1"], cells["dated-first"]) == (4, 1)

    def values(*names: str) -> tuple[list[list[dict[str, object]]], list[str]]:
        compared = home.json("compare", *names)
        table = next(table for table in compared["tables"] if table["name"] == "values")
        return [row["cells"] for row in table["rows"]], compared["warnings"]

    pooled, warnings = values("dated-1", "dated-2")
    first, _ = values("dated-first", "dated-2")
    assert pooled == first
    assert any("one cell" in warning for warning in warnings)
    assert "one cell" in home.run("recommend", "dated-1", "dated-2").stdout


def test_equal_inputs_are_asked_once(home: Rashomon) -> None:
    home.run(
        "vary",
        "cmc-bench",
        "--factor",
        "blur=0,1,2,3",
        "--conditions",
        "text-only,image-only",
        "--limit",
        "2",
        "--out",
        "few",
    )
    home.run(
        "batch",
        "--benchmark",
        "cmc-bench",
        "--data",
        "few",
        "--model",
        "policy:random",
        "--name",
        "few",
        "--display",
        "none",
    )
    with RunStore.read(home.workspace / "runs" / "few") as store:
        texts: dict[str, set[str]] = {}
        for record in store.records():
            assert record.answer is not None
            texts.setdefault(example_of(record.instance.id), set()).add(record.answer.text)
        # Two examples with two texts each under four levels that change none of them: three of four calls are saved.
        assert store.cached_replies() == 2 * 2 * 3
    assert all(len(answers) == 1 for name, answers in texts.items() if "text-only" in name)


def test_a_varied_build_is_varied_reviewed_and_drawn_no_further(home: Rashomon) -> None:
    home.run("vary", "cmc-bench", "--factor", "blur=0,1", "--limit", "1", "--out", "varied")
    for command in (
        ("vary", "varied", "--factor", "jpeg=none,20"),
        ("review", "varied", "--as", "me"),
        ("figures", "varied"),
        ("training", "varied", "--out", "t"),
    ):
        home.run(*command, code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--factor", "blr=0,2"),
        ("--factor", "blur=0"),
        ("--factor", "blur=0,1", "--limit", "0"),
        ("--factor", "blur=0,1", "--conditions", "alined"),
        ("--factor", "crop=none,0:0:2:1"),
        ("--factor", "cover=0,1"),
        ("--factor", "cover=0,1", "--region", "0:0:2:1"),
        ("--factor", "cover=0,1", "--region", "0:0:1:1", "--regions", "file"),
        ("--factor", "cover=0,1", "--regions", "gone.jsonl"),
        ("--factor", "blur=0,1", "--cells", "1"),
        ("--factor", "blur=0,1", "--out", "."),
        ("--factor", "blur=0,1", "--out", "workspace/benchmarks/cmc-bench", "--replace"),
    ],
)
def test_wrong_designs_are_refused(home: Rashomon, arguments: tuple[str, ...]) -> None:
    home.run("vary", "cmc-bench", *arguments, code=2)
    home.run("vary", "nowhere", "--factor", "blur=0,1", code=2)


def test_a_design_of_too_many_calls_needs_force(home: Rashomon) -> None:
    levels = ",".join(str(number) for number in range(20))
    design = (
        "--factor",
        f"blur={levels}",
        "--factor",
        f"length={levels}",
        "--factor",
        "jpeg=none,10,20,30,40,50,60,70,80,90",
    )
    refused = home.run("vary", "cmc-bench", *design, code=2)
    assert "calls" in refused.stdout
    size = home.json("vary", "cmc-bench", *design, "--force", "--dry-run")
    assert size["calls"] > 100_000
    smaller = home.json("vary", "cmc-bench", *design, "--cells", "60", "--dry-run")
    assert smaller["cells"] == 60
    assert smaller["calls"] < 100_000
