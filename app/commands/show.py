"""``rashomon show``: a run's tables, or one of its samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.commands.spinner import doing
from app.engine.unsupported_media import ExcludedInstances
from app.engine.workers.recovery import deaths
from app.report.headline import headline, others, over_own_rows, without_paper
from app.report.judge_selection import judge_of, judged_records, panel_of, present
from app.report.media import media_path, seen
from app.report.provenance import provenance, spec_of, spec_toml
from app.report.render import print_table, to_json
from app.report.samples import sample
from app.report.tables import run_labels, tables_of
from app.store.run import RunStore
from app.store.sample_lookup import sample_id
from app.store.workspace import Workspace, summary
from app.text.escape import clean
from benchmarks.base import Media, Record, get_benchmark


def show(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    table: str | None,
    sample: str | None,
    spec: bool,
    judge: str | None,
    as_json: bool,
    all_tables: bool = False,
) -> None:
    """Print what ``runs`` come to and their main table (only ``table`` if named), or the instance ``sample``, or the ``spec``.

    With ``all_tables`` every table follows.
    """
    folders = [workspace.run_folder(run) for run in runs]
    if spec:
        if as_json:
            told = [{"spec": spec_of(folder), "provenance": provenance(folder)} for folder in folders]
            print(json.dumps(told, indent=2))
        else:
            print("\n".join(spec_toml(folder) for folder in folders), end="")
        return
    if sample is not None:
        found = [_sample(workspace, folder, sample) for folder in folders]
        if as_json:
            print(json.dumps([one for one, _ in found], indent=2, ensure_ascii=True))
        else:
            for folder, (one, media) in zip(folders, found, strict=True):
                _tell_sample(folder, one, media)
        return
    with doing("making the tables"):
        own = not as_json and all(over_own_rows(folder) for folder in folders)
        tables = tables_of(folders, judge=judge, only=table, published=not own)
        headlines = [] if as_json or table is not None else _headlines(folders, judge)
    if as_json:
        print(json.dumps([to_json(one) for one in tables], indent=2))
        return
    for folder in folders:
        run = summary(folder)
        why = f" ({clean(run.note)})" if run.state == "stopped" else ""
        print(f"{clean(run.name)}: {run.state}{why}, {run.done} of {run.total} answered")
        with RunStore.read(folder) as store:
            if excluded := ExcludedInstances.kept(store).sentence:
                print(f"  {excluded}")
            for death in deaths(store):
                print(clean(f"{folder.name}: {death.sentence()}"))
    for line in headlines:
        print(clean(line))
    print()
    shown = tables if table is not None or all_tables else tables[:1]
    for each in shown:
        print_table(without_paper(each) if own else each)
    for folder in folders:
        for line in _ways(folder):
            print(f"  {clean(line)}")
    if table is None and (more := others(tables, [each.name for each in shown])):
        print(more)


def _headlines(folders: Sequence[Path], judge: str | None) -> list[str]:
    stores = [RunStore.read(folder) for folder in folders]
    try:
        benchmark, judge_id = get_benchmark(stores[0].meta("spec")["benchmark"]), judge_of(stores, judge)
        return [
            " ".join(headline(label, _records(store, judge), judge_id, benchmark))
            for label, store in zip(run_labels(stores), stores, strict=True)
        ]
    finally:
        for store in stores:
            store.close()


def _records(store: RunStore, judge: str | None) -> Iterable[Record]:
    """A run's records, one by one unless a panel has to judge them first."""
    return store.records() if panel_of(judge, present([store])) is None else judged_records(store, judge)


def _ways(folder: Path) -> Iterator[str]:
    """How the run's answers were given, each time that it was found out."""
    with RunStore.read(folder) as store:
        if store.meta("spec").get("exact"):
            yield "each answer was computed by itself (--exact)"
        for proof in store.meta("canary", []):
            noise = f"padding moves a logit by {proof['noise']:.2g}"
            compared = f"compared with one at a time on {proof['cases']} requests and {proof['tokens']} tokens"
            yield f"{proof['model']} asked {proof['way']}: {compared}, where {noise}"
            for way, reason in proof["failed"].items():
                yield f"not {way}: {reason}"
            if proof.get("lacks"):
                yield proof["lacks"]


def _sample(workspace: Workspace, folder: Path, instance: str) -> tuple[dict[str, Any], dict[Media, Path | None]]:
    """A sample, and its media with their files as far as they are there."""
    with RunStore.read(folder) as store:
        benchmark = get_benchmark(store.meta("spec")["benchmark"])
        build = workspace.build_of(store)
        record = next(store.records(only=sample_id(store, instance)))
        media = {part: media_path(build, part) for part in record.instance.parts if isinstance(part, Media)}
        return sample(record, remarks=benchmark.remarks(record)), media


def _tell_sample(folder: Path, one: dict[str, Any], media: Mapping[Media, Path | None]) -> None:
    def line(name: str, text: object) -> None:
        print(f"{name:<12} {clean(str(text), newlines=True)}")

    line("run", folder.name)
    for key in ("id", "condition", "question", "prompt"):
        line(key, one[key])
    for medium, path in media.items():
        line("medium", f"{medium.sha256[:8]}: {seen(medium, path, 1).facts}")
    for key, values in one["references"].items():
        line(f"{key} says", " | ".join(values))
    if "own answer" in one:
        line("own answer", one["own answer"])
    for step in one["steps"]:
        line("answer", step["error"] or step["text"])
        tokens = "" if step["completion_tokens"] is None else f", {step['completion_tokens']} tokens"
        line("finished", step["finish_reason"] + tokens)
    for remark in one.get("remarks", ()):
        line("remark", remark)
    for judge, verdict in one["verdicts"].items():
        line(judge, f"{verdict['label'] or verdict['status']} ({verdict['reason']})")
