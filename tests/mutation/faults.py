"""Faults for mutation testing: one changed operator, boundary or returned value in a line of a function."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A replacement of the text from ``start`` to ``end``, in bytes of the file, that begins in ``line``."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with this fault; every other line keeps its number."""
        lost = source[self.start : self.end].count(b"\n") - self.text.count("\n")
        return source[: self.start] + self.text.encode() + b"\\\n" * lost + source[self.end :]


def faults_of(file: str, source: bytes) -> list[Fault]:
    """Return every fault that can be made in the functions of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    faults = []
    for node in _nodes_in_functions(ast.parse(source)):
        for kind, changed in _changes(node):
            assert isinstance(node, ast.expr | ast.stmt)
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = ast.unparse(changed)
            faults.append(
                Fault(file, node.lineno, kind, start, end, f"({text})" if isinstance(node, ast.expr) else text)
            )
    return faults


def _nodes_in_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes in the bodies of functions, without annotations, patterns, docstrings and parts of f-strings."""
    waiting: list[ast.AST] = [
        statement
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in function.body
    ]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or isinstance(node, ast.JoinedStr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # a function in a function is there on its own
        seen.add(id(node))
        yield node
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "pattern"):
                waiting += [
                    child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
                ]


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                for other in _COMPARISONS[type(operator)]:
                    yield "operator", _copy(node, ops=[*node.ops[:place], other(), *node.ops[place + 1 :]])
        case ast.BoolOp():
            yield "operator", _copy(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        case ast.UnaryOp(op=ast.Not()):
            yield "operator", node.operand
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _ARITHMETIC and not _is_text(node):
            yield "operator", _copy(node, op=_ARITHMETIC[type(node.op)]())
        case ast.IfExp():
            yield "operator", _copy(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Constant(value=bool() as truth):
            yield "boundary", ast.Constant(not truth)
        case ast.Constant(value=int() as number):
            yield "boundary", ast.Constant(number + 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", ast.Return(ast.Constant(None))


def _copy(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Return whether an operand is a text or a list as it is written, where another operator is no plausible fault."""
    operands = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(operand, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(operand, ast.Constant) and isinstance(operand.value, str | bytes))
        for operand in operands
    )
