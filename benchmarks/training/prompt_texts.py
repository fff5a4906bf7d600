"""Texts of prompts and questions of tests, and the templates that make texts of different examples equal."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.hash_collections import hash64
from benchmarks.training.training_set import ChatRow
from benchmarks.vocabulary import Instance, Text

_SHORTEST_PROMPT = 20  # characters
_SHORTEST_QUESTION = 4  # words, of a question that is searched for within a prompt
_MOST_NUMBERS = 3
"""The most numbers of a sentence that two examples may state alike by chance; a document that states more is its own."""

_WORD = re.compile(r"[0-9a-z]+|[^\W0-9a-z_]")
"""A word in Latin letters, or a letter of another script, which may have no spaces between words."""
_NUMBER = re.compile(r"\d+(?:[.,:/'-]\d+)*")
_ANY = " 0 "
"""The stand-in for a number, or for an answer, in a template."""


class UniqueTexts:
    """Texts of prompts, each with its example; one that several examples share is a template."""

    def __init__(self) -> None:
        self._owners = Owners()

    def add(self, text: str, owner: str) -> None:
        """Add the prompt of an example, unless it is short."""
        if len(text) >= _SHORTEST_PROMPT:
            self._owners.add(text_key(text), owner)

    def owner(self, text: str) -> str:
        """Return the only example with this prompt; "" for a template and an unknown one."""
        return self._owners.get(text_key(text)) or ""

    def keys(self) -> Iterator[int]:
        """Yield the key of each prompt that is no template."""
        return self._owners.unique()


class Owners:
    """Keys of texts, each with the only example that has it, or "" if several have."""

    def __init__(self) -> None:
        self._owners: dict[int, str] = {}

    def add(self, key: int, owner: str) -> None:
        """Add the key of a text of an example."""
        if self._owners.setdefault(key, owner) != owner:
            self._owners[key] = ""

    def get(self, key: int) -> str | None:
        """Return the only example with a key, "" if there are several, None if there is none."""
        return self._owners.get(key)

    def is_of_another(self, key: int, owner: str) -> bool:
        """Return whether an example other than ``owner`` has a key."""
        return self._owners.get(key, owner) != owner

    def unique(self) -> Iterator[int]:
        """Yield the keys of one example only."""
        return (key for key, owner in self._owners.items() if owner)


class Form(NamedTuple):
    """The forms of a prompt, as keys: its question with any numbers, and the rest with any answer."""

    question: int
    sentence: int

    @classmethod
    def of(cls, text: str, question: str, answers: Iterable[str]) -> Form:
        """Return the forms of a prompt that asks ``question``, where its answer may be any of ``answers``.

        The rest of a prompt with many numbers is taken as it is: a document that states all of them is no sentence from a
        template.
        """
        rest = _normal(text.replace(question, " ") if question else text)
        for answer in sorted(filter(None, map(_normal, answers)), key=len, reverse=True):
            rest = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", _ANY, rest)
        if len(_NUMBER.findall(rest)) <= _MOST_NUMBERS:
            rest = _NUMBER.sub(_ANY, rest)
        return cls(_words_key(_NUMBER.sub(_ANY, _normal(question))), _words_key(rest))


class Templates:
    """The forms of prompts of examples, by which those that a template made are known."""

    def __init__(self) -> None:
        self._questions, self._sentences = Owners(), Owners()

    def add(self, form: Form, owner: str) -> None:
        """Add the forms of a prompt of an example."""
        self._questions.add(form.question, owner)
        self._sentences.add(form.sentence, owner)

    def has_sentence(self, form: Form, owner: str) -> bool:
        """Return whether an example other than ``owner`` has the same sentence, whatever its question and answer."""
        return self._sentences.is_of_another(form.sentence, owner)

    def has_question(self, form: Form, owner: str) -> bool:
        """Return whether an example other than ``owner`` asks the same question, whatever its numbers."""
        return self._questions.is_of_another(form.question, owner)


class IndexedPrompt(NamedTuple):
    """A prompt that one test example has: the example, a name for it, and the forms of the prompt."""

    example: str
    name: str
    form: Form


class PromptIndex:
    """The prompts of test examples, without those that several of them share word by word."""

    def __init__(self) -> None:
        self.templates = Templates()
        self._prompts: dict[int, IndexedPrompt | None] = {}

    def add(self, instance: Instance, name: str, example: str) -> None:
        """Add the prompt of an instance of a test example, under a name."""
        text = instance_text(instance)
        form = Form.of(text, instance.question, (value for values in instance.references.values() for value in values))
        self.templates.add(form, example)
        if len(text) < _SHORTEST_PROMPT:
            return
        key, prompt = text_key(text), IndexedPrompt(example, name, form)
        known = self._prompts.setdefault(key, prompt)
        if known is None or known.example != example:
            self._prompts[key] = None

    def __contains__(self, text: str) -> bool:
        return text_key(text) in self._prompts

    def find(self, text: str) -> IndexedPrompt | None:
        """Return the test prompt with these words; None if there is none, or several examples share it."""
        return self._prompts.get(text_key(text))


class QuestionIndex:
    """Questions of tests, which are searched for within prompts word by word; those of several examples are a template's."""

    def __init__(self) -> None:
        self._tests: dict[int, str] = {}
        self._owners = Owners()
        self._lengths: defaultdict[int, set[int]] = defaultdict(set)
        """The numbers of words of the questions that begin with the same ones."""

    def add(self, question: str, test: str, example: str) -> None:
        """Add the question of a test, which belongs to an example."""
        words = _words(question)
        if words:
            self._tests.setdefault(hash(words), test)
            self._owners.add(hash(words), example)
        if len(words) >= _SHORTEST_QUESTION:
            self._lengths[hash(words[:_SHORTEST_QUESTION])].add(len(words))

    def find(self, question: str, prompts: Sequence[str]) -> str:
        """Return the test with this question, or with one that is part of the prompts; "" if there is none."""
        return self._test(_words(question)) or next(filter(None, map(self._within, prompts)), "")

    def _test(self, words: tuple[str, ...]) -> str:
        return self._tests.get(hash(words), "") if self._owners.get(hash(words)) else ""

    def _within(self, prompt: str) -> str:
        words = _words(prompt)
        for start in range(len(words) - _SHORTEST_QUESTION + 1):
            for length in self._lengths.get(hash(words[start : start + _SHORTEST_QUESTION]), ()):
                if test := self._test(words[start : start + length]):
                    return test
        return ""


def example_name(row: ChatRow) -> str:
    """Return the example of a row; rows that do not state theirs are one example if they have the same prompt and answer."""
    return row.group or f"answer {row.target}"


def prompt_texts(row: ChatRow) -> list[str]:
    """Return the texts of a row that could be a test's prompt: all its turns, and each by itself; no system message."""
    return list(dict.fromkeys(("\n".join(row.turns), *row.turns)))


def instance_text(instance: Instance) -> str:
    """Return the texts of an instance's prompt, in order."""
    return "\n".join(part.text for part in instance.parts if isinstance(part, Text))


def text_key(text: str) -> int:
    """Return a hash of a text's words."""
    return _words_key(_normal(text))


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _words_key(normal: str) -> int:
    return hash64(" ".join(_WORD.findall(normal)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(_normal(text)))
