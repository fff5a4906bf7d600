"""The world in which the documentation's commands are run: their words stay, and what they name is there, small and drawn.

A home with data in every layout that the pages speak of, a Hugging Face cache in which the demo model stands for the models
that are named, a server on loopback that answers for every API, another that is the Hub and all other hosts, and a workspace
with runs that are called as the pages call theirs.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import huggingface_hub.constants

from app.cli import run_cli
from app.engine.workers import worker_supervisor
from app.engine.workers.worker_job import Job
from app.store.judge_checks import JUDGE_CHECKS_FILE
from app.store.run_store import RunStore
from benchmarks.build import REJECTED_SUFFIX
from benchmarks.errors import RashomonError
from benchmarks.untrusted import private_state
from tests.docs import sources
from tests.docs.online import MODELS, online
from tests.docs.pages import ROOT, Command, files
from tests.docs.replies import reply
from tests.support.demo import BF16, FOUR_BIT
from tests.support.fault_server import FaultServer
from tests.support.inside import work_here
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3 import build_tiny_lm
from tests.support.tiny_qwen3_omni import build_tiny_omni

SMALL = ("--limit", "2", "--max-tokens", "16", "--display", "none")

BENCHMARKS = {
    "docs/clash.md": "clash",
    "docs/without-sources.md": "clash",
    "docs/mmkc-bench.md": "mmkc-bench",
    "docs/crosscheck-bench.md": "crosscheck-bench",
    "docs/crosscheck-construction.md": "crosscheck-bench",
    "docs/contra4.md": "contra4",
    "docs/pope.md": "pope",
    "docs/vqa.md": "okvqa",
}
"""The benchmark of a page's runs, where it is not CMC-Bench."""

SOURCES = {
    "cmc-bench": "chartqa=~/data/ChartQA",
    "clash": f"rows={sources.HELD_OUT / 'clash'}",
    "mmkc-bench": f"published={sources.HELD_OUT / 'mmkc-bench'}",
    "crosscheck-bench": f"products={ROOT / 'assets' / 'products'}",
    "pope": "pope=~/data/pope",
    "okvqa": "okvqa=~/data/okvqa",
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
"""The runs and their models; RUN and RUN2 exist for every benchmark, the others for CMC-Bench."""

PAGES_OWN = {
    "docs/parity.md": {"RUN_A": RUNS["RUN"], "RUN_B": RUNS["RUN2"]},
    "docs/cluster.md": {"DIRECT_RUN": RUNS["RUN2"], "SERVED_RUN": "endpoint:Qwen/Qwen3-VL-32B-Instruct@SERVER"},
}
"""More runs, which are copied to copied/ as well: those that a page names beside the usual ones."""

TYPED = {"data": "y\n", "models": "y\n", "label": "1\ns\nq\n"}
"""Input typed at the terminal for commands that prompt."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output of a command and its exit code."""

    code: int
    out: str
    err: str


class Terminal(io.StringIO):
    """Text stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


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
        sources.write(self.path / "data", self.here)
        for model in dict.fromkeys((*RUNS.values(), *MODELS, "Qwen/Qwen3-VL-4B-Instruct")):
            _cached(self.path / "hub", model, FOUR_BIT if model.endswith("4bit") else BF16)
        (self.here / "MODEL").symlink_to(FOUR_BIT)
        build_tiny_lm(self.path / "text-model", TEXTS, quantise=True)
        _cached(self.path / "hub", "mlx-community/Qwen3-4B-Instruct-2507-4bit", self.path / "text-model")
        build_tiny_omni(self.here / "CAPTIONER", TEXTS)
        build_tiny_lm(self.here / "EMBEDDING_MODEL", TEXTS, quantise=False)
        data = self.path / "builds" / benchmark
        with FaultServer(reply) as server, self.entered(server):
            self._must(f"build {benchmark} --source {SOURCES[benchmark]} --out {data}".split())
            self.builds.mkdir(parents=True)
            (self.builds / benchmark).symlink_to(data)
            for name, model in RUNS.items():
                if benchmark == "cmc-bench" or name.startswith("RUN"):
                    options = ["--benchmark", benchmark, "--model", model, "--data", str(data), "--name", name]
                    self._must(["--batch", *options, *SMALL, *ASKED.get(benchmark, ())])
            self._predictions(benchmark)

    def prepare(self, page: str, server: FaultServer) -> None:
        """Write the files that the page shows, and make the runs that it names beside the usual ones."""
        for name, text in files(page):
            (self.here / name).write_text(text, "utf-8")
        for name, model in PAGES_OWN.get(page, {}).items():
            model = model.replace("SERVER", server.url)
            self._must(["--batch", "--benchmark", "cmc-bench", "--model", model, "--name", name, *SMALL])
            copied = self.here / "copied" / name
            shutil.copytree(self.path / "workspace" / "runs" / name, copied)
        if page == "docs/parity.md":
            self._must(["bundle", "RUN_B", "--out", str(self.here / "FILE.zip")])

    def instance(self) -> str:
        """The id of one of RUN's instances."""
        result = self.run_command(["export", "RUN", "--format", "json", "--out", str(self.path / "ids")])
        assert result.code == 0, result
        lines = (self.path / "ids" / "samples.jsonl").read_text("utf-8").splitlines()
        return str(json.loads(lines[0])["id"])

    @contextmanager
    def entered(self, server: FaultServer) -> Iterator[None]:
        """Set this process up for a user with this home, to whom ``server`` is every API."""
        with online(self.path / "data", self.path / "drafts") as hub, ExitStack() as stack:
            variables = hub.variables | {
                "HOME": str(self.path),
                "RASHOMON_WORKSPACE": str(self.path / "workspace"),
                "HF_HUB_CACHE": str(self.path / "hub"),
                "XDG_CACHE_HOME": str(self.path / "cache"),
                "XDG_CONFIG_HOME": str(self.path / "config"),
                "COLUMNS": "120",
                "OPENAI_API_KEY": "a-key-of-the-tests-own",
                "OPENAI_BASE_URL": server.url,
                "GEMINI_API_KEY": "another-key-of-the-tests",
                "GOOGLE_GEMINI_BASE_URL": server.url.removesuffix("/v1"),
            }
            stack.enter_context(patch.dict(os.environ, variables))
            for name, value in hub.constants.items():  # which the Hub's library read when it was imported
                stack.enter_context(patch.object(huggingface_hub.constants, name, value))
            stack.enter_context(patch.object(worker_supervisor.Supervisor, "_run_worker", _work))
            stack.enter_context(chdir(self.here))
            stack.callback(
                private_state.remove, JUDGE_CHECKS_FILE
            )  # or the tables of other tests would name the results
            yield

    def perform(self, command: Command, stands: Mapping[str, str]) -> CommandResult:
        """Run one command as printed, with the placeholders in ``stands`` (regular expressions) replaced."""
        words = command.words[1:]
        for pattern, other in stands.items():
            words = [re.sub(pattern, other, word) for word in words]
        out: Path | None = None
        if ">" in words:
            out = self.here / Path(words[words.index(">") + 1]).expanduser()
            out.parent.mkdir(parents=True, exist_ok=True)  # as it is where that shell is used
            words = words[: words.index(">")]
        if (
            words[0] == "build" and "--out" not in words
        ):  # a page shows several ways to build; each finds the place empty
            built = self.builds / words[1]
            if built.is_symlink():
                built.unlink()
            else:
                shutil.rmtree(built, ignore_errors=True)
            shutil.rmtree(self.builds / f"{words[1]}{REJECTED_SUFFIX}", ignore_errors=True)
        result = self.run_command(words, TYPED.get(words[0], ""))
        if out is not None:
            out.write_text(result.out, "utf-8")
        if words[0] == "label" and "--export" in words:
            _fill_in(self.here / words[words.index("--export") + 1])
        return result

    def run_command(self, words: list[str], typed: str = "") -> CommandResult:
        """Run ``rashomon`` with these arguments in this process; on a terminal where something is ``typed``."""
        out, err = Terminal() if typed else io.StringIO(), io.StringIO()
        typing = patch.object(sys, "stdin", Terminal(typed) if typed else io.StringIO())
        with redirect_stdout(out), redirect_stderr(err), typing, patch.object(sys, "argv", ["rashomon"]):
            try:
                code = run_cli(words)
            except RashomonError as error:
                err.write(str(error))
                code = error.exit_code
        return CommandResult(code, out.getvalue(), err.getvalue())

    def _must(self, words: list[str]) -> None:
        result = self.run_command(words)
        assert result.code == 0, f"{words}\n{result.out}\n{result.err}"

    def _predictions(self, benchmark: str) -> None:
        result = self.run_command(["export", "RUN", "--format", "json", "--out", str(self.path / "answers")])
        assert result.code == 0, result
        rows = [json.loads(line) for line in (self.path / "answers" / "samples.jsonl").read_text("utf-8").splitlines()]
        predictions = [{"id": row["id"], "answer": "12"} for row in rows]
        (self.here / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in predictions), "utf-8")


