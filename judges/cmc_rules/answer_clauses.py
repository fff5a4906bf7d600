"""The parts of an answer that count: its final part, and the clauses of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.untrusted.safe_json import OutsideJSONError, parse_json
from benchmarks.values.clean_text import clean, fold
from judges.cmc_rules import cue_words as cues

_HEAD, _TAIL = 4_000, 8_000
"""Characters kept of a longer answer: a choice is at its beginning or at its end."""
_LONGEST_CLAUSE = 400
_MOST_CLAUSES = 300

_FENCED = re.compile(r"```(?:\w+)?[ \t]*\r?\n(.*?)(?:\n[ \t]*```|$)", re.DOTALL)
_FIELD_NAMES = """
finalanswer answer final choice result value response prediction option selectedoption antwort respuesta réponse 答案
"""
_FIELDS = tuple(_FIELD_NAMES.split())
_FIELD_NAME_MARKS = re.compile(r"[\W_]")
_TAG = re.compile(r"<(final_?answer|answer|final|result)>(.*?)(?:</\1>|$)", re.IGNORECASE | re.DOTALL)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s{0,8}\{((?:[^{}]|\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}\}){1,400})\}")
_NOT = (
    (re.compile(r"\b[Cc]an(?:'t| not)\b"), "cannot"),
    (re.compile(r"\b[Ww]on't\b"), "will not"),
    (re.compile(r"(?<=[a-z])n't\b"), " not"),
)
_STRUCK = re.compile(r"~~(?=\S)[^~\n]{1,400}~~|<(s|del|strike)>[^<\n]{0,400}</\1>", re.IGNORECASE)
_EMPHASIS = re.compile(r"\*\*|__|~~|`|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_BULLET = re.compile(r"^ ?(?:[-*•▪►>#+]+ |#+ ?)+", re.MULTILINE)
_NUMBERED = re.compile(r"^ ?[0-9]{1,2}[.)] (?=\S)", re.MULTILINE)
_CITATION = re.compile(r"(?<=\S) ?\[[0-9]{1,2}(?:, ?[0-9]{1,2})*\](?!\w)")
_ROW = re.compile(r"^ ?\|(.*)\| ?$", re.MULTILINE)
_HEADING = re.compile(r"^\W*(?:final |short )?answer\W*\n+", re.IGNORECASE | re.MULTILINE)
_TO_JUDGE = re.compile(
    r"\b(?:judge|grader|rater|evaluator|(?:label|rate|mark|score|grade) (?:this|it|me|my))\b", re.IGNORECASE
)
_SAID = re.compile(r"[^.!?\n]+[.!?]?")
_RULE_LINE = re.compile(r"^[ |:-]+$", re.MULTILINE)
_TAGS = re.compile(r"</?[a-zA-Z_][^<>]{0,80}>")
_ABBREVIATION = re.compile(
    r"\b(?:([a-zA-Z])\.(?=[a-zA-Z]\.)|(?<=\.)([a-zA-Z])\.|(i\.e|e\.g|approx|vs|ca|fig|dr|mr|mrs|ms|prof|st|mt|etc"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|p|inc|ltd)\.(?=\s*\S))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"\n+|(?<=[.!?])[\"')\]]*\s+|(?<=[.!?])(?=[^\W\d])|;\s+|(?<=[。！？])")
_CLAUSE = re.compile(
    rf"\s*—\s*|(?<![0-9%])\s+-\s+(?![0-9])|[,:]?\s+(?=(?:{cues.LEADS})(?!\w))"
    r"|,\s+(?=(?:which|who|not|as|with|then|instead|the|it|i|this|that)\b)|(?<=[，,])(?=(?:但|而|因此|所以))"
)
_OPENING = re.compile(rf"\W*(?:{cues.LEADS}|and|finally|overall|also|even)\W*")
"""A word that is no clause of its own."""
_LEAD = re.compile(rf"\W*((?:and )?(?:{cues.LEADS}))(?!\w)")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of an answer, cleaned, with its case.

    ``folded`` has the same length where ``text`` is in Latin letters; ``lead`` is the conjunction that it begins with, or "".
    """

    text: str
    folded: str
    sentence: int
    lead: str

    @property
    def concludes(self) -> bool:
        """The clause announces the answer."""
        return self.holds(cues.ANSWER) or cues.CONCLUDING.match(self.folded.lstrip(" \"'(-.")) is not None

    def holds(self, table: re.Pattern[str]) -> bool:
        """Return whether an entry of a table of cues occurs in it."""
        return table.search(self.folded) is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the rules read it: the part that is marked as final, if there is one, and the clauses of all."""

    text: str
    final: str | None
    """The marked part, as it is written; "" if the answer marks nothing as its answer."""
    flags: bool
    """A field of a structured answer says that the sources conflict."""
    clauses: tuple[Clause, ...]


def read_answer(answer: str) -> Answer:
    """Return what counts in an answer without its reasoning."""
    if len(answer) > _HEAD + _TAIL:
        answer = answer[:_HEAD] + "\n" + answer[-_TAIL:]
    final, flags, lines = _structured(answer)
    answer = lines or answer
    if final is None and (marked := _BOXED.findall(answer) or [tag[1] for tag in _TAG.findall(answer)]):
        values = list(dict.fromkeys(" ".join(clean(value).split()) for value in marked))
        is_clear = len(values) == 1 or not _BOXED.search(answer) or "final" in answer.casefold()
        after = answer.rpartition(marked[-1])[2] if marked[-1] else answer
        if marked[-1] and is_clear and len(after) < 200 and not cues.REVISIONS.search(fold(after)):
            final = values[-1]
        answer = _BOXED.sub(r"\1", answer)
    answer = _TAGS.sub("\n", answer) if "</" in answer and not _STRUCK.search(answer) else answer
    return Answer(answer, final, flags, tuple(split_clauses(answer)))


def _structured(answer: str) -> tuple[str | None, bool, str]:
    """Return the answer field of a JSON value, whether another field says that there is a conflict, and all fields as lines.

    The field is None where there is none, the lines are empty where the answer is no JSON.
    """
    for source in (*_FENCED.findall(answer)[-1:], answer):
        try:
            value = parse_json(source.strip(), 20_000)
        except OutsideJSONError:
            continue
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list):
            return None, False, "\n".join(_lines(value))
        if isinstance(value, dict):
            fields = _fields(value)
            flags = any("conflict" in key and fields[key] not in (False, None, "", "no", "false") for key in fields)
            name = next((name for name in _FIELDS if name in fields), None)
            return None if name is None else _as_text(fields[name]), flags, "\n".join(_lines(value))
    return None, False, ""


def _lines(value: object, key: str = "") -> Iterator[str]:
    """Yield the fields of a JSON value as "key: value"."""
    if isinstance(value, dict):
        for name, field in value.items():
            yield from _lines(field, name)
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, key)
    else:
        yield f"{key.replace('_', ' ')}: {value}" if key else str(value)


def _fields(value: Mapping[str, object]) -> dict[str, object]:
    return {_FIELD_NAME_MARKS.sub("", key).casefold(): field for key, field in value.items()}


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(map(_as_text, value))
    if isinstance(value, dict):
        fields = _fields(value)
        named = [fields[name] for name in _FIELDS if name in fields] or fields.values()
        return " ".join(map(_as_text, named))
    return (
        "" if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value).replace("_", " ")
    )


def split_clauses(answer: str) -> list[Clause]:
    """Return the clauses of an answer, in order and without Markdown."""
    struck = _STRUCK.sub(" ", answer)
    text = struck if any(map(str.isalnum, struck)) else answer
    text = plain_lines(clean(_ABBREVIATION.sub(lambda m: m[0][:-1], text)))
    text = _BULLET.sub("", _EMPHASIS.sub("", _RULE_LINE.sub("", _CITATION.sub("", text))))
    if len(_NUMBERED.findall(text)) > 1:
        text = _NUMBERED.sub("", text)
    clauses: list[Clause] = []
    for number, sentence in enumerate(_SENTENCE.split(text)):
        for part in _parts(sentence):
            if len(clauses) == _MOST_CLAUSES:
                return clauses
            before = clauses[-1] if clauses and clauses[-1].sentence == number else None
            if before and " " not in before.text and _OPENING.fullmatch(before.folded):
                clauses[-1] = clause_of(f"{before.text}, {part}", number)
            else:
                clauses.append(clause_of(part, number))
    return clauses


def plain_lines(text: str) -> str:
    """Return a cleaned text with table rows and headings as "label: value", without what is said to whoever judges it."""
    text = _ROW.sub(lambda m: ": ".join(cell.strip() for cell in m[1].split("|") if cell.strip()), text)
    text = _HEADING.sub("Answer: ", text)
    return _SAID.sub(lambda m: "" if _TO_JUDGE.search(m[0]) else m[0], text) if _TO_JUDGE.search(text) else text


def _parts(sentence: str) -> Iterator[str]:
    start = 0
    for cut in [*_CLAUSE.finditer(fold(sentence)), None]:
        end = cut.start() if cut else len(sentence)
        for at in range(start, end, _LONGEST_CLAUSE):
            part = sentence[at : min(end, at + _LONGEST_CLAUSE)].strip(" ,:")
            if part.strip(" .,:!?\"'()[]…|"):
                yield part
        start = cut.end() if cut else end


def clause_of(text: str, sentence: int = 0) -> Clause:
    """Return a cleaned text as one clause."""
    for pattern, words in _NOT:
        text = pattern.sub(words, text)
    folded = fold(text)
    lead = _LEAD.match(folded)
    return Clause(text, folded, sentence, lead[1].strip() if lead else "")
