"""Formulas and symbols in an answer: ``V = IR``, ``v_1 > v_2``, ``{a, b} {c}``, ``k/Y``, ``[0-9]+``."""

from __future__ import annotations

import re

from judges.cmc_rules.words import STOP_STEMS, tokenize

_FUNCTIONS = "arcsin|arccos|arctan|sin|cos|tan|cot|sec|csc|log|ln|exp"
_RELATIONS = "=<>≤≥≠≈→|"
_SIGN = re.compile(
    rf"[{_RELATIONS}√^\\∫∑Σ{{}}\[\]]|->|[a-zα-ω]_[a-z0-9]|\b(?:{_FUNCTIONS})\b"
    r"|(?<![a-z])[a-z0-9)] ?[*/×·+] ?[a-z0-9(](?![a-z])|[a-z0-9)]/\(|\)/[a-z0-9(]|[)\]][*+]"
    r"|[a-zα-ω0-9)] ?[*×·] ?[a-zα-ω(]|^[a-z] ?- ?[a-z]$|^[a-z][*+-]*$"
)
_GREEK, _WORD = re.compile("[πθλµ]"), re.compile(rf"(?!(?:{_FUNCTIONS})\b)[a-z]{{3,}}")
_OPERATORS = re.compile(rf"\s*(->|[-+*/^√·×,{_RELATIONS}])\s*|\s*(?<![a-z])({_FUNCTIONS})(?![a-z])\s*")
_PRODUCT = re.compile(r"(?<=[a-zα-ω0-9)])[*·×](?=[a-zα-ω(])")
_SPACED = re.compile(r"(?<=[0-9πθλ]) (?=[a-zα-ω](?![a-zα-ω]))|(?<=\b[a-zα-ω]) (?=[a-zα-ω](?![a-zα-ω]))")
_FACTOR = re.compile(r"\(([^()\[\]{}+,|-]{0,80})\)(?![*+?])")
_BOUND = "+-/^√*·×|)(]["


def parse_formula(folded: str) -> str:
    """Return a folded answer as a squeezed formula; "" if it is no formula or contains prose."""
    prose = any(len(t.stem) > 1 and t.stem in STOP_STEMS for t in tokenize(folded))
    formal = _SIGN.search(folded) or (_GREEK.search(folded) and not _WORD.search(folded))
    return squeeze(folded) if formal and not prose else ""


def squeeze(folded: str) -> str:
    """Return a formula without the spaces, multiplication signs and factor brackets in which notations differ."""
    text = _OPERATORS.sub(r"\1\2", folded)
    for _ in range(2):
        text = _FACTOR.sub(r"\1", text)
    return _SPACED.sub("", _PRODUCT.sub("", text)).strip(" .$")


def find_formula(formula: str, text: str) -> list[tuple[int, int]]:
    """Return the span of a squeezed formula, or of an equation's result, in a folded text, unless part of a longer formula."""
    haystack = squeeze(text)
    result = formula.rpartition("=")[2]
    equation = len(result) >= 3 and sum(formula.count(sign) for sign in _RELATIONS) == 1 and "=" in formula
    for side in (formula, result) if equation else (formula,):
        bound = _BOUND + (_RELATIONS if any(sign in side for sign in _RELATIONS) else "")
        for match in re.finditer(re.escape(side), haystack):
            around = haystack[: match.start()][-1:] + haystack[match.end() :][:1]
            if not any(c.isalnum() or c in bound for c in around):
                return [_locate(side, text)]
    return []


def _locate(side: str, text: str) -> tuple[int, int]:
    """Return the span of the squeezed formula in the text as written."""
    spread = r"[\s()*·×]{0,8}?".join(map(re.escape, side))
    matches = list(re.finditer(rf"(?<![^\W_]){spread}(?![^\W_])", text))
    return matches[-1].span() if matches else (0, len(text))
