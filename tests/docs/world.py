"""The world in which the documentation's commands are run: their words stay, and what they name is there, small and drawn.

A home with data in every layout that the pages speak of, a Hugging Face cache in which the demo model stands for the models
that are named, a server on loopback that answers for every API, and a workspace with runs that are called as the pages call
theirs.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from app.cli import cli, run
from app.engine import supervise
from app.engine.worker import Worker
from app.main import arranged
from benchmarks.errors import RashomonError
from tests.benchmarks.clash_data import own_folder, own_sample, published_folder, published_row
from tests.benchmarks.contra4_data import row, write_source
from tests.benchmarks.crosscheck_data import row as crosscheck_row
from tests.benchmarks.crosscheck_data import write_rows
from tests.benchmarks.mmkc_data import whole_folder
from tests.benchmarks.small_data import mmmu_rows, own_rows, write_picture
from tests.benchmarks.test_pope import small_pope
from tests.docs.pages import ROOT, Command, files
from tests.support.demo import BF16, FOUR_BIT
from tests.support.fault_server import FaultServer
from tests.support.media import sound

SMALL = ("--limit", "2", "--max-tokens", "16", "--display", "none")
HELD_OUT = ROOT / "assets" / "demo" / "held_out"

BENCHMARKS = {
    "docs/clash.md": "clash",
    "docs/mmkc-bench.md": "mmkc-bench",
    "docs/crosscheck-bench.md": "crosscheck-bench",
    "docs/crosscheck-construction.md": "crosscheck-bench",
    "docs/contra4.md": "contra4",
    "docs/pope.md": "pope",
}
"""Of which benchmark a page's runs are; of CMC-Bench unless it says so."""

SOURCES = {
    "cmc-bench": "rows=~/data/few-charts",
    "clash": f"rows={HELD_OUT / 'clash'}",
    "mmkc-bench": f"published={HELD_OUT / 'mmkc-bench'}",
    "crosscheck-bench": f"products={ROOT / 'assets' / 'products'}",
    "pope": "pope=~/data/pope",
    "contra4": "published=~/data/contra4",
}
ASKED = {
    "mmkc-bench": ("--conditions", "original-open,context-memory-open"),
    "contra4": ("--conditions", "gold-captions"),
}
RUNS = {
    "RUN": "mlx-community/Qwen3-VL-4B-Instruct-4bit",
    "RUN2": "mlx-community/Qwen3-VL-4B-Instruct-bf16",
    "Q4": "mlx-community/Qwen3-VL-4B-Instruct-4bit",
    "Q8": "mlx-community/Qwen3-VL-4B-Instruct-8bit",
    "BF16": "mlx-community/Qwen3-VL-4B-Instruct-bf16",
}
"""The runs that there are, and whose they are; RUN and RUN2 of every benchmark, the others of CMC-Bench."""

