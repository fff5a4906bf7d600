"""Scores of rules that look at no source on a run's instances, cached on this machine: they take longer than a screen may."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.answers import Answers
from benchmarks.audit import audit
from benchmarks.audit.blind_rule_scores import BlindScores
from benchmarks.base import Benchmark
from benchmarks.build import Build
from benchmarks.build_audit import blind_questions
from benchmarks.errors import SourceError
from benchmarks.protocols.repeats import split_repeat
from benchmarks.untrusted.private_folders import cache_folder, make_private
from benchmarks.untrusted.safe_files import UnsafeFileError, make_folder, read_bytes, replace_file
from benchmarks.vocabulary import digest
from mlx_backends.stored_checks import code_digest

FOLDER = "audits"
"""The subfolder of the user's cache with the scores; it may be deleted at any time."""

_LARGEST = 1 << 28
_MOST_FILES = 200


def with_blind_scores(store: RunStore, benchmark: Benchmark, answers: Answers) -> Answers:
    """Return a run's answers with the scores of rules that look at no source; without any where no question is closed."""
    folder = Workspace(store.folder.parent.parent).build_of(store)
    code = code_digest(Path(benchmarks.__file__).parent)
    name = digest([store.instances_digest(), benchmark.name, folder.exists(), code]) + ".npz"
    scores = _load(name, len(answers))
    if scores is None:
        scores = _compute(store, benchmark)
        _save(name, scores)
    return replace(answers, blind=scores if scores.tasks else None)


def unchanged_build(store: RunStore) -> Build | None:
    """Return the build of a run; None if it is missing or another one, so that the sizes of the run's media are unknown."""
    with suppress(SourceError):
        build = Build.open(Workspace(store.folder.parent.parent).build_of(store))
        if build.digest == store.meta("identity", {}).get("data digest"):
            return build
    return None


def _compute(store: RunStore, benchmark: Benchmark) -> BlindScores:
    """Audit the closed questions of a run, each once, however often it is repeated."""
    instances = (record.instance for record in store.records())
    first = (instance for instance in instances if split_repeat(instance.id)[1] == 1)
    questions, sizes = blind_questions(benchmark, first, unchanged_build(store))
    offered = [question for question in questions if question.offered]
    task_of = {question.id: question.task for question in offered}
    records = (split_repeat(name)[0] for name in store.ids())
    return BlindScores.of(audit(offered, media=sizes.get), task_of, records)


def _load(name: str, records: int) -> BlindScores | None:
    """Return stored scores of so many records; None for none, or for a file that is damaged."""
    import numpy as np

    try:
        with np.load(
            io.BytesIO(read_bytes(cache_folder(), f"{FOLDER}/{name}", limit=_LARGEST)), allow_pickle=False
        ) as of:
            blind, chance, task, names = (of[key] for key in ("blind", "chance", "task", "tasks"))
        scores = BlindScores(blind, chance, task, tuple((str(row[0]), str(row[1])) for row in names.reshape(-1, 2)))
    except Exception:  # numpy raises errors of many kinds for a damaged file
        return None
    is_whole = all(of.shape == (records,) for of in (blind, chance, task)) and task.dtype == np.int64
    return scores if is_whole and blind.dtype == chance.dtype == np.float64 else None


def _save(name: str, scores: BlindScores) -> None:
    """Store scores, in place of the oldest ones where there are many; a cache that cannot be written is left as it is."""
    import numpy as np

    columns: dict[str, Any] = {"blind": scores.blind, "chance": scores.chance, "task": scores.task}
    content = io.BytesIO()
    np.savez_compressed(content, **columns, tasks=np.array(scores.tasks, dtype=np.str_).reshape(-1, 2))
    with suppress(OSError, UnsafeFileError):
        folder = make_folder(make_private(cache_folder()), FOLDER)
        replace_file(cache_folder(), f"{FOLDER}/{name}", content.getvalue())
        files = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime)
        for path in files[:-_MOST_FILES]:
            path.unlink(missing_ok=True)
