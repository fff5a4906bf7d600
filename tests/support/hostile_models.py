# ruff: noqa: E501
"""Model folders that are not what they say, made out of a tiny one."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[Path], None]

HUGE = 10**7
_LOOPS = (
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(10**12) %}{% endfor %}",
    "{% set l = range(99999)|list %}{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}",
    "{{ 'a' * 10**10 }}",
    "{{ 'a'|center(10**10) }}",
    "{{ 'a'.ljust(10**10) }}",
    "{{ '{:>9999999999}'.format(1) }}",
    "{{ '%9999999999d'|format(1) }}",
    "{{ [0] * 10**10 }}",
    "{{ 9**(9**9) }}",
    "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}",
    "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "{{ (messages|string * 10**6)|length * (messages|string * 10**6)|length }}{{ messages|string * 10**9 }}",
    "{{ 'a,' * 10**8 }}{{ ('a,' * 10**8).split(',')|length }}",
    "{{ raise_exception('x' * 10**10) }}",
)
_SIZES = (
    "num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
)  # fmt: skip
_VISION = (
    "depth",
    "hidden_size",
    "intermediate_size",
    "num_heads",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
)
_NUMBERS = (HUGE, 10**12, 2**63, -(10**9))


def hostile() -> dict[str, tuple[str, Change]]:
    """By name: which tiny model it is made from, "vlm" or "lm", and what is changed in a copy of it."""
    cases: dict[str, tuple[str, Change]] = {}
    for key in _SIZES:
        cases[f"text {key} of {HUGE}"] = "vlm", _config(HUGE * 1000 if "size" in key else HUGE, "text_config", key)
        cases[f"{key} of 10**12, text alone"] = "lm", _config(10**12, key)
    for key in _VISION:
        cases[f"vision {key} of 10**9"] = "vlm", _config(10**9, "vision_config", key)
    for value in _NUMBERS:
        cases[f"{value} layers, text alone"] = "lm", _config(value, "num_hidden_layers")
    for number, template in enumerate(_LOOPS):
        cases[f"template {number} of a model that sees"] = "vlm", _template(template)
        cases[f"template {number} of a model that reads"] = "lm", _template(template)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):
        cases[f"deep {name}"] = "vlm", _written(name, b'{"a":' * 50_000 + b"1" + b"}" * 50_000)
        cases[f"{name} of 300 MB"] = "vlm", _sparse(name, 300 * 10**6)
        cases[f"{name} that is a pipe"] = "vlm", _pipe(name)
        cases[f"{name} that is a list"] = "vlm", _written(name, b"[]")
        cases[f"{name} that is a device"] = "vlm", _link(name, "/dev/zero")
    processor: tuple[tuple[str, Any], ...] = (
        ("patch_size", 10**9), ("temporal_patch_size", 10**8), ("merge_size", 10**8), ("min_pixels", 10**12),
        ("size", {"shortest_edge": 10**12, "longest_edge": 10**13}), ("size", {"height": 10**6, "width": 10**6}),
    )  # fmt: skip
    for key, setting in processor:
        cases[f"processor {key} of {json.dumps(setting)[:30]}"] = "vlm", _json("preprocessor_config.json", setting, key)
    cases["weights that name a shape of 10**12"] = "lm", _header(lambda tensor: tensor.update(shape=[10**6, 10**6]))
    cases["weights with offsets beyond the file"] = (
        "lm",
        _header(lambda tensor: tensor.update(data_offsets=[0, 10**12])),
    )
    cases["weights with offsets that turn back"] = "lm", _header(lambda tensor: tensor.update(data_offsets=[100, 0]))
    cases["weights of a negative shape"] = "lm", _header(lambda tensor: tensor.update(shape=[-1, 64]))
    cases["weights of an unknown type"] = "lm", _header(lambda tensor: tensor.update(dtype="X9"))
    cases["weights with a header of 10**18 bytes"] = "lm", _bytes_at("model.safetensors", struct.pack("<Q", 10**18))
    cases["weights with a header of 80 MB"] = "lm", _long_header
    cases["an index that leads outside"] = "lm", _index("../outside.safetensors")
    cases["an index of a list"] = "lm", _written("model.safetensors.index.json", b'{"weight_map": []}')
    cases["an index of a missing file"] = "lm", _index("model-00002.safetensors")
    cases["weights that are a device"] = "lm", _link("model.safetensors", "/dev/zero")
    cases["1,000 experts in 1,000 layers"] = (
        "lm",
        _all(_config(1000, "num_experts"), _config(1000, "num_hidden_layers")),
    )
    twice = {"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}
    many = {"type": "Sequence", "normalizers": [twice] * 40}
    cases["a tokenizer that writes letters twice, 40 times"] = "lm", _tokenizer(normalizer=many)
    cases["a tokenizer that reads letters twice, 40 times"] = (
        "lm",
        _tokenizer(decoder={"type": "Sequence", "decoders": [{"type": "ByteLevel"}, *[twice] * 40]}),
    )
    long = {"type": "Replace", "pattern": {"Regex": ""}, "content": "e" * 10**6}
    cases["a tokenizer that puts a million letters everywhere"] = "lm", _tokenizer(normalizer=long)
    split = {"type": "Split", "pattern": {"Regex": "(?:[a-z ]|[a-z]|.)+(?!)"}, "behavior": "Isolated", "invert": False}
    cases["a tokenizer whose pattern tries everything"] = "lm", _tokenizer(pre_tokenizer=split)
    cases["a type that is a path"] = "lm", _config("../../../tmp/x", "model_type")
    cases["layer kinds without end"] = "lm", _config(["full_attention"] * 10**6, "layer_types")
    return cases


def make(source: Path, folder: Path, change: Change) -> Path:
    shutil.copytree(source, folder)
    change(folder)
    return folder


def _all(*changes: Change) -> Change:
    def apply(folder: Path) -> None:
        for change in changes:
            change(folder)

    return apply


def _config(value: Any, *path: str) -> Change:
    return _json("config.json", value, *path)


def _json(name: str, value: Any, *path: str) -> Change:
    def apply(folder: Path) -> None:
        document: Any = json.loads((folder / name).read_text())
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        (folder / name).write_text(json.dumps(document))

    return apply


def _template(template: str) -> Change:
    def apply(folder: Path) -> None:
        for file in (*folder.glob("*.jinja"), folder / "chat_template.json"):
            file.unlink(missing_ok=True)
        _json("tokenizer_config.json", template, "chat_template")(folder)

    return apply


def _tokenizer(**parts: Any) -> Change:
    """Change the parts of a tokenizer, which is then read as its file says."""
    return _all(
        _json("tokenizer_config.json", "PreTrainedTokenizerFast", "tokenizer_class"),
        *(_json("tokenizer.json", part, name) for name, part in parts.items()),
    )


def _written(name: str, data: bytes) -> Change:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return apply


def _sparse(name: str, size: int) -> Change:
    return lambda folder: os.truncate(folder / name, size)


def _pipe(name: str) -> Change:
    def apply(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return apply


def _link(name: str, target: str) -> Change:
    def apply(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return apply


def _index(name: str) -> Change:
    return _written("model.safetensors.index.json", json.dumps({"weight_map": {"a": name}}).encode())


def _bytes_at(name: str, data: bytes) -> Change:
    def apply(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.write(data)

    return apply


def _header(change: Callable[[dict[str, Any]], None]) -> Change:
    """Change the first tensor's entry in the header of the weights."""

    def apply(folder: Path) -> None:
        file = folder / "model.safetensors"
        data = file.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + length])
        change(header[next(name for name in header if name != "__metadata__")])
        text = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return apply


def _long_header(folder: Path) -> None:
    entry = {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}
    text = json.dumps({str(number): entry for number in range(1_300_000)}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
