"""An answer as the match judge reads it: folded, stripped of Markdown and LaTeX, and split into clauses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from judges.cmc_rules.cues import CHANGES, POINTED, REVISIONS, WITHDRAWALS, compiled
from judges.cmc_rules.lazy_pattern import lazy

_HEAD, _TAIL = 4_000, 8_000
"""Characters kept of a longer answer: a commitment is at the beginning or the end of an answer."""
_LONGEST_CLAUSE = 400
"""Characters; no rule reads further, so that the running time is bounded."""

_DASHES = dict.fromkeys(map(ord, "‐‑‒–−﹣－"), "-")
_QUOTES = {**dict.fromkeys(map(ord, "‘’‚‛`´"), "'"), **dict.fromkeys(map(ord, "“”„‟«»「」"), '"')}
_STOPS = {ord("―"): "—", ord("。"): ". ", ord("，"): ", ", ord("："): ": ", ord("；"): "; "}
# NFKC alone would make 31/2 of 3½ and 102 of 10².
_FRACTIONS = {ord(c): " " + unicodedata.normalize("NFKC", c).replace("⁄", "/") for c in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_SUPERSCRIPT = lazy("⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_CHARACTERS = {**_DASHES, **_QUOTES, **_STOPS, **_FRACTIONS}

_GROUP = r"\{([^{}]{0,400})\}"
_LATEX_WORDS = [
    (lazy(r"\\(?:times|cdot)(?![a-z])"), "×"),
    (lazy(r"\\(?:approx|simeq)(?![a-z])"), "≈"),
    (lazy(r"\\(?:left|right|displaystyle|,|;|!|:|quad|qquad|\s|\(|\)|\[|\])"), " "),
    (lazy(r"\\div(?![a-z])"), "/"),
    (lazy(r"\\([%$&#_{}])"), r"\1"),
    (lazy(r"\\circ(?![a-z])"), "°"),
    (lazy(r"\\sqrt(?![a-z])"), "√"),
]
_LATEX_GROUPS = [
    (lazy(r"\\[dtc]?frac" + _GROUP + _GROUP), r"(\1)/(\2)"),
    (lazy(r"\\(?:text|mathrm|mathbf|textbf|mathit|operatorname|mbox|rm|underline)\s?" + _GROUP), r"\1"),
    (lazy(r"√\s?" + _GROUP), r"√(\1)"),
    (lazy(r"\\boxed\s?" + _GROUP), r"\nFinal answer: \1\n"),
    (lazy(r"\^\s?" + _GROUP), r"^\1"),
    (lazy(r"_\s?" + _GROUP), r"_\1"),
]
_GREEK_NAMES = "alpha beta gamma delta theta lambda mu pi rho sigma tau phi omega Omega Delta"
_GREEK = dict(zip(_GREEK_NAMES.split(), "αβγδθλµπρστφωΩΔ", strict=True))
_GREEK_WORD = lazy(rf"\\({'|'.join(_GREEK)})(?![a-z])")
_NUMBER_OVER_NUMBER = lazy(r"\(([0-9.]{1,12})\)/\(([0-9.]{1,12})\)")
_INLINE_MATH = lazy(
    r"\${1,2}(?=\S)([^$]{0,400}?)(?<=\S)\${1,2}(?![0-9])|\${1,2}(\s[^$]{0,400}?\s)\${1,2}|\$([^\s$0-9][^$]{0,40}?) \$"
)
_UPPER_MAGNITUDE = lazy(r"(?<=[0-9])([KMB])(?![A-Za-z0-9/])")
_SEASON = lazy(r"(?<![0-9.,])(1[5-9]|20)([0-9]{2}) ?[-/] ?([0-9]{2})(?![-/.]?[0-9])")
_BLANKS = lazy(r"[ \n]{2,}")

_EMPHASIS = lazy(r"\*\*|__|~~")
_STRESSED = lazy(r"(?<![\w*\])])\*(?=\S)([^*\n]{1,400})(?<=\S)\*(?![\w*])")
_TABLE_LINE = lazy(r"(?<!\S)\||\|(?!\S)")
_BULLET = lazy(r"^ ?(?:[-*•▪►>#+]+ |#+ ?)+", re.MULTILINE)
_NUMBERED = lazy(r"^ ?[0-9]{1,2}[.)] (?=\S)", re.MULTILINE)
_OPTION = lazy(r"(?:^|(?<=is )|(?<=: )|(?<=option )|(?<=answer )|(?<=choice ))\(?[a-j][.):] (?=\S)", re.MULTILINE)
_ITEMS = lazy(r"(?:^ ?(?:[-*•+]|[0-9]{1,2}[.)]) [^\n:.?!]{1,60}(?:\n|\Z)){2,12}", re.MULTILINE)
_ITEM_SIGN = lazy(r"^ ?(?:[-*•+]|[0-9]{1,2}[.)]) ")
_ABBREVIATION = lazy(
    r"\b(?:(u\.s\.a|u\.s|u\.k)\b\.?|(i\.e|e\.g|approx|vs|ca|fig|dr|mr|mrs|ms|prof|st|mt|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|no)(?=\.\s*[0-9])|etc|al|resp|incl|max|min)\.(?=\s*\S))"
)
_CHANGES = [
    (lazy(rf"\b(?:{words})\b(?! to\b)"), change)
    for change, words in (line.split(": ", 1) for line in CHANGES.strip().split("\n"))
]
_FISCAL = lazy(r"\bfy ?'?(?=[0-9]{2})")
_CANNOT, _NOT = lazy(r"\bcan(?:'t| not\b)"), lazy(r"(?<=[a-z])n't\b")
_NO_TERM_BEFORE = r"(?<![-+/^√<>|·×)\]])(?<!\S [-+/<>·×] )(?<!\S [<>]= )(?<!\S -> )"
_NO_TERM_AFTER = r"(?![-+^√<>|·×(\[]|/[^\W_(]| [-+/<>=·×] ?\S| -> )"
_HEADING = lazy(r"^ ?((?:final |short |direct )?(?:answer|conclusion|result|choice)) ?:? ?\n+", re.MULTILINE)

_STRUCK = lazy(r"~~(?=\S)[^~\n]{1,400}~~|<(s|del|strike)>[^<\n]{0,400}</\1>", re.IGNORECASE)
_SENTENCE_END = lazy(r"\n+|(?<=[.!?])[\"')\]]*\s+|(?<=\.\.\.)\s*|;\s+")
_QUOTED = lazy(r'"([^"\n]{3,400})"')
_CONJUNCTIONS = (
    r"but|while|whereas|however|although|though|yet|so(?! that| far| on[,.)])|therefore|thus|hence|because|even though|"
    r"meaning|nevertheless|nonetheless"
)
_STARTS = (
    r"and|the|it|it's|its|this|that|there|i(?= \w)|i'm|i'd|i'll|we|both|these|they|in|on|as|since|which|with|then|not|rather|"
    r"making|giving|if|depending|leaving|contrary|unlike|nor|for|a(?= \w)|an|consequently|my|he|she|or|let|please|only|"
    r"instead|based|according|given|where|who|whose|is|are"
)
_ASIDE = (
    r"(?!according|as\b|per\b|from\b|in\b|by\b|based|the \w+ evidence|i\.?e|or\b|and\b(?! \w+ (?:in|on|at|by)\b))"
    r"(?=[^\W\d][^\s()]* [^\s()]+ [^\s()])"
)
_REVISING = rf"(?:{'|'.join(compiled(table).pattern for table in (REVISIONS, WITHDRAWALS, POINTED))}|no(?= wait|[,:]))"
_CLAUSE = lazy(
    rf"\s{{0,3}}[-,(—]{{1,3}}\s{{0,3}}(?<![0-9]-)(?=(?:(?:oh|and|but|or|no),? )?{_REVISING})|"
    rf"\s*—\s*|\s+\({_ASIDE}|(?<![0-9])\s+-\s+|[,:]?\s+(?=(?:{_CONJUNCTIONS})\b)|"
    rf",\s+(?=(?:{_STARTS})(?!\w)|[0-9][^,]{{0,80}}?\s(?:is|are|was|were)\s)"
)
_LEAD = lazy(rf"(?:and )?({_CONJUNCTIONS}|if|despite|contrary to|assuming|which|who|whose|since|as)\b")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of an answer.

    ``masked`` is ``text`` with quotations of three words or more blanked out, so that no cue is taken from them.
    ``lead`` is the conjunction that opens the clause, "(" for an aside in brackets, or "".
    """

    text: str
    masked: str
    sentence: int
    lead: str


