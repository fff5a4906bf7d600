"""Recovery from faults of Metal: confirmation of what was computed, and a model in the state in which it was loaded."""

from __future__ import annotations

import functools
import gc
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mlx_backends.core.metal_faults import DeviceLostError, causes, metal_fault

_MAX_PENDING = 8
"""Most errors in a row that are taken for the pending ones of a single fault; computations in flight fail with it."""

A = TypeVar("A")
T = TypeVar("T")


def settle() -> None:
    """Wait until the GPU has computed everything; raise the RuntimeError of a computation that failed.

    Reading an array does not confirm it: MLX may be notified of a failure after the array's own event. Only what was read
    before a call that returns may be stored.
    """
    import mlx.core as mx

    for library in ("mlx_vlm.generate.common", "mlx_lm.generate"):
        if library in sys.modules:
            mx.synchronize(sys.modules[library].generation_stream)
    mx.synchronize()


def quieten() -> bool:
    """Take the pending errors of computations whose results are dropped; return False if they do not end."""
    for _ in range(_MAX_PENDING):
        try:
            settle()
        except RuntimeError as error:
            if metal_fault(error) is None:
                raise
        else:
            return True
    return False


def root_cause(error: Exception) -> Exception:
    """Return the pending fault that may have led to ``error``, because wrong values were computed with; else ``error``."""
    if metal_fault(error) is None:
        try:
            settle()
        except RuntimeError as pending:
            if metal_fault(pending) is not None:
                return pending
    return error


@contextmanager
def raising_root_cause() -> Iterator[None]:
    """Raise the :func:`root_cause` of an error within the block, before what the block has opened is closed."""
    try:
        yield
    except Exception as error:
        cause = root_cause(error)
        if cause is error:
            raise
        raise cause from error


@contextmanager
def dropping() -> Iterator[None]:
    """Close within the block what holds unconfirmed results; Metal faults in them do not matter any more."""
    quieten()
    try:
        yield
    except RuntimeError as error:
        if metal_fault(error) is None:
            raise


class FaultRecovery:
    """Recovery of one loaded ``model`` after a fault, or of the GPU alone.

    The model's arrays are evaluated at once, those that are no parameters too: an array that is first computed in a request would
    stay wrong after a fault in it.
    """

    def __init__(self, model: Any = None) -> None:
        import mlx.core as mx
        from mlx.utils import tree_flatten

        modules = [] if model is None else model.modules()
        self._modules = [(module, dict(module), dict(vars(module))) for module in modules]
        if self._modules:
            mx.eval(
                [value for _, value in tree_flatten([arrays for _, arrays, _ in self._modules]) if _is_array(value)]
            )
            settle()

    def recover(self, error: BaseException) -> bool:
        """Drop everything computed since the model was loaded, and return whether the GPU computes again after ``error``."""
        import mlx.core as mx

        for cause in causes(error):
            traceback.clear_frames(cause.__traceback__)  # which hold arrays
        fault = metal_fault(error)
        if fault is not None and fault.is_final:
            return False
        for module, arrays, attributes in self._modules:
            dict.clear(module)
            dict.update(module, arrays)  # a module's own update takes parameters only
            vars(module).clear()
            vars(module).update(attributes)
        for cached in gc.get_objects():
            if isinstance(cached, functools._lru_cache_wrapper) and _of_library(cached):
                cached.cache_clear()
        gc.collect()
        if not quieten():
            return False
        mx.clear_cache()
        try:
            total = mx.arange(64).sum().item()
            settle()
        except RuntimeError as failure:
            if metal_fault(failure) is None:
                raise
            return False
        return bool(total == sum(range(64)))

    def repeat(self, compute: Callable[[], T]) -> T:
        """Return the confirmed result of ``compute``, computed once more if a fault occurs.

        Raises DeviceLostError after a second fault.
        """
        for last in (False, True):
            try:
                result = compute()
                settle()
            except Exception as failure:
                error = root_cause(failure)
                if metal_fault(error) is None:
                    raise
                if not self.recover(error) or last:
                    raise DeviceLostError(error) from error
            else:
                return result
        raise AssertionError

    def repeating(self, compute: Callable[[A], T]) -> Callable[[A], T]:
        """Return ``compute`` with :meth:`repeat` around each call."""
        return lambda argument: self.repeat(lambda: compute(argument))


def _is_array(value: Any) -> bool:
    import mlx.core as mx

    return isinstance(value, mx.array)


def _of_library(cached: Any) -> bool:
    return str(getattr(cached, "__module__", "")).startswith(("mlx_vlm.", "mlx_lm."))
