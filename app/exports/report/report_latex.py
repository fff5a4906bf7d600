"""A report as a LaTeX document, with its figures as PDF files beside it; it compiles with any engine."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial, singledispatch

from app.exports.export_input import Files
from app.exports.report.report_document import Block, Bullets, Example, Facts, Paragraph, Plot, Report, Shares, Verdict
from app.exports.report.report_inputs import interval
from app.figures.figure_style import to_bytes
from app.report.tables.latex_tables import PREAMBLE, breakable, to_latex
from app.text.text_escaping import latex
from benchmarks.stats.intervals import percent
from benchmarks.vocabulary import Estimate, Table

FOLDER = "figures"
"""The folder of the figures, beside the document."""

EXAMPLE = f"{FOLDER}/example.png"

_FIRST = 0.22
"""The share of a line that row labels take on the first page."""

_SETTINGS = r"""\setlength{\parindent}{0pt}
\setlength{\parskip}{3pt}
\setlength{\belowcaptionskip}{4pt}
\emergencystretch=3em
\makeatletter
\renewcommand\subsection{\@startsection{subsection}{2}{0pt}{1.4ex plus .4ex}{.5ex}{\normalfont\large\bfseries\raggedright}}
\renewcommand\@listi{\leftmargin\leftmargini\topsep 2pt\partopsep 0pt\parsep 0pt\itemsep 1pt}
\let\@listI\@listi
% Tables and figures stay where they are in the text.
\newenvironment{inplace}[1]{\par\medskip\noindent\begin{minipage}{\linewidth}\def\@captype{#1}}{\end{minipage}\par\medskip}
\renewenvironment{table}[1][]{\inplace{table}}{\endinplace}
\renewenvironment{table*}[1][]{\inplace{table}}{\endinplace}
\renewenvironment{figure}[1][]{\inplace{figure}}{\endinplace}
\makeatother
"""


def to_latex_files(report: Report) -> Files:
    """Return ``report.tex`` and its figures."""
    blocks = [*report.first_page, *(block for section in report.sections for block in section.blocks)]
    files: Files = {"report.tex": _document(report)}
    for block in blocks:
        if isinstance(block, Plot):
            files[_figure_path(block)] = to_bytes(block.figure, "pdf")
        if isinstance(block, Example) and block.picture is not None:
            out = io.BytesIO()
            block.picture.save(out, "PNG")
            files[EXAMPLE] = out.getvalue()
    return files


def _document(report: Report) -> str:
    parts = [
        PREAMBLE + _SETTINGS + r"\begin{document}",
        rf"{{\LARGE\bfseries\raggedright {_text(report.title)}\par}}\smallskip",
        rf"{{\raggedright {_text(report.subtitle)}\par}}\bigskip",
        *map(_block, report.first_page),
        r"\clearpage",
    ]
    in_appendix = False
    for section in report.sections:
        if section.appendix and not in_appendix:
            parts.append("\\clearpage\n\\appendix")
            in_appendix = True
        parts.append(rf"\section{{{_text(section.title)}}}")
        parts += map(_block, section.blocks)
    return "\n".join([*parts, *_references(report.references), r"\end{document}", ""])


def _references(references: Sequence[str]) -> Iterator[str]:
    yield rf"\begin{{thebibliography}}{{{len(references)}}}"
    for number, reference in enumerate(references, 1):
        yield rf"\bibitem{{r{number}}} {_text(reference)}"
    yield r"\end{thebibliography}"


@singledispatch
def _block(block: Block | str) -> str:
    """Return the LaTeX of a block; a plain string is a title."""
    return rf"\subsection*{{{_text(str(block))}}}"


@_block.register
def _(block: Verdict) -> str:
    sentences = _text(" ".join(block.sentences))
    return (
        "\\noindent\\fbox{\\parbox{0.97\\linewidth}{\\raggedright\n"
        rf"{{\large\bfseries {_text(block.headline)}\par}}\vspace{{3pt}}"
        f"\n{sentences}\n}}}}\\par\\medskip"
    )


@_block.register
def _(block: Paragraph) -> str:
    return "\n\n".join(map(_text, block.text.split("\n")))


@_block.register
def _(block: Bullets) -> str:
    items = (rf"\item {_bold(name)}{_text(text)}" for name, text in block.items)
    return "\n".join([r"\begin{itemize}", *items, r"\end{itemize}"])


@_block.register
def _(block: Facts) -> str:
    return _description(block.rows)


@_block.register
def _(block: Example) -> str:
    text = "For example:\n" + _description(block.lines)
    if block.picture is None:
        return text
    picture = rf"\includegraphics[width=\linewidth,height=0.15\textheight,keepaspectratio]{{{EXAMPLE}}}"
    return (
        f"\\begin{{minipage}}[t]{{0.62\\linewidth}}\\vspace{{0pt}}\n{text}\n\\end{{minipage}}\\hfill\n"
        f"\\begin{{minipage}}[t]{{0.34\\linewidth}}\\vspace{{0pt}}\\raggedleft\n{picture}\n\\end{{minipage}}\\par"
    )


@_block.register
def _(block: Shares) -> str:
    columns = _column(_FIRST) + _column((1 - _FIRST) / max(1, len(block.columns))) * len(block.columns)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    cell = partial(_cell, r"\raggedright ")
    lines.append(" & ".join(["", *(cell(_text(column)) for column in block.columns)]) + r" \tabularnewline")
    lines.append(r"\midrule")
    for label, remark, shares in block.rows:
        name = breakable(latex(label), 16) + (rf" \newline {{\footnotesize {_text(remark)}}}" if remark else "")
        lines.append(" & ".join([cell(name), *(cell(_share(share)) for share in shares)]) + r" \tabularnewline")
    note = f"In brackets: the range in which the true percentage lies with 95% confidence. {block.remarks}".strip()
    lines += [
        r"\bottomrule",
        r"\end{tabular}\par",
        rf"{{\footnotesize {_text(note)}\par}}",
    ]
    return "\n".join(lines)


@_block.register
def _(block: Plot) -> str:
    return "\n".join(
        [
            r"\begin{figure}[!htbp]",
            r"\centering",
            rf"\includegraphics[width=0.75\linewidth,height=0.6\textheight,keepaspectratio]{{{_figure_path(block)}}}",
            rf"\caption{{{_text(block.caption)}}}",
            r"\end{figure}",
        ]
    )


@_block.register
def _(block: Table) -> str:
    return to_latex(block, of="report")


def _bold(name: str) -> str:
    return rf"\textbf{{{_text(name)}.}} " if name else ""


def _column(share: float) -> str:
    """Return the specification of a column of text that takes a share of the line, its margins included."""
    return rf"p{{\dimexpr{share:.3f}\linewidth-2\tabcolsep\relax}}"


def _cell(before: str, text: str) -> str:
    return f"{before}{text}"


def _share(share: Estimate | None) -> str:
    if share is None or share.value is None:
        return "not asked"
    around = f" [{interval(share)}]" if interval(share) else ""
    return _text(f"{percent(share)}{around}")


def _description(rows: Sequence[tuple[str, str]]) -> str:
    # Not LaTeX's description, whose labels have no line breaks.
    lines = (rf"\hangindent=1.5em\hangafter=1\textbf{{{_text(name)}}}\enspace {_text(text)}\par" for name, text in rows)
    return "\n".join([r"\par{\raggedright", *lines, "}"])


def _figure_path(block: Plot) -> str:
    return f"{FOLDER}/{block.name}.pdf"


def _text(text: str) -> str:
    return breakable(latex(text))
