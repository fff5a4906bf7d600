"""The policy baselines end to end: their answers, `match`, and the expected metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.answers import Answers
from benchmarks.build import BuildOptions
from benchmarks.cmc_bench import CMCBench
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.vocabulary import Decoding, Estimate, Record
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.policy_engine import PolicyBackend
from tests.support.charts import draw_sources

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cmc_bench"
_NUMBERS = ("factual", "temporal")
"""The types whose answers are numbers: what a policy says in place of another name, no rule can tell from that name."""
COLUMNS = ("Aligned", "Img-Cor", "Txt-Cor", "Both-Wr", "MFR", "MPB Img", "HR", "ΔAcc")


@pytest.fixture(scope="module", params=["drawn", pytest.param("real", marks=pytest.mark.slow)])
def records(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The instances of the four conditions, unanswered."""
    folder = tmp_path_factory.mktemp("policies")
    source = folder / "sources"
    if request.param == "real":
        source = SHARED
        if not source.is_dir():
            pytest.skip("the real charts are not here")
    else:
        draw_sources(source)
    build = CMCBench().build([("", str(source))], folder / "built", BuildOptions())
    return [Record(instance) for instance in CMCBench().instances(build, "paper") if "-only" not in instance.condition]


def table_3(policy: str, records: list[Record], seed: int = 0) -> dict[str, Estimate]:
    judge = get_judge("match")
    assert isinstance(judge, FunctionJudge)
    backend = PolicyBackend(f"policy:{policy}")
    protocol = DirectProtocol(Decoding(seed=seed))
    done = []
    for record in records:
        request = protocol.next(record.instance, ())
        assert request is not None
        backend.submit(request)
        (generation,) = backend.step()
        answered = Record(record.instance, (generation,))
        done.append(Record(record.instance, (generation,), {judge.id: judge.judge(answered)}))
    benchmark = CMCBench()
    main = benchmark.tables({policy: Answers.of(done, benchmark)}, judge.id, resamples=50, seed=0)[0]
    return {
        column: cell for column, cell in zip(main.columns, main.rows[0][1], strict=True) if isinstance(cell, Estimate)
    }


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("always-image", (1, 1, 0, 0, 1 / 3, 1, 0, 2 / 3)),
        ("always-text", (1, 0, 1, 0, 1 / 3, 0, 0, 2 / 3)),
        ("always-abstain", (0, 0, 0, 1, 1 / 3, None, 1, -1 / 3)),
    ],
)
def test_fixed_policy_metrics_are_exact(policy: str, expected: tuple[float | None, ...], records: list[Record]) -> None:
    figures = table_3(policy, records)
    assert tuple(figures[column].value for column in COLUMNS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("random", (1, 0.5, 0.5, 0, 1 / 3, 0.5, 0, 2 / 3)), ("uniform", (0.6, 0.4, 0.4, 0.4, 0.4, 0.5, 0.4, 0.2))],
)
def test_random_policy_metrics_match_expectation(
    policy: str, expected: tuple[float, ...], records: list[Record]
) -> None:
    # The mean over seeds; four standard errors of a share of that many answers.
    records = [record for record in records if record.instance.strata["type"] in _NUMBERS]
    seeds = range(4)
    figures = [table_3(policy, records, seed) for seed in seeds]
    n = len(records) // 4 * len(seeds)
    for column, value in zip(COLUMNS, expected, strict=True):
        values = [estimates[column].value for estimates in figures]
        mean = sum(value for value in values if value is not None) / len(values)
        assert mean == pytest.approx(value, abs=4 * (0.25 / n) ** 0.5 * (1.4 if column == "ΔAcc" else 1)), column
