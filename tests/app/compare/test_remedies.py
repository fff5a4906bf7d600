"""Runs with a remedy at inference: their specs, refusals, and what they gain and cost beside a direct run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.compare.comparison_tables import compare
from app.compare.runs.cost_tables import accuracy_difference
from app.compare.runs.run_pairs import RunPair
from app.engine.baseline_runs import AGREE, make_baseline
from app.engine.run_plan import check_spec, plan_resume
from app.new_run.spec_form import command_line, read_form
from app.parity.output_stages import load_outputs
from app.report.tables.run_tables import tables_of
from app.run_spec import RunSpec, load_spec, parse
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.build import BuildOptions
from benchmarks.errors import SpecError
from benchmarks.protocols.protocols import DirectProtocol, Protocol
from benchmarks.protocols.remedy_protocols import (
    REMEDIES,
    SAMPLES,
    VOTE_TEMPERATURE,
    ReadThenCompare,
    SelfConsistency,
    Verify,
)
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Decoding, Estimate, Generation, Instance, Stated
from mlx_backends.policy_engine import PolicyBackend
from tests.support.compared_runs import RIGHT, WRONG, answered, side, sides
from tests.support.toy import toy_instances

ROOT = Path(__file__).parents[3]
MODEL = "policy:random"


class Metered(PolicyBackend):
    """A policy whose calls take 100 tokens, an answer of 2, and half a second."""

    def step(self) -> Sequence[Generation]:
        return [
            replace(generation, prompt_tokens=100, completion_tokens=2, prefill_s=0.125, decode_s=0.375)
            for generation in super().step()
        ]


def spec_of(**values: Any) -> RunSpec:
    (spec,) = load_spec(None, {"benchmark": "cmc-bench", "model": MODEL, **values}).runs()
    return spec


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A direct run and one with each remedy, on the demo's charts."""
    home = Workspace(tmp_path_factory.mktemp("remedies") / "workspace")
    rows = str(ROOT / "assets" / "demo" / "rows.csv")
    get_benchmark("cmc-bench").build([("rows", rows)], home.build_folder("cmc-bench"), BuildOptions())
    for protocol in ("direct", *REMEDIES):
        answered(home, protocol, MODEL, 12, backend=Metered(MODEL), protocol=protocol)
    return home


def test_a_direct_spec_is_what_it_was() -> None:
    plain = spec_of()
    assert spec_of(protocol="direct") == plain
    assert not {"protocol", "samples"} & set(plain.model_dump(mode="json"))
    assert plain.identity()["protocol"] == "direct"


def test_a_remedy_is_part_of_the_identity_and_of_the_name() -> None:
    specs = [spec_of(), *(spec_of(protocol=name) for name in REMEDIES), spec_of(protocol="self-consistency", samples=3)]
    assert len({spec.run_name("d") for spec in specs}) == len({spec.identity()["protocol"] for spec in specs}) == 5
    for spec in specs:
        assert parse(RunSpec, spec.model_dump(mode="json"), "x") == spec


def test_samples_are_drawn_at_a_temperature_that_the_spec_states() -> None:
    vote = spec_of(protocol="self-consistency")
    assert (vote.samples, vote.decoding.temperature) == (SAMPLES, VOTE_TEMPERATURE)
    assert spec_of(protocol="self-consistency", temperature=0.3).decoding.temperature == 0.3
    assert spec_of(protocol="verify").decoding.temperature == 0


@pytest.mark.parametrize(
    ("values", "key"),
    [
        *(({"protocol": name, "score": "likelihood"}, "protocol") for name in REMEDIES),
        ({"protocol": "verify", "benchmark": "crosscheck-bench"}, "protocol"),
        ({"samples": 3}, "samples"),
        ({"protocol": "verify", "samples": 3}, "samples"),
        ({"protocol": "self-consistency", "samples": 1}, "samples"),
        ({"protocol": "self-consistency", "samples": 101}, "samples"),
        ({"protocol": "self-consistency", "temperature": 0}, "temperature"),
        ({"protocol": "debate"}, "protocol"),
    ],
)
def test_combinations_without_a_meaning_are_refused(values: dict[str, Any], key: str) -> None:
    with pytest.raises(SpecError) as refusal:
        spec_of(**values)
    assert refusal.value.exit_code == 2
    assert list(read_form({"benchmark": "cmc-bench", "model": [MODEL], **values})[1]) == [key]


def test_the_form_gives_the_command_of_a_remedy(workspace: Workspace) -> None:
    typed = {"benchmark": "cmc-bench", "model": [MODEL], "protocol": "self-consistency", "samples": "3"}
    spec, errors = read_form(typed)
    assert spec is not None, errors
    assert "--protocol self-consistency --samples 3" in command_line(workspace, spec)


@pytest.mark.slow
def test_another_remedy_does_not_resume_a_run(home: Workspace) -> None:
    assert plan_resume(home, home.runs_folder / "verify").spec.protocol == "verify"
    with pytest.raises(SpecError):
        check_spec(home, spec_of(name="verify", limit=12))


def test_parity_refuses_answers_of_several_calls(home: Workspace) -> None:
    load_outputs(home.runs_folder / "direct")
    for name in REMEDIES:
        with pytest.raises(SpecError):
            load_outputs(home.runs_folder / name)


