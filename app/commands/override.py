"""``rashomon override``: one answer's label, by a person who has seen the judge's."""

from __future__ import annotations

from app.annotation.override import override as give
from app.annotation.override import take_back
from app.store.run import RunStore
from app.store.sample_lookup import sample_id
from app.store.workspace import Workspace
from app.text.escape import clean
from benchmarks.errors import SpecError
from judges.human_labels import override_id


def override(
    workspace: Workspace, run: str, sample: str, label: str | None, *, person: str, reason: str | None, undo: bool
) -> int:
    """Give ``sample`` of ``run`` the label, or take back what this person gave it; the exit code. Raises SpecError."""
    folder = workspace.run_folder(run)
    if undo == (label is not None):
        raise SpecError("name a label, or --undo to take one back.")
    with RunStore.read(folder) as store:
        sample = sample_id(store, sample)
    if label is None:
        if not take_back(folder, person, sample):
            raise SpecError(f"{override_id(person)} has not overridden {sample!r}.")
        print(f"{clean(sample)}: the judge's label counts again.")
        return 0
    if reason is None:
        raise SpecError("say why with --reason.")
    give(folder, person, sample, label.upper(), reason)
    print(f'{clean(sample)}: {label.upper()} by {override_id(person)}; tables use it with --judge "first(...)".')
    return 0
