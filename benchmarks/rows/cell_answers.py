"""Answers and options as cells hold them: lists, alternatives, numbers, letters, objects and values of formulas."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import takewhile
from string import ascii_lowercase

from benchmarks.rows.number_formats import NOT_DISPLAYED
from benchmarks.rows.placeholder_texts import is_placeholder, is_unanswerable
from benchmarks.rows.reader_types import Fields, RowProblem, parse_literal
from benchmarks.values import compare
from benchmarks.values.clean_text import clean, fold
from benchmarks.values.dates_and_times import find_moments
from benchmarks.values.question_facts import read_question

OBJECT = "a value is an object; write the value itself, or name its key"
NESTED = "a value is a list of lists or objects; write one list of values"
OPEN_LIST = "a value opens a list with a bracket and does not close it; close it, or write the value alone"
UNCLEAR_COMMAS = "it is unclear which commas of a list separate its values; separate them by semicolons"
LONG_LIST = "a value is a list of more than 40 values; write fewer"
ONE_ASKED = "the answer is a list of different values, and the question asks for one; write the right one"
NO_MAJORITY = "the answers differ, and none has a majority; write the right one"
UNCLEAR_LIST = (
    "it is unclear whether the answer lists several values or spellings of one; write one, or ask for several"
)
FORMULA_ERROR = "a cell is the error of a formula; correct it, and save the table from your spreadsheet"
NOT_CALCULATED = "the formula of a cell has no stored value; open the table in your spreadsheet, and save it"
NUMBER_FORMAT = (
    "a cell's number format may display another value than it holds; choose a plain one, or write the value as text"
)
SEVERAL_OPTIONS = "the answer names several options; write a row whose answer is one of them"
PLACEHOLDER = "the answer is a placeholder; write the right answer"
DATE = "the answer is a date; write the value that the question asks for, in a cell of text"
UNANSWERABLE = "the answer says that the sources have none; ask for something that they state"
NO_OPTIONS = "the answer is a letter, and the row has no options; write the options, or the answer itself"
LETTER_OR_OPTION = "it is unclear whether the answer is a letter or the text of an option; write the option's text"

NO_VALUE = "#NOT CALCULATED!"
"""The text of a cell whose formula has not been calculated."""

ERROR = "#VALUE!"
"""The text of a cell whose value is an error of any kind."""

_ERROR = re.compile(r"#(?:REF|DIV/0|VALUE|NAME|NUM|NULL|SPILL|CALC|FIELD|BEZUG|WERT|ZAHL|NULL)[!?]|#N/A|#NV|Err:\d{3}")
_LONGEST = 10_000
_MOST_ITEMS = 40
_STRINGS = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_ARRAY = re.compile(r"""\[\s*(?:'[^']*'|"[^"]*")(?:\s+(?:'[^']*'|"[^"]*"))+\s*\]""")
_DOUBLED_QUOTES = re.compile(r"\[\s*'(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*\s*\]")
_BARE_LIST = re.compile(r"(?:\[|\{(?=.*,))([^\[\]{}]+)[\]}]")
_BARE_OBJECT = re.compile(r"\{[^{}]*:[^{}]*\}")
_OPEN_LIST = re.compile(r"""\[\s*['"]""")
_UNCLEAR_COMMAS = re.compile(r"\[(?=.*\d,\d)(?=.*\d, )[\d,. ]+\]")
_BULLET = re.compile(r"\s*(?:[-•*–]|\d{1,2}[.)])\s+")
_QUOTES = " \"'“”„‘’«»"
_LETTER = re.compile(r"[(\[]?(?:option )?([A-Z])[)\].:]*", re.IGNORECASE)
_GAPS = ("nan", "NaN", "null")
_LETTERS = re.compile(r"[A-J](?:(?:\s*[,;&/]\s*|\s+and\s+|\s+)[A-J])+|[A-J]{2,}")
_OWN_LETTER = re.compile(r"[(\[]?([A-Z])[)\].:]\s*(?=\S)")

