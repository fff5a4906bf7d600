"""``python -m mlx_backends.core.prompts.template_process``: the child process that renders chat templates, under limits.

A template is a program by the model's author. The sandbox keeps it from files and code, but not from endless loops or endless
text, so templates are rendered apart; nothing of them is compiled in this program's own processes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import IO, Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.bounded_process import BoundedProcess, LimitError, serve
from mlx_backends.core.transformers_names import remember_names

MAX_SECONDS = 3.0
MAX_TEMPLATE_CHARACTERS = 1024 * 1024
MAX_PROMPT_CHARACTERS = 16 * 1024 * 1024

_MODULE = "transformers.utils.chat_template_utils"


class TemplateLimitError(ModelError):
    """A chat template that takes more time or memory than any prompt needs."""


class BoundedTemplate:
    """A chat template that transformers renders in the child process; with ``plain``, jinja2 without transformers' options."""

    def __init__(self, source: str, *, plain: bool = False) -> None:
        self._source = source
        self._plain = plain
        self._limit_exceeded = ""

    def render(self, **context: Any) -> str:
        """Return the prompt. Raises TemplateLimitError where a limit is exceeded, and at once from then on."""
        return self._request(context=context)[1]

    def names(self) -> frozenset[str]:
        """Return the names that the template uses and does not set. Raises as :meth:`render`."""
        return frozenset(map(str, self._request(context=None)[0]["names"]))

    def _request(self, **request: Any) -> tuple[dict[str, Any], str]:
        if len(self._source) > MAX_TEMPLATE_CHARACTERS:
            self._limit_exceeded = f"has more than {MAX_TEMPLATE_CHARACTERS:,} characters"
        if not self._limit_exceeded:
            try:
                ((reply, text),) = _renderer().ask({"template": self._source, "plain": self._plain, **request})
            except LimitError as error:
                self._limit_exceeded = (
                    f"takes more than {MAX_SECONDS:.0f} seconds to render"
                    if error.limit == "time"
                    else "takes more than 400 MB of memory to render"
                )
        if self._limit_exceeded:
            raise TemplateLimitError(
                f"its chat template {self._limit_exceeded}; choose another model, or fix its template."
            )
        if "error" in reply:
            raise ValueError(str(reply["error"]))
        return reply, text.decode("utf-8", "surrogatepass")


def start_renderer() -> None:
    """Start the child process, whose libraries take a second to import, without waiting for it."""
    _renderer().start({})


def bound_templates() -> None:
    """Make transformers and mlx-vlm render every chat template in the child process, for the rest of this process.

    Some processors of mlx-vlm use jinja2 itself, without its sandbox, so a template could run any code. They import it where they
    render. Therefore jinja2's own two constructors of templates are patched; they check the caller and leave others alone.
    """
    from jinja2 import Environment, Template
    from transformers import processing_utils
    from transformers.utils import chat_template_utils

    if chat_template_utils._compile_jinja_template is _bounded:
        return
    chat_template_utils._compile_jinja_template = _bounded
    # Even inspecting a template evaluates its constant expressions.
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
    return BoundedProcess(
        __name__ if __name__ != "__main__" else "mlx_backends.core.prompts.template_process", MAX_SECONDS
    )


def _prepare(request: dict[str, Any]) -> None:
    if _MODULE not in sys.modules:
        try:
            _import_alone(_MODULE)
        except Exception:  # another version of the library may need its packages
            remember_names()
            import_module(_MODULE)
    sys.modules[_MODULE]._compile_jinja_template("")  # from a cache after the first time


def _import_alone(module: str) -> None:
    """Import the library's module without running the packages that it is in, which import its other modules, and try it."""
    names = module.split(".")[:-1]
    packages = [".".join(names[: number + 1]) for number in range(len(names))]
    try:
        path: Sequence[str] | None = None
        for name in packages:
            spec = PathFinder.find_spec(name, path)
            if spec is None or spec.submodule_search_locations is None:
                raise ImportError(name)
            package = ModuleType(name)
            package.__spec__, package.__path__ = spec, list(spec.submodule_search_locations)
            sys.modules[name], path = package, package.__path__
        import_module(module)._compile_jinja_template("")
    except Exception:
        for name in [name for name in sys.modules if name.partition(".")[0] == packages[0]]:
            del sys.modules[name]
        raise


def _handle(request: dict[str, Any], file: IO[bytes] | None) -> Iterator[tuple[dict[str, Any], bytes]]:
    utilities = sys.modules[_MODULE]
    compiled = _plain if request["plain"] else utilities._compile_jinja_template
    try:
        if request["context"] is None:
            names = sorted(utilities._get_template_variables(request["template"]))
            yield {"names": names}, b""
            return
        text = compiled(request["template"]).render(**request["context"])
        if len(text) > MAX_PROMPT_CHARACTERS:
            raise MemoryError
    except MemoryError:
        raise
    except Exception as error:  # templates can raise anything
        yield {"error": " ".join(str(error).split())[:300] or error.__class__.__name__}, b""
        return
    yield {}, text.encode("utf-8", "surrogatepass")


@cache
def _plain(source: str) -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"]).from_string(source)


if __name__ == "__main__":
    serve(_handle, _prepare)
