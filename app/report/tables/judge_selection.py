"""Judge selection: the judge whose labels a table uses, and the judges that others are measured by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from app.store.judge_checks import find_check, models_digest
from app.store.run_store import RunStore
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Record
from judges.base import HUMAN, OVERRIDE, newest
from judges.judge_registry import find_judge, get_judge, judge_names, usable_judge
from judges.panel_judge import Panel, panel_id, panel_judge, parse_panel

PUBLISHED = "@published"
"""The suffix of the ids of judges whose verdicts were imported with the answers."""


def present_judges(stores: Sequence[RunStore]) -> list[str]:
    """Return the sorted ids of the judges with a verdict in these runs."""
    return sorted(
        {
            judge
            for store in stores
            for p in store.progress()
            for judge, judge_counts in p.judged.items()
            if judge_counts.total
        }
    )


def resolve_judge(stores: Sequence[RunStore], judge: str | None) -> str:
    """Return the id of ``judge``'s verdicts in these runs; None stands for the first run's first judge.

    The id of a panel such as ``majority(a, b, c)`` is made of its members' ids. A run's first judge is ``first(match, MODEL)``
    if a model has judged what that left undecided. Raises SpecError for an unknown judge.
    """
    spec = stores[0].meta("spec")
    name: str = judge or spec["judge"][0]
    ids = present_judges(stores)
    if judge is None and name == spec.get("undecided_by"):
        members = [newest(member, ids) for member in spec["judge"] if member == name or member not in judge_names()]
        if len(named := [member for member in members if member is not None]) > 1:
            return panel_id(Panel("first", (named[0], named[1])), ids)
    if name in ids:
        return name
    if (latest := newest(name, ids)) is not None:
        return latest
    if name in judge_names():
        return get_judge(name).id
    if (panel := parse_panel(name)) is not None:
        return panel_id(panel, ids)
    if judge is None:
        return find_judge(name, get_benchmark(spec["benchmark"])).id
    raise SpecError(f"no judge {name!r} has labelled here; {did_you_mean(name, ids or judge_names())}")


def judge_of(folders: Sequence[Path], judge: str | None) -> str:
    """Return the id of ``judge``'s verdicts in the runs in ``folders``, as :func:`resolve_judge` does."""
    with ExitStack() as stack:
        return resolve_judge([stack.enter_context(RunStore.read(folder)) for folder in folders], judge)


def resolve_panel(judge_id: str, ids: Sequence[str]) -> Panel | None:
    """Return the panel with this id; None if it is the id of a single judge, such as one of ``ids``."""
    return parse_panel(judge_id) if judge_id not in ids else None


def judged_records(store: RunStore, judge_id: str, *, only: str | None = None) -> Iterator[Record]:
    """Yield a run's records, or that of the instance ``only``, with the panel's verdicts if it is the id of a panel."""
    panel = resolve_panel(judge_id, present_judges([store]))
    if panel is None:
        return store.records(only=only)
    labels = get_benchmark(store.meta("spec")["benchmark"]).labels
    return map(panel_judge(panel, panel.members, labels), store.records(only=only))


def reference_judges(stores: Sequence[RunStore]) -> list[str]:
    """Return the judges that others are measured by, best first: people, models behind an API, published labels."""
    ids = present_judges(stores)
    remote = {
        judge for store in stores for judge, info in store.meta("judges", {}).items() if info.get("device") == "remote"
    }
    people = [judge for judge in ids if judge.startswith(HUMAN)]
    published = [judge for judge in ids if judge.endswith(PUBLISHED)]
    return [*people, *(judge for judge in ids if judge in remote), *published]


def count_overrides(stores: Sequence[RunStore]) -> dict[str, int]:
    """Return the number of labels that each person has overridden in these runs, by the id of their overrides."""
    counts: dict[str, int] = {}
    for store in stores:
        for p in store.progress():
            for judge, judge_counts in p.judged.items():
                if judge.startswith(OVERRIDE) and judge_counts.labelled:
                    counts[judge] = counts.get(judge, 0) + judge_counts.labelled
    return counts


def effective_judges(store: RunStore) -> tuple[str, ...]:
    """Return the judges whose labels apply when samples are browsed: people's overrides, then the run's first judge."""
    judge_id = resolve_judge([store], None)
    panel = resolve_panel(judge_id, present_judges([store]))
    # The model's labels come first: it has labelled only what the judge by rule left undecided.
    return (*sorted(count_overrides([store])), *((judge_id,) if panel is None else reversed(panel.members)))


def undecided_instances(store: RunStore) -> frozenset[str]:
    """Return the instances whose answers the run's first judge left undecided."""
    if not any(counts.undecided for p in store.progress() for counts in p.judged.values()):
        return frozenset()  # without reading an answer
    judge_id = resolve_judge([store], None)
    records = judged_records(store, judge_id)
    return frozenset(record.instance.id for record in records if record.outcome(judge_id) == "undecided")


def checked_agreement(stores: Sequence[RunStore], judge_id: str) -> str:
    """Return a sentence on the result of `rashomon judges check` for the judge that labelled these runs; "" if there is none."""
    panel = resolve_panel(judge_id, present_judges(stores))
    members = (judge_id,) if panel is None else panel.members
    labelled = [store for store in stores if set(members) <= set(present_judges([store]))]
    digests = {models_digest(store.meta("judges", {}).get(member) for member in members) for store in labelled}
    check = find_check(judge_id, digests.pop()) if len(digests) == 1 else None
    return f"{judge_id} {check} with `rashomon judges check`." if check else ""


def caveat(judge_id: str) -> str:
    """Return the judge's caveat, to follow its id; "" if it has none."""
    judge = usable_judge(judge_id.rpartition("@")[0])
    text = "" if judge is None else judge.caveat
    return f", {text}" if text else ""
