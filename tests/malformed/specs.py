"""Malformed run specs and prompt sets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.malformed.case import Case, Make, cases

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

_EXPECTED = r"""
limit text | 2 | spec.toml: seed = 'one': give a whole number from 0 to 4,294,967,295
seed inf | 2 | spec.toml: seed = inf: give a whole number from 0 to 4,294,967,295
seed nan | 2 | spec.toml: seed = nan: give a whole number from 0 to 4,294,967,295
seed of 5,000 digits | 2 | spec.toml is not valid TOML: a number has thousands of digits
seed beyond 64 bits | 2 | spec.toml: seed = 1180591620717411303424: give a whole number from 0 t
seed negative | 2 | spec.toml: seed = -1: give a whole number from 0 to 4,294,967,295
seed date | 2 | spec.toml is not valid TOML: Invalid date or datetime (at line 4, colu
seed moment | 2 | spec.toml: seed = datetime.datetime(2024, 2, 28, 10, 0, tzinfo=datetim
seed list | 2 | spec.toml: seed = [1, 2]: give a whole number from 0 to 4,294,967,295
seed true | 2 | spec.toml: seed = True: give a whole number from 0 to 4,294,967,295
exact text | 2 | spec.toml: exact = 'yes': give true or false
exact number | 2 | spec.toml: exact = 1: give true or false
judge number | 2 | spec.toml: judge = 3: give a
judge mixed | 2 | spec.toml: judge.1 = 3: give a
judge empty | 2 | spec.toml: judge.0 = '':
judge list of lists | 2 | spec.toml: judge.0 = ['match']: give a
judge of 100,000 | 2 | there is no judge 'j0'; known are match. A model judges by its name or
judge escape | 2 | there is no judge '\x1b[2J\u202ematch'; did you mean 'match'? A model
conditions number | 2 | spec.toml: conditions.0 = 1: give a
conditions unknown | 2 | there is no condition '[bold]image[/bold]'; did you mean 'image-only'?
conditions NUL | 2 | there is no condition 'image\x00only'; did you mean 'image-only'?
strata text | 2 | spec.toml: strata = 'subject': give a
strata number | 2 | spec.toml: strata.subject = 3: give a
strata nested | 2 | spec.toml: strata.subject = {'a': {'b': 1}}: give a
strata unknown | 2 | no stratum '\x1b]8;;x'; known are correct, manual_check, source, type
name path | 2 | spec.toml: name = '../../outside': use letters from a to z, digits, '
name absolute | 2 | spec.toml: name = '
name NUL | 2 | spec.toml: name = 'a\x00b': use letters from a to z, digits, '.', '_'
name long | 2 | spec.toml: name = 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
name dots | 2 | spec.toml: name = '..': use letters from a to z, digits, '.', '_' and
name newline | 2 | spec.toml: name = 'a\nb': use letters from a to z, digits, '.', '_' an
score unknown | 2 | spec.toml: score = 'fast': input should be 'generate' or 'likelihood'
protocol list | 2 | spec.toml: protocol = ['direct']: input should be 'direct', 'read-then
samples huge | 2 | spec.toml: samples = 1000000000: give a whole number from 2 to 100
repeats negative | 2 | spec.toml: repeats = -3: give a whole number from 1 to 100
repeats float | 2 | spec.toml: repeats = 1.5: give a whole number from 1 to 100
kv_bits odd | 2 | spec.toml: kv_bits = 3: give 8 or 4
restarts huge | 2 | spec.toml: restarts = 9223372036854775808: give a whole number from 0
workers long | 2 | spec.toml: workers = 'wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
decoding list | 2 | spec.toml: decoding = [1]: give a table, such as {key = 1}
decoding unknown | 2 | spec.toml: unknown key 'decoding.temprature'; did you mean 'temperatur
temperature inf | 2 | spec.toml: decoding.temperature = inf: give a number from 0 to 10
temperature text | 2 | spec.toml: decoding.temperature = 'hot': give a number from 0 to 10
top_p nan | 2 | spec.toml: decoding.top_p = nan: give a number above 0 to 1
max_tokens zero | 2 | spec.toml: decoding.max_tokens = 0: give a whole number from 1 to 1,00
max_tokens huge | 2 | spec.toml: decoding.max_tokens = 1000000000000000000000000000000: give
max_pixels negative | 2 | spec.toml: decoding.max_pixels = -1: give a whole number from 1,024 to
api ceiling text | 2 | spec.toml: api.token_ceiling = 'lots': give a whole number from 1 to 1
api price infinite | 2 | spec.toml: api.input_price = inf: give a number from 0 to 1,000,000,00
api key | 2 | spec.toml: unknown key 'api.key'; known are token_ceiling, cost_ceilin
data number | 2 | spec.toml: data = 3: give a text
data NUL | 2 | 'a\x00b' contains characters that no path can have; write another
data long | 2 | 'd/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d
data file | 2 | /spec.toml is not a built benchmark
data device | 2 | /dev/zero is not a built benchmark
data of nobody | 2 | '
adapter list | 2 | spec.toml: adapter = ['a']: give a text
prompt_set missing file | 2 | cannot read the prompt set
prompt text | 2 | spec.toml: prompt = 'Look.':
unknown key | 2 | spec.toml: unknown key 'modle'; did you mean 'model'?
key with escape | 2 | spec.toml: unknown key '\x1b[31mred'; known are benchmark, model, adap
key with markup | 2 | spec.toml: unknown key '[link=x]seed[/link]'; known are benchmark, mod
include | 2 | spec.toml: unknown key 'include'; did you mean 'judge'?
key twice | 2 | spec.toml is not valid TOML: Cannot overwrite a value (at line 4, colu
table twice | 2 | spec.toml is not valid TOML: Cannot declare ('api',) twice (at line 5,
key of 10,000 parts | 2 | spec.toml is not valid TOML: a key has more than 20 parts
lists nested | 2 | spec.toml is not valid TOML: it is nested too deeply
tables nested | 2 | spec.toml is not valid TOML: it is nested too deeply
unfinished text | 2 | spec.toml is not valid TOML: Illegal character '\n' (at line 4, column
half surrogate | 2 | spec.toml is not valid TOML: Escaped character is not a Unicode scalar
empty | 2 | spec.toml: 'benchmark' is missing; set it in the spec or with --benchm
only a comment | 2 | spec.toml: 'benchmark' is missing; set it in the spec or with --benchm
JSON | 2 | spec.toml is not valid TOML: Invalid statement (at line 1, column 1);
YAML | 2 | spec.toml is not valid TOML: Expected '=' after a key in a key/value p
UTF-16 | 2 | spec.toml is not valid TOML: it is not text in UTF-8
byte order mark | 0 |
latin-1 | 2 | spec.toml is not valid TOML: it is not text in UTF-8
NUL bytes | 2 | spec.toml is not valid TOML: Invalid statement (at line 4, column 1)
2 MB | 2 | cannot read the spec spec.toml: it is larger than 1,024 KiB
binary | 2 | spec.toml is not valid TOML: it is not text in UTF-8
models of 100,000 | 2 | cannot read the spec spec.toml: it is larger than 1,024 KiB
no model | 2 | spec.toml: model = []: name at least one
carriage returns | 2 | spec.toml is not valid TOML: Expected newline or end of document after
missing | 2 | cannot read the spec spec.toml: No such file or directory; name a TOML
folder | 2 | cannot read the spec spec.toml: it is a folder
FIFO | 2 | cannot read the spec spec.toml: it is a FIFO
link to a device | 2 | cannot read the spec spec.toml: it is a device
link to itself | 2 | cannot read the spec spec.toml: Too many levels of symbolic links
link to nothing | 2 | cannot read the spec spec.toml: No such file or directory
unreadable link | 2 | cannot read the spec spec.toml: Input/output error
prompt file empty | 2 | odd.prompt.toml has no user text; `rashomon prompts NAME` prints an ex
prompt file number | 2 | odd.prompt.toml has an unknown key 'prompt'; known are description, ra
prompt file UTF-16 | 2 | /odd.prompt.toml is not valid TOML: it is not text in UTF-8
prompt file nested | 2 | /odd.prompt.toml is not valid TOML: it is nested too deeply; `rashomon
"""


def all_cases() -> list[Case]:
    """Return the cases with what a user gets for each."""
    return cases(_make, _EXPECTED)