MODELS = (
    *RUNS.values(),
    "mlx-community/LFM2.5-VL-1.6B-4bit",
    "mlx-community/gemma-3n-E2B-it-4bit",
    "mlx-community/deepseek-vl2-small-4bit",
    "mlx-community/Qwen3-4B-Instruct-2507-4bit",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


class World:
    """A home; ``path`` is its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.here = path / "rashomon"

    @property
    def builds(self) -> Path:
        return self.path / "workspace" / "benchmarks"

    def furnish(self, benchmark: str) -> None:
        """Make the data, the cache and, of ``benchmark``, a build and the runs."""
        self.here.mkdir(parents=True)
        (self.here / "assets").symlink_to(ROOT / "assets")
        _data(self.path / "data", self.here)
        for model in dict.fromkeys(MODELS):
            _cached(self.path / "hub", model, FOUR_BIT if model.endswith("4bit") else BF16)
        (self.here / "MODEL").symlink_to(FOUR_BIT)
        kept = self.path / "builds" / benchmark
        with FaultServer(_reply) as server, self.entered(server):
            self._must(f"build {benchmark} --source {SOURCES[benchmark]} --out {kept}".split())
            self.builds.mkdir(parents=True)
            (self.builds / benchmark).symlink_to(kept)
            for name, model in RUNS.items():
                if benchmark == "cmc-bench" or name.startswith("RUN"):
                    asked = ["--benchmark", benchmark, "--model", model, "--data", str(kept), "--name", name]
                    self._must(["--batch", *asked, *SMALL, *ASKED.get(benchmark, ())])
            self._predictions(benchmark)

    def prepare(self, page: str) -> None:
        """Write the files that the page shows."""
        for name, text in files(page):
            (self.here / name).write_text(text, "utf-8")

    def instance(self) -> str:
        """The id of one of RUN's instances."""
        told = self.tell(["export", "RUN", "--format", "json", "--out", str(self.path / "ids")])
        assert told.code == 0, told
        lines = (self.path / "ids" / "samples.jsonl").read_text("utf-8").splitlines()
        return str(json.loads(lines[0])["id"])

    @contextmanager
    def entered(self, server: FaultServer) -> Iterator[None]:
        """This process as one of a user's who is at home here."""
        variables = {
            "HOME": str(self.path),
            "RASHOMON_WORKSPACE": str(self.path / "workspace"),
            "HF_HUB_CACHE": str(self.path / "hub"),
            "XDG_CACHE_HOME": str(self.path / "cache"),
            "XDG_CONFIG_HOME": str(self.path / "config"),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "120",
            "OPENAI_API_KEY": "a-key-of-the-tests-own",
            "OPENAI_BASE_URL": server.url,
            "GEMINI_API_KEY": "another-key-of-the-tests",
            "GOOGLE_GEMINI_BASE_URL": server.url.removesuffix("/v1"),
        }
        before = Path.cwd()
        with patch.dict(os.environ, variables), patch.object(supervise.Supervisor, "_run", _here):
            os.chdir(self.here)
            try:
                yield
            finally:
                os.chdir(before)

    def perform(self, command: Command, stands: Mapping[str, str]) -> Told:
        """Run one command as it is printed, but for the words that ``stands`` says stand for others."""
        words = [stands.get(word, word) for word in command.words][1:]
        out: Path | None = None
        if ">" in words:
            out = self.here / words[words.index(">") + 1]
            words = words[: words.index(">")]
        if words[0] == "build":  # a page shows several ways to build; each finds the place empty
            built = self.builds / words[1]
            if built.is_symlink():
                built.unlink()
            else:
                shutil.rmtree(built, ignore_errors=True)
        told = self.tell(words)
        if out is not None:
            out.write_text(told.out, "utf-8")
        if words[0] == "label" and "--export" in words:
            _fill_in(self.here / words[words.index("--export") + 1])
        return told

    def tell(self, words: list[str]) -> Told:
        """Run ``rashomon`` with these arguments in this process."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", ["rashomon"]):
            try:
                code = run(arranged(words, cli.commands))
            except RashomonError as error:
                err.write(str(error))
                code = error.exit_code
        return Told(code, out.getvalue(), err.getvalue())

    def _must(self, words: list[str]) -> None:
        told = self.tell(words)
        assert told.code == 0, f"{words}\n{told.out}\n{told.err}"

    def _predictions(self, benchmark: str) -> None:
        told = self.tell(["export", "RUN", "--format", "json", "--out", str(self.path / "answers")])
        assert told.code == 0, told
        rows = [json.loads(line) for line in (self.path / "answers" / "samples.jsonl").read_text("utf-8").splitlines()]
        said = [{"id": each["id"], "answer": "12"} for each in rows]
        (self.here / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in said), "utf-8")


def _here(supervisor: supervise.Supervisor, job: supervise.Job) -> supervise._End:
    """Work a job off in this process: a worker of its own takes seconds to start."""
    worker = Worker(job)
    try:
        return supervise._End(worker.work())
    except RashomonError as error:
        supervisor.display.problem(str(error))
        return supervise._End(error.exit_code)


def _reply(prompt: str, times: int) -> str:
    """What stands for every remote judge says."""
    return '{"label": "IMAGE"}' if '"label"' in prompt else "NONE"


def _cached(hub: Path, model: str, folder: Path) -> None:
    """``folder`` as the model called ``model`` of the Hugging Face cache."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    place = hub / f"models--{model.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    (place / "snapshots").mkdir()
    (place / "snapshots" / commit).symlink_to(folder)


def _data(data: Path, here: Path) -> None:
    """Small sources in the layouts of the published ones."""
    _charts(data / "ChartQA")
    mmmu_rows(data / "MMMU", subjects=("Physics",), count=2)
    for name, place in (("HuggingFaceM4/ChartQA", "ChartQA"), ("MMMU/MMMU", "MMMU")):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).symlink_to(data / place)  # a folder that is called like the Hub id is taken before it
    own_rows(data / "my-charts", ["12", "15", "18", "21", "1990", "1995"])
    published_folder(data / "clash", [published_row(number) for number in (1, 2, 3)])
    own_folder(data / "my-scenes", [own_sample(number) for number in (1, 2, 3)])
    charts = [json.loads(line) for line in (HELD_OUT / "cmc-bench" / "rows.jsonl").read_text("utf-8").splitlines()[:12]]
    with (here / "rows.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerow(("image", "question", "answer"))
        csv.writer(stream).writerows((HELD_OUT / "cmc-bench" / c["image"], c["question"], c["answer"]) for c in charts)
    (data / "few-charts").mkdir()
    shutil.copytree(HELD_OUT / "cmc-bench" / "charts", data / "few-charts" / "charts")
    (data / "few-charts" / "rows.jsonl").write_text("".join(json.dumps(c) + "\n" for c in charts), "utf-8")
    whole_folder(data / "MLLMKC")
    small_pope(data / "pope")
    pictures = [("image", "coco_val", number, f"A number, {number}") for number in range(139, 143)]
    rows = [row("one", pictures[:2]), row("two", pictures[1:], "C"), row("three", pictures, "D")]
    write_source(data / "contra4", rows)
    for _, source, number, _ in pictures:
        write_picture(data / "contra4" / source / f"{number:012d}.jpg", number, "JPEG")
    (data / "audiocaps").mkdir()
    (data / "audiocaps" / "105253.wav").write_bytes(sound())
    (data / "coco").mkdir()
    (data / "coco" / "val2017").symlink_to(data / "contra4" / "coco_val")
    write_rows(data / "my-questions", [crosscheck_row(task, 1) for task in ("LD", "BR", "BDC")])
    (data / "my-products").symlink_to(ROOT / "assets" / "products")


def _charts(folder: Path) -> None:
    """Some of the demo's charts, which the demo model answers in a word, in ChartQA's own layout."""
    lines = (HELD_OUT / "cmc-bench" / "rows.jsonl").read_text("utf-8").splitlines()
    for split, some in (("val", lines[:3]), ("test", lines[3:6])):
        rows = [json.loads(line) for line in some]
        (folder / split / "png").mkdir(parents=True)
        for each in rows:
            shutil.copy(HELD_OUT / "cmc-bench" / each["image"], folder / split / "png" / Path(each["image"]).name)
        labels = [
            {"imgname": Path(each["image"]).name, "query": each["question"], "label": each["answer"]} for each in rows
        ]
        (folder / split / f"{split}_human.json").write_text(json.dumps(labels), "utf-8")


def _fill_in(sheet: Path) -> None:
    """Label the exported sheet, as a person would."""
    with sheet.open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    for number, each in enumerate(rows):
        each["label"] = ("IMAGE", "TEXT", "NEITHER")[number % 3]
    with sheet.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def masked(text: str) -> str:
    """The text without what is another every time: see ``VOLATILE``."""
    for pattern, instead in VOLATILE:
        text = re.sub(pattern, instead, text)
    return text


VOLATILE = (
    (r"\b\d+(\.\d+)? (s|ms|min|h)\b", "TIME"),
    (r"\b\d+(\.\d+)? (GiB|GB|MB|KB)\b", "SIZE"),
    (r"(?<!\w)/(?:[\w.~-]+/)*[\w.~-]+", "PATH"),
    (r"\b[0-9a-f]{8,64}\b", "DIGEST"),
    (r"[ \t]+$", ""),
)
"""What differs between machines and days, and what stands in its place when a page's output is compared."""
