"""``python -m mlx_backends.core.template_process``: the child process in which a model's chat template is rendered, under limits.

A template is a program of the model's author. The sandbox keeps it from files and from code, not from loops without end or
texts without end, so it runs apart; nothing of it is compiled in this program's own processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import IO, Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.bounded_process import BoundedProcess, LimitError, serve

SECONDS = 3.0
LARGEST_TEMPLATE = 1024 * 1024
LARGEST_PROMPT = 16 * 1024 * 1024
"""Characters."""

_MODULE = "transformers.utils.chat_template_utils"


class TemplateLimitError(ModelError):
    """A chat template that asks for more time or memory than any prompt needs."""


class BoundedTemplate:
    """A chat template as transformers renders it, in the child process; ``plain`` as jinja2 does without its options."""

    def __init__(self, source: str, *, plain: bool = False) -> None:
        self._source = source
        self._plain = plain
        self._refused = ""

    def render(self, **context: Any) -> str:
        """The prompt. Raises TemplateLimitError where a limit is exceeded, at once the next time."""
        return self._ask(context=context)[1]

    def names(self) -> frozenset[str]:
        """The names that the template uses and does not set. Raises as :meth:`render`."""
        return frozenset(map(str, self._ask(context=None)[0]["names"]))

    def _ask(self, **request: Any) -> tuple[dict[str, Any], str]:
        if len(self._source) > LARGEST_TEMPLATE:
            self._refused = f"has more than {LARGEST_TEMPLATE:,} characters"
        if not self._refused:
            try:
                ((reply, text),) = _renderer().ask({"template": self._source, "plain": self._plain, **request})
            except LimitError as error:
                self._refused = (
                    f"takes more than {SECONDS:.0f} seconds to render"
                    if error.limit == "time"
                    else "takes more than 400 MB of memory to render"
                )
        if self._refused:
            raise TemplateLimitError(f"its chat template {self._refused}; choose another model, or mend its template.")
        if "error" in reply:
            raise ValueError(str(reply["error"]))
        return reply, text.decode("utf-8", "surrogatepass")


def bound_templates() -> None:
    """Have transformers and mlx-vlm render every chat template in the child, for the rest of this process.

    Some processors of mlx-vlm use jinja2 itself, without its sandbox, in which a template can run any code. They import it where
    they render, so it is jinja2's own two ways to a template that look at who calls; whoever else calls is not affected.
    """
    from jinja2 import Environment, Template
    from transformers import processing_utils
    from transformers.utils import chat_template_utils

    if chat_template_utils._compile_jinja_template is _bounded:
        return
    chat_template_utils._compile_jinja_template = _bounded
    # Looking at a template computes what is constant in it.
    chat_template_utils._get_template_variables = processing_utils._get_template_variables = _names
    compile_text, compile_in_environment = Template.__new__, Environment.from_string

    def new(cls: type[Template], source: str, *arguments: Any, **options: Any) -> Any:
        if _is_called_by_mlx_vlm():
            return BoundedTemplate(source, plain=True)
        return compile_text(cls, source, *arguments, **options)

    def from_string(self: Environment, source: Any, *arguments: Any, **options: Any) -> Any:
        if _is_called_by_mlx_vlm():
            return BoundedTemplate(source, plain=True)
        return compile_in_environment(self, source, *arguments, **options)

    Template.__new__ = new  # type: ignore[method-assign,assignment]
    Environment.from_string = from_string  # type: ignore[method-assign]


def _is_called_by_mlx_vlm() -> bool:
    """Return whether the caller of this function's caller lies in mlx-vlm."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).startswith("mlx_vlm.")


@cache
def _bounded(source: str) -> BoundedTemplate:
    return BoundedTemplate(source)


def _names(source: str | None) -> frozenset[str]:
    return frozenset() if source is None else _bounded(source).names()


@cache
def _renderer() -> BoundedProcess:
    return BoundedProcess(__name__ if __name__ != "__main__" else "mlx_backends.core.template_process", SECONDS)


def _prepare(request: dict[str, Any]) -> None:
    from transformers.utils import chat_template_utils

    chat_template_utils._compile_jinja_template("")


def _handle(request: dict[str, Any], file: IO[bytes] | None) -> Iterator[tuple[dict[str, Any], bytes]]:
    utilities = sys.modules[_MODULE]
    compiled = _plain if request["plain"] else utilities._compile_jinja_template
    try:
        if request["context"] is None:
            names = sorted(utilities._get_template_variables(request["template"]))
            yield {"names": names}, b""
            return
        text = compiled(request["template"]).render(**request["context"])
        if len(text) > LARGEST_PROMPT:
            raise MemoryError
    except MemoryError:
        raise
    except Exception as error:  # templates raise what they like
        yield {"error": " ".join(str(error).split())[:300] or error.__class__.__name__}, b""
        return
    yield {}, text.encode("utf-8", "surrogatepass")


@cache
def _plain(source: str) -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"]).from_string(source)


if __name__ == "__main__":
    serve(_handle, _prepare)