_NUMBERS = "two|three|four|five|six|seven|eight|nine|ten|[2-9]|1[0-9]|zwei|drei|vier|fünf"
_PLURAL = r"(?!(?:was|is|has|does|this|us|yes)\b)[^\W\d_]{2,}(?<!s)(?<!u)(?<!i)s"
_ALL = re.compile(
    r"\b(?:list|name all|all (?:of )?the|both|respectively|enumerate|(?:what|which|who) (?:are|were)|nenne|beide|was sind|"
    r"welche \w+ (?:sind|waren))\b"
)
_ONE = re.compile(
    r"^\W*(?:how (?:many|much|old|long|far|tall|high|often)|when|wie (?:viele?|hoch|lang|alt|oft)|wann|"
    r"what (?:is|was) the (?:value|percentage|percent|number|amount|share|year))\b"
    r"|\b(?:sum|total|difference|average|mean|median|ratio)\b"
)
_QUANTITY = re.compile(
    r"^\W*(?:how (?:many|much|high|large)|wie ?(?:viele?|hoch|gro(?:ß|ss))|"
    r"(?:what|which) (?:is|was|are|were) the (?:\w+ )?(?:percent(?:age)?|number|amount|share|price|rate|level|total|sum)|"
    r"(?:what|which) (?:percentage|percent|share|amount))\b"
)
_VALUE = re.compile(r"\b(?:value|wert|level|count)\b")
_MONTH = r"(?:jan|feb|m[aä]r|apr|ma[iy]|ju[nl]|aug|sep|o[ck]t|nov|de[cz])[a-zä]*\.?"
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d(?: \d\d:\d\d)?|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}}|\d\d)?|\d{{1,2}}[-. ]{{1,2}}{_MONTH}(?:[- ]\d{{2,4}})?|"
    rf"{_MONTH}[- ]\d{{1,4}}",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    rf"\b(?:which|what|name|give|identify|top|welche|the) (?:[\w-]+ ){{0,2}}?(?:{_NUMBERS})\b"
    rf"|\b(?:which|what)(?: of the)? (?:[\w-]+ )?{_PLURAL}\b"
)
_RANGE = re.compile(r"\b(?:range|interval|between which)\b")
_ALTERNATIVES = frozenset({"answers", "ground_truths", "references", "labels", "aliases"})


def answer_text(value: object, question: str, options: Sequence[str] = (), column: str = "answer") -> str:
    """Return a right or wrong answer of a row as one text; "" if there is none.

    A list of things is joined by commas, or by semicolons if a thing contains a comma, without order unless the question asks
    for one. A list of spellings of one value, or of several people's answers, is that value; ``column`` is the key that held
    it. With ``options``, a letter in brackets is the letter. Raises RowProblem for what has no single meaning.
    """
    if value is None:
        return ""
    items = _items(value)
    if items is None and isinstance(value, str) and ("\n" in value or ";" in value) and _asks_for_several(question):
        items = [_BULLET.sub("", item, count=1) if _BULLET.match(item) else item for item in re.split(r"[;\n]", value)]
        if str(items[0]).rstrip().endswith(":"):  # a sentence leads to the list
            items = None
    text = plain_text(value) if items is None else _of_list(items, question, column, with_options=bool(options))
    _check_formula(text)
    if text.casefold() not in map(str.casefold, options) and (is_placeholder(text) or is_unanswerable(text)):
        raise RowProblem(PLACEHOLDER if is_placeholder(text) else UNANSWERABLE)
    return _letter(text, options) if options else text


def check_date(answer: str, question: str, passage: str) -> None:
    """Raise RowProblem if an answer is a date that a spreadsheet may have made of a number.

    So it is where the question asks for a quantity, or for a value that the ``passage`` states without a date.
    """
    if not _DATE.fullmatch(answer):
        return
    asked = read_question(question).folded
    if _QUANTITY.search(asked) or (passage and _VALUE.search(asked) and not find_moments(fold(clean(passage)))):
        raise RowProblem(DATE, answer)


def is_letter(answer: str) -> bool:
    """Return whether an answer is the letter of an option."""
    return bool(_LETTER.fullmatch(answer))


