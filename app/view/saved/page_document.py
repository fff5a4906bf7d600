"""The page as one document: its style sheets and modules inline, and the policy that allows nothing else.

The contents are data between two parts of the markup; no text of a run is in these.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path

_DRAWN = Path(__file__).resolve().parents[1] / "drawn"
_SHEET = re.compile(r'^<link rel="stylesheet" href="([a-z_]+\.css)">\n', re.MULTILINE)
_MODULE = re.compile(r'^<script type="module" src="([a-z_]+)\.js"></script>\n', re.MULTILINE)
_IMPORT = re.compile(r'^import \{[^}\n]*\} from "\./([a-z_]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|class|const|let)", re.MULTILINE)
_CHARSET = '<meta charset="utf-8">\n'


def document_parts() -> tuple[str, str]:
    """Return the markup before the contents, and that after them."""
    markup = (_DRAWN / "index.html").read_text("utf-8")
    style = "".join((_DRAWN / name).read_text("utf-8") for name in _SHEET.findall(markup))
    code = script()
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src '{source_digest(style)}'; "
        f"script-src '{source_digest(code)}'; base-uri 'none'; form-action 'none'"
    )
    head = f'{_CHARSET}<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    markup = _MODULE.sub("", _SHEET.sub("", markup)).replace(_CHARSET, head)
    before, after = markup.replace("</head>", f"<style>{style}</style>\n</head>").split("</body>")
    return before, f'<script type="module">{code}</script>\n</body>{after}'


def script() -> str:
    """Return all modules of the page as one, without their imports and exports."""
    return "".join(_EXPORT.sub("", _IMPORT.sub("", _source(name))) for name in module_names())


def module_names() -> list[str]:
    """Return the names of the page's modules, each after those that it imports."""
    visited: set[str] = set()
    ordered: list[str] = []

    def add(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        for imported in _IMPORT.findall(_source(name)):
            add(imported)
        ordered.append(name)

    for name in _MODULE.findall((_DRAWN / "index.html").read_text("utf-8")):
        add(name)
    return ordered


def source_digest(text: str) -> str:
    """Return the digest by which a content security policy allows an inline script or style sheet."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _source(name: str) -> str:
    return (_DRAWN / f"{name}.js").read_text("utf-8")