def _work(supervisor: worker_supervisor.Supervisor, job: Job) -> Generator[None, None, worker_supervisor._End]:
    """Run a job in this process, since a worker process takes seconds to start. PyTorch needs its own process."""
    with RunStore.read(job.runs[0]) as store:
        in_torch = store.meta("spec")["model"].startswith("cuda:")
    return (yield from (_IN_A_PROCESS if in_torch else work_here)(supervisor, job))


_IN_A_PROCESS = worker_supervisor.Supervisor._run_worker


def _cached(hub: Path, model: str, folder: Path) -> None:
    """Put ``folder`` into the Hugging Face cache as the model ``model``."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    place = hub / f"models--{model.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    (place / "snapshots").mkdir()
    (place / "snapshots" / commit).symlink_to(folder)


def _fill_in(sheet: Path) -> None:
    """Label the exported sheet, as a person would."""
    with sheet.open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows):
        row["label"] = ("IMAGE", "TEXT", "NEITHER")[number % 3]
    with sheet.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def masked(text: str) -> str:
    """Return the text with everything volatile replaced; see ``VOLATILE``."""
    for pattern, instead in VOLATILE:
        text = re.sub(pattern, instead, text)
    return text


VOLATILE = (
    (r"\b\d+(\.\d+)? (s|ms|min|h)\b", "TIME"),
    (r"\b\d+(\.\d+)? (GB|MB|KB)\b", "SIZE"),
    (r"(?<!\w)/(?:[\w.~-]+/)*[\w.~-]+", "PATH"),
    (r"\b[0-9a-f]{8,64}\b", "DIGEST"),
    (r"[ \t]+$", ""),
)
"""Patterns that differ between machines and days, with their replacements when output is compared."""