def check_cells(fields: Fields) -> None:
    """Raise RowProblem if a cell holds an error, a formula without a value or an unclear format."""
    for value in fields.values():
        if isinstance(value, str) and value[:1] in ("#", "E", " "):
            _check_formula(value.strip())


def _check_formula(text: str) -> None:
    if text == NOT_DISPLAYED:
        raise RowProblem(NUMBER_FORMAT)
    if text == NO_VALUE or _ERROR.fullmatch(text):
        raise RowProblem(NOT_CALCULATED if text == NO_VALUE else FORMULA_ERROR)


def option_texts(fields: Fields) -> tuple[str, ...]:
    """Return a row's options: a list, an object by letters, a text with bars or other separators, or columns a, b, c, ...

    An option that is missing between others is "", so that letters and numbers keep their places.
    """
    value = fields.get("options")
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        value = value["text"]
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=_natural)]
    if isinstance(value, str):
        value = _options_of(value.strip())
    if not value:
        value = [fields[letter] for letter in takewhile(fields.__contains__, ascii_lowercase)]
    if not isinstance(value, list | tuple):
        return ()
    texts = ["" if (text := plain_text(option)) in _GAPS else text for option in value]
    for text in texts:
        _check_formula(text)
    while texts and not texts[-1]:
        texts.pop()
    if sum(map(bool, texts)) < 2:
        return ()
    letters = [match[1].upper() if (match := _OWN_LETTER.match(text)) else "" for text in texts]
    if letters == [chr(ord("A") + place) for place in range(len(texts))]:
        texts = [_OWN_LETTER.sub("", text, count=1) for text in texts]
    return tuple(texts)


def _options_of(text: str) -> object:
    if "|" in text and not text.startswith(("[", "{")):
        return [option.strip() for option in text.split("|")]
    value = parse_literal(text)
    if isinstance(value, dict):
        return [value[key] for key in sorted(value, key=_natural)]
    if (items := _items(text)) is not None:
        return items
    separator = next((mark for mark in ("\n", ";", ", ") if mark in text), None)
    return [option.strip() for option in text.split(separator) if option.strip()] if separator else None


def _natural(key: object) -> tuple[int, str]:
    """Return the rank of an option's key, where 10 is behind 9."""
    return int(text) if (text := str(key)).isdecimal() else 0, text


