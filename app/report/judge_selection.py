"""Whose labels a table rests on: the judge that is meant, and how good it is known to be for these runs."""

from __future__ import annotations

from collections.abc import Sequence

from app.store.run import RunStore
from benchmarks.base import Record, did_you_mean, get_benchmark
from benchmarks.errors import SpecError
from judges.base import HUMAN, OVERRIDE, find_judge, get_judge, judge_names, newest
from judges.panel import Panel, panel_id, parse_panel, with_panel

PUBLISHED = "@published"
"""What the id of a judge ends with whose verdicts came with imported answers."""


def present(stores: Sequence[RunStore]) -> list[str]:
    """The ids of the judges that have labelled anything in these runs, sorted."""
    return sorted(
        {
            judge
            for store in stores
            for p in store.progress()
            for judge, judged in p.judged.items()
            if judged.labelled or judged.unparsed or judged.failed
        }
    )


def judge_of(stores: Sequence[RunStore], judge: str | None) -> str:
    """The id that ``judge``'s verdicts are kept under in these runs; None is the first run's first judge. Raises SpecError.

    A panel such as ``majority(a, b, c)`` has an id of its own, made of its members'.
    """
    spec = stores[0].meta("spec")
    name: str = judge or spec["judge"][0]
    ids = present(stores)
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


def panel_of(judge: str | None, ids: Sequence[str]) -> Panel | None:
    """The panel that ``judge`` names, unless it is the id of one of ``ids``; None where it names no panel."""
    return parse_panel(judge) if judge and judge not in ids else None


def judged_records(store: RunStore, judge: str | None, *, only: str | None = None) -> list[Record]:
    """A run's records, with the verdicts of the panel that ``judge`` names, if it names one; ``only`` one instance's."""
    records, ids = list(store.records(only=only)), present([store])
    panel = panel_of(judge, ids)
    labels = get_benchmark(store.meta("spec")["benchmark"]).labels
    return records if panel is None else with_panel(records, panel, ids, labels)


def references(stores: Sequence[RunStore]) -> list[str]:
    """The judges that others are measured by, the best first: people, then models behind an API."""
    ids = present(stores)
    remote = {
        judge for store in stores for judge, info in store.meta("judges", {}).items() if info.get("device") == "remote"
    }
    people = [judge for judge in ids if judge.startswith(HUMAN)]
    published = [judge for judge in ids if judge.endswith(PUBLISHED)]
    return [*people, *(judge for judge in ids if judge in remote), *published]


def overridden(stores: Sequence[RunStore]) -> dict[str, int]:
    """How many labels each person has overridden in these runs, by the id that is kept under; only where it is any."""
    counts: dict[str, int] = {}
    for store in stores:
        for p in store.progress():
            for judge, judged in p.judged.items():
                if judge.startswith(OVERRIDE) and judged.labelled:
                    counts[judge] = counts.get(judge, 0) + judged.labelled
    return counts


def effective(store: RunStore) -> tuple[str, ...]:
    """Whose label of an answer counts for whoever looks through the samples: people's overrides, then the run's first judge."""
    return (*sorted(overridden([store])), judge_of([store], None))


def caveat(judge_id: str) -> str:
    """What must be known of a judge's labels, to stand behind its id; empty where there is nothing."""
    name = judge_id.rpartition("@")[0]
    told = get_judge(name).caveat if name in judge_names() else ""
    return f", {told}" if told else ""
