"""First runs whose answers are the evidence of their own checks: the answers of ``--exact``, whatever there is to check by."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.store.run_store import RunStore
from tests.support.command import Rashomon
from tests.support.fp32 import in_fp32
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_vlm


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return in_fp32(build_tiny_vlm(tmp_path_factory.mktemp("models") / "model", TEXTS, quantise=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selection", "count", "images", "cases"),
    [
        (("--limit", "1", "--conditions", "aligned"), 1, 1, 0),
        (("--limit", "2", "--conditions", "text-only"), 4, 0, 1),
        (("--limit", "1"), 8, 1, 1),
        (("--limit", "3"), 24, 1, 2),
    ],
    ids=["one prompt", "without pictures", "one picture", "three pictures"],
)
def test_answers_with_shared_prefixes_equal_exact_ones(
    selection: tuple[str, ...], count: int, images: int, cases: int, model: Path, rashomon: Rashomon, tmp_path: Path
) -> None:
    rashomon = rashomon.ordered(mode="shared")
    options = ("--batch", "--model", model, "--benchmark", "cmc-bench", "--max-tokens", "4", "--display", "none")
    samples = {}
    for name, more in (("first", ()), ("exact", ("--exact", "--fresh"))):
        variables = {"XDG_STATE_HOME": str(tmp_path / name)}
        Rashomon(rashomon.home, rashomon.orders, variables).run(*options, *selection, *more, "--name", name)
        rashomon.run("export", name, "--canonical", "--format", "json", "--out", tmp_path / "exports" / name)
        samples[name] = (tmp_path / "exports" / name / "samples.jsonl").read_text("utf-8")
    assert samples["first"] == samples["exact"]
    assert len(samples["first"].splitlines()) == count
    with RunStore.read(rashomon.workspace / "runs" / "first") as store:
        assert sum(check["images"] for check in store.meta("sight", [])) == images
        assert sum(check["cases"] for check in store.meta("canary", [])) == cases
    if cases:
        assert "sharing moves a logit by" in rashomon.run("show", "first").stdout