def plain_text(value: object) -> str:
    """Return a single value as text. Raises RowProblem for an object."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else _without_exponent(value)
    if isinstance(value, dict) and value:
        raise RowProblem(OBJECT)
    return str(value).strip() if isinstance(value, str | int) else ""


def _without_exponent(value: float) -> str:
    return f"{Decimal(repr(value)):f}" if 1e-9 < abs(value) < 1e30 else repr(value)


def _items(value: object) -> list[object] | None:
    """Return the items of a list, also of one that a text writes; None for a single value. Raises RowProblem for an object."""
    if isinstance(value, list | tuple):
        return list(value)
    text = value.strip() if isinstance(value, str) else ""
    if not text.startswith(("[", "(", "{", '"', "'")) or len(text) > _LONGEST:
        return None
    if _ARRAY.fullmatch(text):  # numpy's texts without commas, which Python would join
        return [first or second for first, second in _STRINGS.findall(text)]
    if "''" in text and _DOUBLED_QUOTES.fullmatch(text):  # SQL's texts, which Python would join
        return [item.replace("''", "'") for item in re.findall(r"'((?:[^']|'')*)'", text)]
    if _UNCLEAR_COMMAS.fullmatch(text):
        raise RowProblem(UNCLEAR_COMMAS)
    if _OPEN_LIST.match(text) and not text.endswith("]"):
        raise RowProblem(OPEN_LIST)
    parsed = parse_literal(text if text[0] in "[({" else f"[{text}]")
    return _bare_items(text) if parsed is None else _parsed_items(parsed, in_brackets=text[0] in "[({")


def _parsed_items(parsed: object, *, in_brackets: bool) -> list[object] | None:
    """Return the items of what a text writes as a literal; None if it is no list. Raises RowProblem for an object."""
    if parsed == {}:
        return []
    if isinstance(parsed, dict):
        raise RowProblem(OBJECT)
    if isinstance(parsed, set):
        return sorted(parsed, key=str)
    if isinstance(parsed, list):
        return parsed if in_brackets or len(parsed) > 1 else None
    return list(parsed) if isinstance(parsed, tuple) and all(isinstance(i, str) for i in parsed) else None


def _bare_items(text: str) -> list[object] | None:
    """Return the items of a list whose texts have no quotes; None if it is none. Raises RowProblem for an object."""
    if _BARE_OBJECT.fullmatch(text):
        raise RowProblem(OBJECT)
    if bare := _BARE_LIST.fullmatch(text):
        return [item.strip(_QUOTES) for item in bare[1].split(";" if ";" in text else ",")]
    return None


def _of_list(items: Sequence[object], question: str, column: str, *, with_options: bool) -> str:
    """Return the answer that a list is."""
    texts = _texts(items)
    groups = _equal_groups(texts, question)
    firsts = [group[0] for group in groups]
    if len(groups) < 2:
        return "".join(firsts)
    if with_options:
        raise RowProblem(SEVERAL_OPTIONS)
    asked = read_question(question)
    if len(texts) == 2 and _RANGE.search(asked.folded) and not _ALL.search(asked.folded):
        return " to ".join(texts)
    if _asks_for_several(question):
        return _joined(texts if asked.ordered else firsts)
    if len(groups) < len(texts):  # several people's answers: things of a list are not repeated
        return _most_frequent(groups)
    if all(compare(firsts[0], other, question).verdict == "unclear" for other in firsts[1:]):
        if column in _ALTERNATIVES:
            return firsts[0]
        raise RowProblem(UNCLEAR_LIST)
    if column in _ALTERNATIVES or _ONE.search(asked.folded):
        raise RowProblem(ONE_ASKED)
    return _joined(firsts)


def _texts(items: Sequence[object]) -> list[str]:
    """Return the texts of a list that are not empty. Raises RowProblem for lists in it, and for too many texts."""
    answers = [item["answer"] if isinstance(item, dict) and "answer" in item else item for item in items]
    if any(isinstance(item, list | dict) for item in answers):
        raise RowProblem(NESTED)
    texts = [text for item in answers if (text := " ".join(plain_text(item).split()))]
    if len(texts) > _MOST_ITEMS:
        raise RowProblem(LONG_LIST)
    return texts


def _equal_groups(texts: Sequence[str], question: str) -> list[list[str]]:
    """Return the texts in groups of those that give the same value as the group's first."""
    groups: list[list[str]] = []
    for text in texts:
        same = next((group for group in groups if compare(group[0], text, question).verdict == "same"), None)
        if same is None:
            groups.append([text])
        else:
            same.append(text)
    return groups


def _most_frequent(groups: Sequence[Sequence[str]]) -> str:
    """Return the answer that more than half give. Raises RowProblem if there is none."""
    most = max(groups, key=len)
    if len(most) * 2 <= sum(map(len, groups)):
        raise RowProblem(NO_MAJORITY)
    return most[0]


def _asks_for_several(question: str) -> bool:
    asked = read_question(question)
    several = _SEVERAL.search(asked.folded) and not _ONE.search(asked.folded)
    return bool(several or asked.ordered or _ALL.search(asked.folded))


def _joined(texts: Sequence[str]) -> str:
    return ("; " if any("," in text for text in texts) else ", ").join(texts)


def _letter(text: str, options: Sequence[str]) -> str:
    """Return a letter without what surrounds it, or else ``text``. Raises RowProblem for several letters, or an unclear one."""
    if text in options and not _LETTER.fullmatch(text):
        return text
    letters = re.sub(r"[\s,;&/]|and", "", text)
    if _LETTERS.fullmatch(text) and letters == "".join(sorted(set(letters))):
        raise RowProblem(SEVERAL_OPTIONS)
    match = _LETTER.fullmatch(text)
    if match is None:
        return text
    letter = match[1].upper()
    place = ord(letter) - ord("A")
    if letter in options and place < len(options) and options[place] != letter:
        raise RowProblem(LETTER_OR_OPTION)
    return letter
