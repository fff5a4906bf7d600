"""Provenance of a run, and the spec that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from app.engine.run_plan import without_none
from app.report.runs.imported_settings import DECODING_KEYS, UNKNOWN, is_imported, known_identity, known_spec
from app.report.runs.stored_run_checks import stored_check
from app.store.answer_sums import ENDPOINT_KEY
from app.store.reusable_answers import ReusedAnswers
from app.store.run_facts import ExcludedInstances
from app.store.run_store import RunStore
from app.text.text_escaping import clean
from benchmarks.vocabulary import digest, part_to_json
from mlx_backends.baseline_engine import BASELINE


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return a run's identity, the digests of its prompts, and the engines and judges that took part.

    ``reused`` counts other runs' answers. ``prompts`` maps a condition to the sha256 over its instances' ids and prompts, media
    by content, in order of id: runs with equal digests had equal input. ``engines`` lists each engine that answered, with its
    libraries and machine.
    """
    with RunStore.read(folder) as store:
        prompts: dict[str, list[Any]] = {}
        for record in store.records():
            instance = record.instance
            prompts.setdefault(instance.condition, []).append([instance.id, [part_to_json(p) for p in instance.parts]])
        return {
            "created": store.meta("created"),
            "identity": known_identity(store.meta("identity", {}), store.meta("spec")),
            "prompts": {
                condition: digest(sorted(pairs, key=lambda pair: pair[0])) for condition, pairs in prompts.items()
            },
            "engines": store.engines(),
            "judges": store.meta("judges", {}),
            "checks": {
                "sight": store.meta("sight", [])[-1:],
                "endpoint": store.meta(ENDPOINT_KEY, []),
                "batches": store.meta("canary", []),
            },
            "excluded": ExcludedInstances.load(store),
            "reused": ReusedAnswers.load(store),
            "answers without digests": store.undigested or 0,
        }


def spec_of(folder: Path) -> dict[str, Any]:
    """Return the spec that repeats a run, for `rashomon --batch`. It names the build's original folder.

    For imported answers it has neither decoding settings nor a seed, since they are unknown.
    """
    with RunStore.read(folder) as store:
        spec: dict[str, Any] = without_none(known_spec(store.meta("spec")))
        data = store.meta("data")
    return {**spec, "data": data} if data else spec


def spec_toml(folder: Path) -> str:
    """Return the spec as TOML, with the provenance in comments above it."""
    provenance, spec = read_provenance(folder), spec_of(folder)
    head = [f"What {folder.name} was asked with; `rashomon --batch FILE` asks it again."]
    if is_imported(spec):
        head = [
            f"What {folder.name} is. Its answers were imported: `rashomon import` of their file makes it again.",
            f"{', '.join(DECODING_KEYS)}: {UNKNOWN}",
        ]
    elif str(spec["model"]).startswith(BASELINE):
        head = [f"What {folder.name} is. It was made of another run's answers by `rashomon baselines`."]
    lines = [*head, "", *_lines(provenance)]
    return "".join(f"# {clean(line)}".rstrip() + "\n" for line in lines) + "\n" + _harmless(tomli_w.dumps(spec))


def _lines(provenance: Mapping[str, Any]) -> list[str]:
    identity = provenance["identity"]
    keys = (
        "data digest",
        "answers digest",
        "engine",
        "model revision",
        "weights digest",
        "adapter digest",
        "base weights digest",
        "quantisation",
        "device",
        "protocol",
    )
    lines = [f"{key}: {identity[key]}" for key in keys if identity.get(key) is not None]
    lines += filter(None, [provenance["excluded"].sentence])
    reused = provenance["reused"]
    lines += [f"{count} answers reused from {reused.names[run]}" for run, count in reused.lenders.items()]
    lines += [f"prompts, {condition}: {sha256}" for condition, sha256 in provenance["prompts"].items()]
    for engine in provenance["engines"]:
        machine = engine.get("machine") or {}
        libraries = ", ".join(f"{name} {version}" for name, version in engine.get("versions", {}).items())
        lines.append(f"answered by: {engine.get('engine')} on {engine.get('device', 'an unknown device')}")
        if libraries:
            lines.append(f"  libraries: {libraries}, Python {machine.get('python', 'unknown')}")
        if machine:
            lines.append(f"  machine: {machine['chip']}, {machine['memory'] / 1e9:.1f} GB, {machine['system']}")
        if environment := engine.get("environment"):
            lines.append(f"  environment: {', '.join(f'{name}: {value}' for name, value in environment.items())}")
        if engine.get("weights_bytes"):
            lines.append(f"  weights: {engine['weights_bytes']} bytes")
    for proof in provenance["checks"]["batches"]:
        lines.append(f"{proof['model']} answered {proof['way']}")
        lines += [f"  {line}" for line in stored_check(proof, "token")]
    if undigested := provenance["answers without digests"]:
        lines.append(f"written without digests: {undigested} answers; `rashomon doctor RUN` says what that means")
    for judge in provenance["judges"]:
        lines.append(f"judged by: {judge}")
    return lines


def _harmless(toml: str) -> str:
    """Return TOML with every character that could control a terminal replaced by its TOML escape."""
    return "".join(
        character
        if character == "\n" or clean(character) == character
        else f"\\u{ord(character):04x}"
        if ord(character) < 0x10000
        else f"\\U{ord(character):08x}"
        for character in toml
    )