def test_a_comparison_shows_the_gain_beside_tokens_and_seconds(home: Workspace) -> None:
    comparison = compare([home.runs_folder / name for name in ("direct", *REMEDIES)], resamples=50)
    (table,) = (table for table in comparison.tables if table.name == "remedies")
    calls = {"direct": 1, "read-then-compare": 2, "self-consistency": SAMPLES, "verify": 3}
    rows = [dict(zip(table.columns, cells, strict=True)) for _, cells in table.rows]
    assert [row["protocol"] for row in rows] == ["direct", "read-then-compare", "self-consistency of 5", "verify"]

    def values(column: str) -> list[float | None]:
        return [cell.value if isinstance(cell := row[column], Estimate) else None for row in rows]

    assert values("tokens per answer") == [102 * n for n in calls.values()]
    assert values("extra tokens") == [None, *(102 * (n - 1) for n in list(calls.values())[1:])]
    assert values("seconds per answer") == [0.5 * n for n in calls.values()]
    assert values("extra seconds") == [None, *(0.5 * (n - 1) for n in list(calls.values())[1:])]
    direct, *others = values("benchmark accuracy")
    assert direct is not None
    assert values("gain")[1:] == pytest.approx([other - direct for other in others if other is not None])


def test_a_baseline_of_a_remedy_costs_all_of_its_calls(home: Workspace) -> None:
    for protocol, calls in (("verify", 3), ("self-consistency", SAMPLES)):
        with RunStore.read(make_baseline(home, home.runs_folder / protocol, AGREE).folder) as store:
            (answer,) = next(store.records()).generations
        assert answer.prompt_tokens == 2 * 100 * calls, "both sources alone"
        assert answer.decode_s == 2 * 0.375 * calls


def test_runs_of_one_protocol_have_no_such_table(home: Workspace) -> None:
    answered(home, "again", "policy:always-image", 12)
    comparison = compare([home.runs_folder / "direct", home.runs_folder / "again"], resamples=50)
    assert "remedies" not in [table.name for table in comparison.tables]


def test_agreement_is_stored_and_fills_the_tables_of_confidence(home: Workspace) -> None:
    with RunStore.read(home.runs_folder / "self-consistency") as store:
        records = list(store.records())
    assert {len(record.generations) for record in records} == {SAMPLES + 1}
    shares = {
        sum(sample.text == record.generations[-1].text for sample in record.generations[:-1]) for record in records
    }
    assert len(shares) > 1, "the samples of a random policy differ"
    tables = tables_of([home.runs_folder / "self-consistency"])
    assert "calibration" in [table.name for table in tables]


@pytest.mark.slow
def test_known_gains_are_within_their_intervals() -> None:
    """The 95% intervals of the gain of each remedy hold the true gain in about 95% of simulated experiments.

    The scripted reader is right on a question with a chance of its own in every sample. With its notes in view it corrects 30%
    of its wrong answers; a check corrects 40% of them and spoils 10% of the right ones.
    """
    experiments, examples, samples = 1000, 60, 5
    (instance,) = toy_instances(1)
    direct = DirectProtocol(Decoding(max_tokens=16, temperature=0.7))
    protocols = {
        "read": ReadThenCompare(direct),
        "vote": SelfConsistency(direct, lambda instance: (), samples),
        "verify": Verify(direct),
    }
    chances = np.linspace(0.3, 0.95, 1001)
    majority = sum(comb(samples, k) * chances**k * (1 - chances) ** (samples - k) for k in range(3, samples + 1))
    truth = {
        "read": float(np.mean(0.3 * (1 - chances))),
        "vote": float(np.mean(majority - chances)),
        "verify": float(np.mean(0.4 * (1 - chances) - 0.1 * chances)),
    }
    covered = dict.fromkeys(protocols, 0)
    draw = random.Random(0)
    for experiment in range(experiments):
        own = [draw.uniform(0.3, 0.95) for _ in range(examples)]
        runs = {"direct": [draw.random() < chance for chance in own]}
        for name, protocol in protocols.items():
            runs[name] = [_is_right(protocol, instance, name, chance, draw) for chance in own]
        views = sides(*(side(name, _labels(right)) for name, right in runs.items()))
        for name, run in zip(protocols, views.runs[1:], strict=True):
            pair = RunPair(views.runs[0], run, views.label_metrics, 300, experiment)
            gain = accuracy_difference(pair, views)
            assert gain.low is not None
            assert gain.high is not None
            covered[name] += gain.low <= truth[name] <= gain.high
    for name, count in covered.items():
        assert 0.92 <= count / experiments <= 0.98, name


def _is_right(protocol: Protocol, instance: Instance, name: str, chance: float, draw: random.Random) -> bool:
    """Return whether the reader's last answer is right."""
    generations: list[Generation] = []
    while (request := protocol.next(instance, generations)) is not None:
        if isinstance(request.form, Stated):
            return request.form.text == "43"
        was_right = bool(generations) and generations[0].text == "43"
        share = chance
        if name == "read" and request.step == 1:
            share = chance + 0.3 * (1 - chance)
        elif name == "verify" and request.step == 2:
            share = 0.9 if was_right else 0.4
        generations.append(Generation(request.id, "43" if draw.random() < share else "12", "stop"))
    return generations[-1].text == "43"


def _labels(right: Sequence[bool]) -> dict[tuple[str, str], str]:
    condition = "image-correct"
    return {(f"e{n}", condition): (RIGHT if is_right else WRONG)[condition] for n, is_right in enumerate(right)}
