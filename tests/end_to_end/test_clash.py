"""CLASH from real COCO images, captions and hard negatives to its tables, with a tiny model in real processes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.app.commands.running.test_batch_command import states, wait_until
from tests.support.command import Rashomon, kill_all
from tests.support.tiny_qwen3 import build_tiny_vlm

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "clash"
CONDITIONS = ("mc-conflicting", "mc-original", "open-conflicting", "open-original")
ROWS = "synthetic_captions_test_filtered.json"
IMAGES = (34, 384, 420862)
OF_EACH_FILE = 40
TEXTS = [
    "You are given an image and a textual description of the image.",
    "(A) red (B) blue (C) two dogs (D) Conflicting",
]

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not beside the project")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published samples whose images are here, and a few of each kind of SugarCrepe's hard negatives, built."""
    home = tmp_path_factory.mktemp("clash")
    published, sugar_crepe = home / "published", home / "sugar-crepe"
    for folder in (published, sugar_crepe):
        folder.mkdir()
        for split in ("train2017", "val2017"):
            (folder / split).symlink_to(DATA / "coco" / split)
    rows = json.loads((DATA / "official" / ROWS).read_bytes())
    here = [row for row in rows["samples"] if row["image_id"] in IMAGES]
    (published / ROWS).write_text(json.dumps({"samples": here}))
    for path in sorted((DATA / "sugar_crepe").iterdir()):
        negatives = json.loads(path.read_bytes()).items()
        available = [(key, row) for key, row in negatives if (DATA / "coco" / "val2017" / row["filename"]).is_file()]
        (sugar_crepe / path.name).write_text(json.dumps(dict(available[:OF_EACH_FILE])))
    build = Rashomon(home).run(
        "build", "clash", "--source", f"published={published}", "--source", f"sugar-crepe={sugar_crepe}", "--json"
    )
    assert json.loads(build.stdout)["result"]["manifest"]["samples"] > 20, build.stdout
    build_tiny_vlm(home / "tiny", TEXTS, quantise=True)
    return home


def samples(rashomon: Rashomon, run: str) -> bytes:
    rashomon.run("export", run, "--canonical", "--format", "json", "--out", rashomon.home / run)
    return (rashomon.home / run / "samples.jsonl").read_bytes()


@pytest.mark.slow
def test_killed_and_resumed_clash_run_gives_the_same_answers(home: Path) -> None:
    rashomon = Rashomon(home)
    spec = ("--batch", "--benchmark", "clash", "--model", str(home / "tiny"), "--limit", "6", "--max-tokens", "8")
    options = (*spec, "--max-pixels", "50000", "--judge", "strict", "--judge", "relaxed", "--display", "none")
    rashomon.run(*options, "--name", "quiet")

    def done() -> int:
        return states(rashomon).get("killed", ("", 0, 0))[1]

    def more_than(count: int) -> bool:
        return done() > count

    for _ in range(2):
        process = rashomon.start(*options, "--name", "killed")
        wait_until(partial(more_than, min(done() + 3, 20)))  # of 24, which one commit may hold
        kill_all(process)
    rashomon.run("resume", "killed", "--display", "none")
    assert samples(rashomon, "killed") == samples(rashomon, "quiet")
    rows = [json.loads(line) for line in samples(rashomon, "quiet").splitlines()]
    assert len(rows) == 24
    assert [sum(row["condition"] == condition for row in rows) for condition in CONDITIONS] == [6] * 4
    assert all(row["steps"][0]["tokens"] and "[IMAGE " in row["prompt"] for row in rows)
    assert {judge for row in rows for judge in row["verdicts"]} == {"strict@1", "relaxed@1"}
    output = rashomon.run("show", "quiet", "--all").stdout
    for title in ("Table 1", "Table 5", "Table 2", "Table 6", "Table 10"):
        assert title in output
    assert "Gemini 2.5 Pro (paper)" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "label", "overall"), [("always-abstain", "CONFLICT", 0.5), ("always-image", "IMAGE", 0.5)]
)
def test_baseline_metrics_are_as_expected(home: Path, policy: str, label: str, overall: float) -> None:
    rashomon = Rashomon(home)
    name = f"p-{policy}"
    rashomon.run("--batch", "--benchmark", "clash", "--model", f"policy:{policy}", "--name", name, "--judge", "relaxed")
    tables = {table["name"]: table for table in rashomon.json("show", name)["tables"]}
    rows = [json.loads(line) for line in samples(rashomon, name).splitlines()]
    open_rows = [row for row in rows if row["condition"].startswith("open")]
    assert {row["verdicts"]["relaxed@1"]["label"] for row in open_rows} == {label}
    (row,) = [row for row in tables["no-conflict-open"]["rows"] if "(paper)" not in row["label"]]
    assert row["cells"]["overall"]["value"] == pytest.approx(overall)
