"""Reviews of constructed builds by two scripted reviewers through the Review screen, killed in between."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from app.annotation.review_session import find_build, find_review, review_item
from app.annotation.review_store import Decision, ReviewStore
from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from tests.support.command import ROOT, Rashomon, kill_all
from tests.support.review_builds import clash_build, cmc_build, contra4_build, mmkc_build
from tests.support.scripted_reviewer import rule

TRIALS: dict[str, tuple[Callable[[Path], Build], int]] = {
    "clash": (clash_build, 60),
    "mmkc-bench": (mmkc_build, 40),
    "cmc-bench": (cmc_build, 45),  # a fifth of 224 instances
    "contra4": (contra4_build, 30),
}
REVIEWERS = ("script-one", "script-two")
KILLED_AFTER = (7, 12)
"""The numbers of decisions after which a reviewer's interface is killed with SIGKILL."""


def reviewed_by_keys(rashomon: Rashomon, build: Path, name: str, most: int | None) -> list[list[str]]:
    """Review by keys until all is decided, or until ``most`` decisions are on the screen: it is then killed."""
    arguments = [str(rashomon.workspace), str(build), name]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.scripted_reviewer", *arguments],
        env={**rashomon.environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    printed = []
    for line in process.stdout:
        printed.append(json.loads(line))
        if most is not None and len(printed) >= most:
            kill_all(process)
            return printed
    assert process.wait() == 0, process.stderr.read()
    return printed


def stored(rashomon: Rashomon, name: str | None = None) -> list[Decision]:
    with ReviewStore.open(rashomon.workspace / "reviews" / "build") as store:
        return store.decisions(name)


def by_hand(first: dict[str, str], second: dict[str, str]) -> tuple[float, float, float]:
    """Agreement, Cohen's kappa and Gwet's AC1 of three choices, from their definitions."""
    n = len(first)
    agreed = sum(first[item] == second[item] for item in first) / n
    a, b = Counter(first.values()), Counter(second.values())
    kappa_chance = sum(a[choice] * b[choice] for choice in ("accept", "reject", "fix")) / n**2
    shares = [(a[choice] + b[choice]) / (2 * n) for choice in ("accept", "reject", "fix")]
    ac1_chance = sum(share * (1 - share) for share in shares) / 2
    return agreed, (agreed - kappa_chance) / (1 - kappa_chance), (agreed - ac1_chance) / (1 - ac1_chance)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", TRIALS)
def test_two_scripted_reviewers_are_killed_and_lose_nothing(benchmark: str, tmp_path: Path) -> None:
    make, count = TRIALS[benchmark]
    build = make(tmp_path / "source")
    rashomon = Rashomon(tmp_path)
    share = () if benchmark == "cmc-bench" else ("--share", str(count / build.manifest["instances"]))
    rashomon.run("review", build.path, *share)
    for name in REVIEWERS:
        shown: list[list[str]] = []
        for most in (*KILLED_AFTER, None):
            shown += reviewed_by_keys(rashomon, build.path, name, most)
            kept = {decision.item: decision.choice for decision in stored(rashomon, name)}
            assert all(kept[item] == choice for item, choice in shown), "what the screen counted is in the store"
            assert len(kept) - len(shown) <= len(KILLED_AFTER) * 4, "few decisions were made before the kill came"
        assert len(kept) == count
    review = find_review(Workspace(rashomon.workspace), find_build(Workspace(rashomon.workspace), build.path))
    with review.open() as store:
        items = {item: review_item(review.guide, store, item) for item in store.ids()}
    expected = {
        (item, name): rule(review.guide, build.path, shown_item, name).content
        for item, shown_item in items.items()
        for name in REVIEWERS
    }
    assert {(d.item, d.reviewer): d.content for d in stored(rashomon)} == expected
    choices = [{d.item: str(d.choice) for d in stored(rashomon, name)} for name in REVIEWERS]
    facts = rashomon.json("review", build.path)
    (pair,) = facts["tables"]["agreement"]["rows"]
    values = [pair["cells"][name]["value"] for name in ("agreement", "kappa", "AC1")]
    assert values == pytest.approx(by_hand(*choices))
    print(
        f"{benchmark}: {count} rows, {pair['row']}: agreement {values[0]:.4f}, kappa {values[1]:.4f}, AC1 {values[2]:.4f}"
    )
    with (tmp_path / f"{benchmark}.csv").open("w") as stream:
        csv.writer(stream).writerows([item, *(given[item] for given in choices)] for item in items)
    disagreed = sum(len({given[item] for given in choices}) > 1 for item in items)
    assert disagreed == facts["tables"]["progress"]["rows"][-1]["cells"]["undecided"]
    done = rashomon.run("review", build.path, "--out", "good", code=2)
    assert f"{disagreed} of {count} rows are undecided" in done.stderr
    subprocess.run(
        rashomon.command("review", build.path, "--reviewer", "script-three", "--adjudicate"),
        env=rashomon.environment,
        input="a\n" * disagreed,
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    rashomon.run("review", build.path, "--out", tmp_path / "good")
    good = Build.open(tmp_path / "good")
    outcome = good.manifest["review"]["outcome"]
    assert sum(outcome.values()) == count
    assert good.manifest["review"]["adjudicators"] == {"script-three": disagreed}
    print(f"{benchmark}: {outcome}, {good.manifest['review']['rows']}, {good.manifest['instances']} rows")
    names = [row["id"] for row in good.rows()]
    assert len(names) == len(set(names)) == good.manifest["instances"]
    described = get_benchmark(benchmark)
    assert len(list(described.instances(good, next(iter(described.prompt_sets))))) >= len(names)
