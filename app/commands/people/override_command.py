"""``rashomon override``: one answer's label by a person who has seen the judge's."""

from __future__ import annotations

from app.annotation.label_override import override as store_override
from app.annotation.label_override import retract_override
from app.store.run_references import changeable_run
from app.store.run_store import RunStore
from app.store.sample_lookup import find_sample_id
from app.store.workspace import Workspace
from app.text.text_escaping import clean
from benchmarks.errors import SpecError
from judges.human_labels_and_samples import override_id


def override(
    workspace: Workspace, run: str, sample: str, label: str | None, *, person: str, reason: str | None, undo: bool
) -> int:
    """Override the label of ``sample`` in ``run``, or undo this person's override; return the exit code. Raises SpecError."""
    folder = changeable_run(workspace, run)
    if undo == (label is not None):
        raise SpecError("name either a label or --undo.")
    with RunStore.read(folder) as store:
        sample = find_sample_id(store, sample)
    if label is None:
        if not retract_override(folder, person, sample):
            raise SpecError(f"{override_id(person)} has no override of {sample!r} to undo.")
        print(f"{clean(sample)}: override removed; the judge's label counts again.")
        return 0
    if reason is None:
        raise SpecError("an override needs a reason; add --reason TEXT.")
    store_override(folder, person, sample, label.upper(), reason)
    print(f'{clean(sample)}: {label.upper()} by {override_id(person)}; tables use it with --judge "first(...)".')
    return 0
