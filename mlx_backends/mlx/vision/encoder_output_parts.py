"""Parts of a vision encoder's output that its model uses.

Most encoders return the hidden states of all their layers, of which the model uses one or a few. MLX computes arrays when
they are needed, so the others would cost nothing if nobody kept them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any, TypeAlias

from mlx_backends.core.metal_faults import metal_fault

Place: TypeAlias = tuple[int, ...]
"""The indices that lead to a part in nested lists and tuples."""


class Unused:
    """Stand-in for a part that the model does not use; whatever a model does with it fails."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise TypeError("this part of the encoder's output was not kept")

    def __repr__(self) -> str:
        return "UNUSED"


UNUSED = Unused()

MISSING_PART = (TypeError, ValueError, AttributeError)
"""The errors that a model raises if it uses an :data:`UNUSED` part."""


class UsedParts:
    """The parts of one encoder's output that its model uses; all of them until :meth:`find` was called."""

    def __init__(self) -> None:
        self._unused: frozenset[Place] | None = None

    @property
    def are_known(self) -> bool:
        return self._unused is not None

    @property
    def are_all(self) -> bool:
        """Return True if it is known that no part can be left out."""
        return self._unused is not None and not self._unused

    def of(self, features: Any) -> Any:
        """Return ``features`` with :data:`UNUSED` in place of the parts that the model does not use."""
        return _without(features, self._unused or frozenset(), ())

    def find(self, features: Any, make: Callable[[], Any], expected: Any) -> None:
        """Leave out one part of ``features`` after the other, and find those without which ``make`` returns the same.

        ``make`` computes the prompt's embeddings from the encoder's output as :meth:`of` returns it, and ``expected`` is what
        it returns with the whole output.
        """
        unused: frozenset[Place] = frozenset()
        places: list[Place] = [(number,) for number in _numbers(features)]
        try:
            while places:
                place = places.pop(0)
                self._unused = unused | {place}
                if _is_same(make, expected):
                    unused = self._unused
                else:
                    places += [(*place, number) for number in _numbers(_part(features, place))]
        except BaseException:
            self._unused = None
            raise
        self._unused = unused

    def keep_all(self) -> frozenset[Place] | None:
        """Take all parts for used from now on; return what :meth:`restore` takes to undo it."""
        before, self._unused = self._unused, frozenset()
        return before

    def restore(self, before: frozenset[Place] | None) -> None:
        """Undo :meth:`keep_all`."""
        self._unused = before


def is_whole(features: Any) -> bool:
    """Return whether no part of ``features`` was left out."""
    return not any(isinstance(leaf, Unused) for leaf in _leaves(features))


def _numbers(features: Any) -> range:
    return range(len(features) if type(features) in (list, tuple) else 0)


def _part(features: Any, place: Place) -> Any:
    for number in place:
        features = features[number]
    return features


def _without(features: Any, unused: Set[Place], place: Place) -> Any:
    if place in unused:
        return UNUSED
    if unused and type(features) in (list, tuple):
        return type(features)(_without(part, unused, (*place, number)) for number, part in enumerate(features))
    return features


def _leaves(features: Any) -> Iterator[Any]:
    if type(features) in (list, tuple):
        for part in features:
            yield from _leaves(part)
    else:
        yield features


def _is_same(make: Callable[[], Any], expected: Any) -> bool:
    """Return whether ``make`` returns the arrays of ``expected``, bit for bit. Raises faults of the GPU."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    try:
        output, whole = (dict(tree_flatten(result.to_dict())) for result in (make(), expected))
    except Exception as error:  # a model may raise anything where a part is missing
        if metal_fault(error) is not None:
            raise
        return False
    return output.keys() == whole.keys() and all(
        value is other or (isinstance(value, mx.array) and bool(mx.array_equal(value, other, equal_nan=True)))
        for value, other in zip(output.values(), whole.values(), strict=True)
    )
