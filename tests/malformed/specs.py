"""Malformed run specs and prompt sets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.malformed.case import Make

_PLAIN = 'benchmark = "cmc-bench"\nmodel = ["policy:always-image"]\nlimit = 1\n'
_DEEP = 5_000
_HUGE = "9" * 5_000

_ADDED = {
    "limit text": 'seed = "one"',
    "seed inf": "seed = inf",
    "seed nan": "seed = nan",
    "seed of 5,000 digits": f"seed = {_HUGE}",
    "seed beyond 64 bits": f"seed = {2**70}",
    "seed negative": "seed = -1",
    "seed date": "seed = 2024-02-30",
    "seed moment": "seed = 2024-02-28T10:00:00Z",
    "seed list": "seed = [1, 2]",
    "seed true": "seed = true",
    "exact text": 'exact = "yes"',
    "exact number": "exact = 1",
    "judge number": "judge = 3",
    "judge mixed": 'judge = ["match", 3]',
    "judge empty": 'judge = ""',
    "judge list of lists": 'judge = [["match"]]',
    "judge of 100,000": "judge = [" + ",".join(f'"j{n}"' for n in range(50_000)) + "]",
    "judge escape": 'judge = "\\u001b[2J\\u202ematch"',
    "conditions number": "conditions = [1]",
    "conditions unknown": 'conditions = ["[bold]image[/bold]"]',
    "conditions NUL": 'conditions = ["image\\u0000only"]',
    "strata text": 'strata = "subject"',
    "strata number": "strata = {subject = 3}",
    "strata nested": "strata = {subject = {a = {b = 1}}}",
    "strata unknown": 'strata = {"\\u001b]8;;x" = "a"}',
    "name path": 'name = "../../outside"',
    "name absolute": 'name = "/tmp/x"',
    "name NUL": 'name = "a\\u0000b"',
    "name long": f'name = "{"n" * 100_000}"',
    "name dots": 'name = ".."',
    "name newline": 'name = "a\\nb"',
    "score unknown": 'score = "fast"',
    "protocol list": 'protocol = ["direct"]',
    "samples huge": "samples = 1000000000",
    "repeats negative": "repeats = -3",
    "repeats float": "repeats = 1.5",
    "kv_bits odd": "kv_bits = 3",
    "restarts huge": f"restarts = {2**63}",
    "workers long": f'workers = "{"w" * 10_000}"',
    "decoding list": "decoding = [1]",
    "decoding unknown": "decoding = {temprature = 1}",
    "temperature inf": "decoding = {temperature = inf}",
    "temperature text": 'decoding = {temperature = "hot"}',
    "top_p nan": "decoding = {top_p = nan}",
    "max_tokens zero": "decoding = {max_tokens = 0}",
    "max_tokens huge": f"decoding = {{max_tokens = {10**30}}}",
    "max_pixels negative": "decoding = {max_pixels = -1}",
    "api ceiling text": 'api = {token_ceiling = "lots"}',
    "api price infinite": "api = {input_price = inf}",
    "api key": 'api = {key = "sk-0123456789"}',
    "data number": "data = 3",
    "data NUL": 'data = "a\\u0000b"',
    "data long": f'data = "{"d/" * 5_000}"',
    "data file": 'data = "spec.toml"',
    "data device": 'data = "/dev/zero"',
    "data of nobody": 'data = "~nobody-of-this-name/x"',
    "adapter list": 'adapter = ["a"]',
    "prompt_set missing file": 'prompt_set = "none.prompt.toml"',
    "prompt text": 'prompt = "Look."',
    "unknown key": 'modle = "x"',
    "key with escape": '"\\u001b[31mred" = 1',
    "key with markup": '"[link=x]seed[/link]" = 1',
    "include": 'include = "/etc/passwd"',
    "key twice": "limit = 2",
    "table twice": "[api]\n[api]",
    "key of 10,000 parts": ".".join("a" * 10_000) + " = 1",
    "lists nested": "seed = " + "[" * _DEEP + "]" * _DEEP,
    "tables nested": "seed = " + "{a = " * _DEEP + "1" + "}" * _DEEP,
    "unfinished text": 'name = "a',
    "half surrogate": 'name = "\\ud800"',
}

_WHOLE: dict[str, bytes] = {
    "empty": b"",
    "only a comment": b"# nothing",
    "JSON": b'{"benchmark": "cmc-bench", "model": ["policy:always-image"]}',
    "YAML": b"benchmark: cmc-bench\nmodel: policy:always-image\n",
    "UTF-16": _PLAIN.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + _PLAIN.encode(),
    "latin-1": _PLAIN.encode() + b'name = "caf\xe9"\n',
    "NUL bytes": _PLAIN.encode() + b"\0" * 100,
    "2 MB": _PLAIN.encode() + b"# x\n" * 600_000,
    "binary": bytes(range(256)) * 40,
    "models of 100,000": b'benchmark = "cmc-bench"\nmodel = [' + b'"policy:always-image",' * 60_000 + b"]\n",
    "no model": b'benchmark = "cmc-bench"\nmodel = []\n',
    "carriage returns": _PLAIN.replace("\n", "\r").encode(),
}


def _link(path: Path, target: str) -> None:
    path.symlink_to(target)


_PLACES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "folder": lambda path: path.mkdir(),
    "FIFO": lambda path: os.mkfifo(path),
    "link to a device": lambda path: _link(path, "/dev/zero"),
    "link to itself": lambda path: _link(path, path.name),
    "link to nothing": lambda path: _link(path, "none"),
    "unreadable link": lambda path: _link(path, "/proc/self/mem"),
}

_PROMPTS: dict[str, bytes] = {
    "prompt file empty": b"",
    "prompt file number": b"prompt = 3\n",
    "prompt file UTF-16": 'prompt = "x"\n'.encode("utf-16"),
    "prompt file nested": b"a = " + b"[" * _DEEP + b"]" * _DEEP,
}


def _make(name: str) -> Make:
    def make(home: Path) -> list[str]:
        spec = home / "spec.toml"
        if name in _PLACES:
            _PLACES[name](spec)
        elif name in _PROMPTS:
            (home / "odd.prompt.toml").write_bytes(_PROMPTS[name])
            spec.write_text(_PLAIN + 'prompt_set = "odd.prompt.toml"\n')
        else:
            spec.write_bytes(_WHOLE[name] if name in _WHOLE else f"{_PLAIN}{_ADDED[name]}\n".encode())
        return ["batch", "spec.toml", "--display", "none"]

    return make


NAMES = (*_ADDED, *_WHOLE, *_PLACES, *_PROMPTS)
