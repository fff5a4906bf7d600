"""CLASH's fine-tuning rows from real SugarCrepe captions and COCO images, trained on with tiny models of two families."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.exit_codes import VERDICTS
from tests.support.command import Rashomon
from tests.support.tiny_models import FAMILIES

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "clash"
OF_EACH_FILE = 40

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not beside the project"),
]


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CLASH's rows of some of SugarCrepe's hard negatives whose images are here."""
    home = tmp_path_factory.mktemp("clash")
    source = home / "sugar-crepe"
    source.mkdir()
    (source / "val2017").symlink_to(DATA / "coco" / "val2017")
    for path in sorted((DATA / "sugar_crepe").iterdir()):
        negatives = json.loads(path.read_bytes()).items()
        available = [(key, row) for key, row in negatives if (source / "val2017" / row["filename"]).is_file()]
        (source / path.name).write_text(json.dumps(dict(available[:OF_EACH_FILE])))
    rashomon = Rashomon(home)
    rashomon.run("build", "clash", "--source", f"sugar-crepe={source}", "--out", home / "build")
    rashomon.run("training", "clash", "--data", home / "build", "--out", home / "set")
    return home / "set"


@pytest.mark.parametrize("family", ["llava", "qwen3_vl"])
def test_a_few_updates_give_an_adapter_that_loads_again(family: str, training_set: Path, tmp_path: Path) -> None:
    from mlx_vlm import load

    model = FAMILIES[family](tmp_path / family)
    rashomon = Rashomon(tmp_path)
    options = (
        "--rank",
        "4",
        "--batch-size",
        "4",
        "--steps",
        "10",
        "--learning-rate",
        "5e-3",
        "--name",
        "t",
        "--validate-every",
        "10",
    )
    rashomon.run("train", "--model", model, "--data", training_set, *options, "--display", "none", code=VERDICTS)
    (row,) = rashomon.json("trainings")
    assert (row["state"], row["note"], row["step"]) == ("done", "", 10)
    log = (rashomon.workspace / "trainings" / "t" / "log.jsonl").read_text()
    losses = [json.loads(line)["loss"] for line in log.splitlines() if "validation" not in line]
    assert sum(losses[-3:]) < sum(losses[:3])
    for name in ("adapter", "best"):
        load(str(model), adapter_path=str(rashomon.workspace / row[name]))
