"""The runs that ``rashomon parity`` compares: those that are named, and those of models, which are asked first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.commands.batch import work
from app.commands.confirm_addresses import agree
from app.commands.progress_display import make_display
from app.engine.plan import check, plan
from app.engine.workers.supervise import INTERRUPTED
from app.run_spec import load_spec
from app.store.database import DATABASE
from app.store.run import RunStore
from app.store.workspace import Workspace
from app.system.paths import typed_path
from benchmarks.errors import SpecError, StoreError
from mlx_backends.registry import looks_like_model

EXAMPLES = 24
"""How many examples models are asked, where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a model is asked that has no run yet: ``spec`` is what its spec says besides the model and the build in ``data``."""

    spec: Mapping[str, Any]
    data: Path | None = None
    force: bool = False
    display: str | None = None
    allowed: Sequence[str] = ()
    """The addresses that the user agrees to."""


def runs_of(workspace: Workspace, names: Sequence[str], asking: RunOptions) -> list[Path] | None:
    """The folders of the runs that are named; a model among them is asked first, as the run beside it was or as ``asking``.

    None where that was interrupted.
    """
    agree((), asking.allowed)
    known = [_run(workspace, name) for name in names]
    if None not in known:
        return [folder for folder in known if folder is not None]
    pattern = next((folder for folder in known if folder is not None), None)
    models = list(dict.fromkeys(name for name, folder in zip(names, known, strict=True) if folder is None))
    folders = ask(workspace, models, asking, like=pattern)
    if folders is None:
        return None
    by_name = dict(zip(models, folders, strict=True))
    return [folder or by_name[name] for name, folder in zip(names, known, strict=True)]


def _run(workspace: Workspace, name: str) -> Path | None:
    """The run's folder; None where ``name`` is a model's. Raises StoreError where it is neither."""
    if not (Path(name) / DATABASE).is_file() and name not in workspace.run_names() and looks_like_model(name):
        return None
    return workspace.run_folder(name)


def ask(
    workspace: Workspace, models: Sequence[str], asking: RunOptions, *, like: Path | None = None
) -> list[Path] | None:
    """The runs of ``models``, each made or gone on with: asked as the run ``like`` was, else as ``asking`` says.

    None where it was interrupted. Raises SpecError and the other errors of a spec, StoreError where a run is left unfinished.
    """
    said = {key: value for key, value in asking.spec.items() if value not in (None, [], {}, ())}
    if asking.data is not None:
        said["data"] = str(typed_path(asking.data))
    if like is not None:
        with RunStore.read(like) as store:
            before = store.meta("spec")
        left_out = ("model", "name", "prompt_set", "judge", "decoding")
        said = {
            **{key: value for key, value in before.items() if key not in left_out and value not in (None, [], {})},
            **before["decoding"],
            "prompt_set": [before["prompt_set"]],
            "judge": before["judge"],
            **({"data": said["data"]} if "data" in said else {}),
        }
    elif "benchmark" not in said:
        raise SpecError("models are asked a benchmark's questions: name it with --benchmark.")
    else:
        said.setdefault("limit", EXAMPLES)
    specs = load_spec(None, {**said, "model": list(models)}).runs()
    agree([word for spec in specs for word in (spec.model, *spec.judge)], asking.allowed)
    checked = [check(workspace, spec) for spec in specs]
    planned = [plan(workspace, each) for each in checked]
    code = work(workspace, planned, make_display(asking.display), display="none", force=asking.force)
    if code == INTERRUPTED:
        return None
    for run in planned:
        with RunStore.read(run.folder) as store:
            if next(store.pending(), None) is not None:
                raise StoreError(f"{run.name} could not be answered to the end; `rashomon resume {run.name}` goes on.")
    return [run.folder for run in planned]


def builds_of(workspace: Workspace, folders: Sequence[Path], data: Path | None) -> list[Path]:
    """Where the runs' media may lie: where it is said, where each run found them, and the workspace's build."""
    found = [typed_path(data)] if data is not None else []
    for folder in folders:
        with RunStore.read(folder) as store:
            where, benchmark = store.meta("data"), store.meta("spec")["benchmark"]
        found += [*([Path(where)] if where else []), workspace.build_folder(benchmark)]
    return list(dict.fromkeys(found))
