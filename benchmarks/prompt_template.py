"""Prompt sets from files: system and user text with places for a question's parts. Nothing in them is executed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.errors import SpecError, did_you_mean
from benchmarks.untrusted.safe_files import read_regular
from benchmarks.untrusted.safe_toml import parse_toml
from benchmarks.vocabulary import Part, Text, digest

PLACEHOLDERS: Mapping[str, str] = {
    "question": "the question",
    "image": "the image, or all images and other media",
    "text": "the text: the passage, the caption, the document",
    "options": "the options of a multiple choice, with the form of the answer",
    "abstention": "the words that say that the sources disagree, as the benchmark's judge reads them",
}
"""The places of a question's parts, and what is put there."""

SUFFIX = ".toml"
SHIPPED = Path(__file__).parent / "prompt_sets"

_KEYS = ("description", "rationale", "system", "user", "alone")
_SOURCES = ("image", "text")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|([{}])")
_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)|%([A-Za-z_][A-Za-z0-9_]*)%")
_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_LARGEST = 64 * 1024
_SHORTEST_SECRET = 12

Fields: TypeAlias = Mapping[str, Sequence[Part]]
"""The parts of an instance by the name of their place; a place without parts has no content."""


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt set: its texts, in which ``{question}`` and the other placeholders stand for an instance's parts.

    A line of ``user`` with a placeholder that an instance has no content for is left out, as ``{text}`` where a condition shows
    the image alone; if there is an ``alone``, it stands in place of ``user`` there. ``{{`` and ``}}`` are braces.

    Raises SpecError for anything else in braces, for a text without the question's or the image's place, and for texts that name
    or contain a key of the environment.
    """

    name: str
    user: str
    system: str = ""
    alone: str = ""
    description: str = ""
    rationale: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SpecError(
                f"{self.name!r} is no name for a prompt set; use at most 40 letters, digits, dots, hyphens and underscores."
            )
        for key in _KEYS:
            text = getattr(self, key)
            if not isinstance(text, str) or any(not (c.isprintable() or c in "\n\t") for c in text):
                raise SpecError(f"{key} of the prompt set {self.name} is not plain text; remove control characters.")
            self._check_secrets(key, text)
        for name in _names("system", self.system):
            if name != "abstention":
                raise SpecError(
                    f"the system text of the prompt set {self.name} has {{{name}}}, but it is the same for all questions; move "
                    "it into user."
                )
        for key, text in self._turns():
            names = list(_names(key, text))
            for name in ("question", "image"):
                if names.count(name) != 1:
                    raise SpecError(
                        f"the {key} text of the prompt set {self.name} has {{{name}}} {names.count(name)} times; put it in once, "
                        f"where {PLACEHOLDERS[name]} should stand."
                    )

    def _turns(self) -> list[tuple[str, str]]:
        return [("user", self.user), *([("alone", self.alone)] if self.alone.strip() else [])]

    @property
    def digest(self) -> str:
        """The sha256 of the texts that models see."""
        return digest([self.system, self.user, self.alone])

    def check_fits(self, benchmark: str, needed: Collection[str]) -> None:
        """Raise SpecError unless the benchmark takes prompt sets from files, and the text has all places that it ``needed``."""
        if not needed:
            raise SpecError(f"{benchmark} takes no prompt set from a file; choose one of its own.")
        for key, text in self._turns():
            present = set(_names(key, text))
            for name in needed:
                if name not in present:
                    raise SpecError(
                        f"the {key} text of the prompt set {self.name} has no {{{name}}}, which {benchmark} needs; put it in "
                        f"where {PLACEHOLDERS[name]} should stand."
                    )

    def system_text(self, abstention: str) -> str:
        """Return the system text; empty if there is none."""
        pieces = (
            piece.text for piece in _fill(self.system, {"abstention": (Text(abstention),)}) if isinstance(piece, Text)
        )
        return "".join(pieces).strip()

    def parts(self, fields: Fields) -> tuple[Part, ...]:
        """Return the user turn of an instance with these fields."""
        lines: list[list[Part]] = []
        is_alone = any(name in _SOURCES and not fields.get(name) for name in _names("user", self.user))
        text = self.alone if is_alone and self.alone.strip() else self.user
        for line in text.strip().splitlines():
            if any(not fields.get(name) for name in _names("user", line)):
                continue
            if line.strip() or (lines and lines[-1]):
                lines.append(list(_fill(line, fields)) if line.strip() else [])
        while lines and not lines[-1]:
            lines.pop()
        return join_parts(part for n, line in enumerate(lines) for part in ([Text("\n")] * bool(n) + line))

    def _check_secrets(self, key: str, text: str) -> None:
        for match in _VARIABLE.finditer(text):
            name = match[1] or match[2]
            if name in os.environ or _SECRET.search(name):
                raise SpecError(
                    f"{key} of the prompt set {self.name} names the environment variable {name}; prompts are stored and sent, "
                    "and nothing of the environment is put into them. Remove it."
                )
        for name, value in os.environ.items():
            if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET and value in text:
                raise SpecError(f"{key} of the prompt set {self.name} contains the value of {name}; remove it.")


Prompts: TypeAlias = str | PromptTemplate
"""A benchmark's own prompt set, by its name, or one from a file."""