def fold(text: str) -> str:
    """Return ``text`` in lower case, without LaTeX or invisible characters, with one spelling of dashes, quotes and digits.

    "n't" is written out. Time is linear in the length; only the beginning and the end of a long text are kept.
    """
    if len(text) > _HEAD + _TAIL:
        text = text[:_HEAD] + "\n" + text[-_TAIL:]
    text = _without_struck(text)
    if "\\" in text:
        text = _without_latex(text)
    if "$" in text:
        text = _INLINE_MATH.sub(lambda m: m[1] or m[2] or m[3] or "", text)
    text = _UPPER_MAGNITUDE.sub(lambda m: {"K": " thousand", "M": " million", "B": " billion"}[m[1]], text)
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda m: "^" + unicodedata.normalize("NFKC", m[0]).replace("−", "-"), text)
        text = "".join(_plain_character(c) for c in unicodedata.normalize("NFKC", text.translate(_CHARACTERS)))
    text = _SEASON.sub(_whole_years, text.casefold().translate(_CHARACTERS))
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    text = _ABBREVIATION.sub(lambda m: (m[1] or m[2]).replace(".", ""), text)
    text = _NOT.sub(" not", _CANNOT.sub("cannot", _FISCAL.sub("", text)))
    for pattern, change in _CHANGES:
        text = pattern.sub(change, text)
    return _BLANKS.sub(lambda m: "\n\n" if m[0].count("\n") > 1 else "\n" if "\n" in m[0] else " ", text)


