"""What a run was made of, and the spec that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from app.engine.plan import without_none
from app.engine.unsupported_media import META, ExcludedInstances
from app.report.imported import DECODING_KEYS, UNKNOWN, is_imported, known_identity, known_spec
from app.store.run import RunStore
from app.text.escape import clean
from benchmarks.base import digest, part_to_json


def provenance(folder: Path) -> dict[str, Any]:
    """What decides and describes a run: its identity, its prompts' digests, who answered where, and who judged.

    ``prompts`` maps a condition to the sha256 over its instances' ids and prompts, media by content, in order of id: runs with
    the same digest were shown the same. ``engines`` are those that answered, each with its libraries and machine.
    """
    with RunStore.read(folder) as store:
        shown: dict[str, list[Any]] = {}
        for record in store.records():
            instance = record.instance
            shown.setdefault(instance.condition, []).append([instance.id, [part_to_json(p) for p in instance.parts]])
        return {
            "run": folder.name,
            "created": store.meta("created"),
            "identity": known_identity(store.meta("identity", {}), store.meta("spec")),
            "prompts": {condition: digest(sorted(found, key=lambda one: one[0])) for condition, found in shown.items()},
            "engines": store.engines(),
            "judges": store.meta("judges", {}),
            META: ExcludedInstances.kept(store).to_json(),
            "answers without digests": store.undigested or 0,
        }


def spec_of(folder: Path) -> dict[str, Any]:
    """Return the spec that repeats a run: `rashomon --batch` takes it as a file. Its data are named where they lay.

    Of imported answers it has neither decoding settings nor a seed, which nobody knows.
    """
    with RunStore.read(folder) as store:
        spec: dict[str, Any] = without_none(known_spec(store.meta("spec")))
        data = store.meta("data")
    return {**spec, "data": data} if data else spec


def spec_toml(folder: Path) -> str:
    """The spec as TOML, with the provenance as comments above it."""
    told, spec = provenance(folder), spec_of(folder)
    head = [f"What {folder.name} was asked with; `rashomon --batch FILE` asks it again."]
    if is_imported(spec):
        head = [
            f"What {folder.name} is. Its answers were imported: `rashomon import` of their file makes it again.",
            f"{', '.join(DECODING_KEYS)}: {UNKNOWN}",
        ]
    lines = [*head, "", *_lines(told)]
    return "".join(f"# {clean(line)}".rstrip() + "\n" for line in lines) + "\n" + _harmless(tomli_w.dumps(spec))


def _lines(told: Mapping[str, Any]) -> list[str]:
    identity = told["identity"]
    kept = (
        "data digest",
        "answers digest",
        "engine",
        "model revision",
        "weights digest",
        "quantisation",
        "device",
        "protocol",
    )
    lines = [f"{key}: {identity[key]}" for key in kept if identity.get(key) is not None]
    if told[META]["total"]:
        lines.append(ExcludedInstances(**told[META]).sentence)
    lines += [f"prompts, {condition}: {shown}" for condition, shown in told["prompts"].items()]
    for engine in told["engines"]:
        machine = engine.get("machine") or {}
        libraries = ", ".join(f"{name} {version}" for name, version in engine.get("versions", {}).items())
        lines.append(f"answered by: {engine.get('engine')} on {engine.get('device', 'an unknown device')}")
        if libraries:
            lines.append(f"  libraries: {libraries}, Python {machine.get('python', 'unknown')}")
        if machine:
            lines.append(f"  machine: {machine['chip']}, {machine['memory'] / 2**30:.1f} GiB, {machine['system']}")
        if engine.get("weights_bytes"):
            lines.append(f"  weights: {engine['weights_bytes']} bytes")
    if without := told["answers without digests"]:
        lines.append(f"written without digests: {without} answers; `rashomon doctor RUN` says what that means")
    for judge in told["judges"]:
        lines.append(f"judged by: {judge}")
    return lines


def _harmless(toml: str) -> str:
    """TOML whose strings hold no character that could steer a terminal: TOML's own escapes stand for them."""
    return "".join(
        character
        if character == "\n" or clean(character) == character
        else f"\\u{ord(character):04x}"
        if ord(character) < 0x10000
        else f"\\U{ord(character):08x}"
        for character in toml
    )