def join_parts(parts: Iterator[Part] | Sequence[Part]) -> tuple[Part, ...]:
    """Return the parts with adjacent texts merged."""
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, Text) and isinstance(last := joined[-1], Text):
            joined[-1] = Text(last.text + part.text)
        else:
            joined.append(part)
    return tuple(joined)


def read_template(path: Path) -> PromptTemplate:
    """Return the prompt set in a file, named as the file. Raises SpecError."""
    try:
        data = read_regular(path, limit=_LARGEST)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a valid file name"
        raise SpecError(f"cannot read the prompt set {path}: {reason}.") from None
    try:
        values = parse_toml(data)
    except ValueError as error:
        raise SpecError(f"{path} is not valid TOML: {error}; `rashomon prompts NAME` prints an example.") from None
    for key, value in values.items():
        if key not in _KEYS:
            raise SpecError(f"{path.name} has an unknown key {key!r}; {did_you_mean(key, _KEYS)}")
        if not isinstance(value, str):
            raise SpecError(f"{key} in {path.name} is not text; write it in quotes.")
    if not values.get("user", "").strip():
        raise SpecError(f"{path.name} has no user text; `rashomon prompts NAME` prints an example.")
    return PromptTemplate(name=path.name.removesuffix(SUFFIX), **values)


@cache
def shipped_templates() -> Mapping[str, PromptTemplate]:
    """Return the prompt sets that come with Rashomon, by name."""
    return {path.stem: read_template(path) for path in sorted(SHIPPED.glob(f"*{SUFFIX}"))}


def find_template(name: str, own: Mapping[str, Any]) -> PromptTemplate:
    """Return the prompt set that ``name`` names: a file, by its path, or one that comes with Rashomon.

    ``own`` are the names of the benchmark's own sets, which a file must not repeat. Raises SpecError.
    """
    shipped = shipped_templates()
    if name in shipped:
        return shipped[name]
    if not name.endswith(SUFFIX):
        raise SpecError(
            f"there is no prompt set {name!r}; {did_you_mean(name, (*own, *shipped))} A file's name ends in {SUFFIX}."
        )
    template = read_template(Path(name))
    if template.name in own or template.name in shipped:
        raise SpecError(f"{template.name} is the name of another prompt set; rename {Path(name).name}.")
    return template


def _names(key: str, text: str) -> Iterator[str]:
    """Yield the placeholders in a text. Raises SpecError for anything else in braces, and for a single brace."""
    for match in _BRACES.finditer(text):
        if match[0] in ("{{", "}}"):
            continue
        if match[2]:
            raise SpecError(
                f"the {key} text of the prompt set has a single {match[2]}; write {match[2] * 2} for a brace."
            )
        name = match[1]
        if name not in PLACEHOLDERS:
            advice = (
                "nothing of the environment is put into prompts; remove it."
                if name.lstrip("$") in os.environ or _SECRET.search(name)
                else did_you_mean(name, PLACEHOLDERS)
            )
            raise SpecError(f"the {key} text of the prompt set has an unknown placeholder {{{name[:60]}}}; {advice}")
        yield name


def filled(text: str, fields: Fields) -> tuple[Part, ...]:
    """Return a text with the parts of ``fields`` in the places of its placeholders."""
    return join_parts(_fill(text, fields))


def _fill(text: str, fields: Fields) -> Iterator[Part]:
    place = 0
    for match in _BRACES.finditer(text):
        if match.start() > place:
            yield Text(text[place : match.start()])
        place = match.end()
        if match[0] in ("{{", "}}"):
            yield Text(match[0][0])
        else:
            yield from fields.get(match[1], ())
    if place < len(text):
        yield Text(text[place:])
