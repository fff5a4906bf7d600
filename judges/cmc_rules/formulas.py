"""Formulas and symbols in an answer: ``V = IR``, ``v_1 > v_2``, ``{a, b} {c}``, ``k/Y``, ``[0-9]+``."""

from __future__ import annotations

import re

from judges.cmc_rules.words import STOP_STEMS, tokens

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


def formula_of(folded: str) -> str:
    """The formula that a folded answer is, squeezed; "" where it is none or has prose in it."""
    prose = any(len(t.stem) > 1 and t.stem in STOP_STEMS for t in tokens(folded))
    formal = _SIGN.search(folded) or (_GREEK.search(folded) and not _WORD.search(folded))
    return squeezed(folded) if formal and not prose else ""


def squeezed(folded: str) -> str:
    """A formula without the spaces, signs of multiplication and brackets of a factor that notations differ in."""
    text = _OPERATORS.sub(r"\1\2", folded)
    for _ in range(2):
        text = _FACTOR.sub(r"\1", text)
    return _SPACED.sub("", _PRODUCT.sub("", text)).strip(" .$")


def found_in(formula: str, text: str) -> list[tuple[int, int]]:
    """Where a squeezed formula, or the result of an equation, stands in a folded text and is no part of a longer one."""
    shown = squeezed(text)
    result = formula.rpartition("=")[2]
    equation = len(result) >= 3 and sum(formula.count(sign) for sign in _RELATIONS) == 1 and "=" in formula
    for side in (formula, result) if equation else (formula,):
        bound = _BOUND + (_RELATIONS if any(sign in side for sign in _RELATIONS) else "")
        for found in re.finditer(re.escape(side), shown):
            around = shown[: found.start()][-1:] + shown[found.end() :][:1]
            if not any(c.isalnum() or c in bound for c in around):
                return [_place(side, text)]
    return []


def _place(side: str, text: str) -> tuple[int, int]:
    """Where the squeezed formula stands in the text as written."""
    spread = r"[\s()*·×]{0,8}?".join(map(re.escape, side))
    found = list(re.finditer(rf"(?<![^\W_]){spread}(?![^\W_])", text))
    return found[-1].span() if found else (0, len(text))