def mark_phrases(folded: str, phrases: Sequence[str], formulas: Collection[int] = ()) -> str:
    """Return ``folded`` with each phrase that occurs in it replaced by its mark, ``phrase_mark(i)``, longest first.

    Nothing within a marked phrase is read, split or taken for a cue. A folded text holds no marks of its own. The
    phrases with a number in ``formulas`` are not marked within a longer formula.
    """
    for i, phrase in sorted(enumerate(phrases), key=lambda p: -len(p[1])):
        if phrase and phrase in folded:
            around = (_NO_TERM_BEFORE, _NO_TERM_AFTER) if i in formulas else ("", "")
            folded = re.sub(rf"(?<![^\W_]){around[0]}{re.escape(phrase)}(?![^\W_]){around[1]}", phrase_mark(i), folded)
    return folded


def phrase_mark(i: int) -> str:
    """Return the mark of phrase number ``i``, a private-use character."""
    return chr(0xE000 + i)


def moment_mark(i: int) -> str:
    """Return the mark of the answer's date or time number ``i``, a private-use character."""
    return chr(0xF000 + i)


def _plain_character(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cf", "Cs", "Co", "Cn"):
        return ""
    return str(unicodedata.digit(character)) if category == "Nd" else character


def _whole_years(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}-{match[1]}{match[3]}" if match[3] > match[2] else match[0]


def _without_struck(text: str) -> str:
    """Return ``text`` without struck-through parts, unless nothing else is left."""
    rest = _STRUCK.sub(" ", text) if "~~" in text or "</" in text else text
    return rest if any(c.isalnum() for c in rest) else text


def _without_latex(text: str) -> str:
    text = _GREEK_WORD.sub(lambda m: _GREEK[m[1]], text)
    for pattern, replacement in _LATEX_WORDS:
        text = pattern.sub(replacement, text)
    for _ in range(3):
        for pattern, replacement in _LATEX_GROUPS:
            text = pattern.sub(replacement, text)
    return _NUMBER_OVER_NUMBER.sub(r"\1/\2", text)


def split_clauses(folded: str, *, join_items: bool = False) -> list[Clause]:
    """Return the clauses of a folded answer, in order and without Markdown.

    With ``join_items``, the short items of a list are one clause.
    """
    if join_items:
        folded = _ITEMS.sub(lambda m: ", ".join(filter(None, map(_bare_item, m[0].split("\n")))) + "\n", folded)
    text = _BULLET.sub("", _STRESSED.sub(r"\1", _EMPHASIS.sub("", folded)))
    text = _TABLE_LINE.sub(", ", text)
    if len(_NUMBERED.findall(text)) > 1:
        text = _NUMBERED.sub("", text)
    text = _HEADING.sub(r"\1: ", _OPTION.sub("", text))
    sentences = enumerate(_SENTENCE_END.split(text))
    return [clause for number, sentence in sentences for clause in _split_sentence(sentence, number)]


def _bare_item(line: str) -> str:
    return _ITEM_SIGN.sub("", line).strip()


def _split_sentence(sentence: str, number: int) -> list[Clause]:
    masked = _QUOTED.sub(lambda m: m[0] if m[1].count(" ") < 2 else "·" * len(m[0]), sentence)
    result, start, bracket = [], 0, ""
    for cut in [*_CLAUSE.finditer(masked), None]:
        end = cut.start() if cut else len(sentence)
        for at in range(start, end, _LONGEST_CLAUSE):
            part = slice(at, min(end, at + _LONGEST_CLAUSE))
            if sentence[part].strip(" .,:!?\"'()[]…"):
                lead = _LEAD.match(sentence[part].lstrip())
                result.append(Clause(sentence[part], masked[part], number, lead[1] if lead else bracket))
        start, bracket = (cut.end(), "(" if "(" in cut[0] else "") if cut else (end, "")
    return result
