"""Small .xlsx and .ods workbooks, as Excel and LibreOffice write them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


@dataclass(frozen=True)
class Cell:
    """A cell: a value with the code of its number format, and a formula; without a value it was never calculated."""

    value: str | float | bool | None = None
    code: str = ""
    formula: str = ""
    error: str = ""


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet from row 1 on.

    ``merged`` are ranges such as ``A2:A4``, ``hidden`` the numbers of hidden rows, ``hidden_columns`` those of columns from 1.
    """

    rows: Sequence[Sequence[Any]]
    merged: Sequence[str] = ()
    hidden: Sequence[int] = ()
    state: str = "visible"
    hidden_columns: Sequence[int] = ()


def _letters(column: int) -> str:
    return (_letters(column // 26 - 1) if column >= 26 else "") + chr(ord("A") + column % 26)


def write_xlsx(path: Path, sheets: Mapping[str, Sheet], *, shared: bool = True) -> Path:
    """Write a workbook; texts are shared as Excel writes them, or else in the cells."""
    strings: dict[str, int] = {}
    codes: dict[str, int] = {"": 0}

    def cell(reference: str, value: Cell | str | float | bool | None) -> str:
        own = value if isinstance(value, Cell) else Cell(value)
        style = f' s="{codes.setdefault(own.code, len(codes))}"' if own.code else ""
        formula = f"<f>{escape(own.formula)}</f>" if own.formula else ""
        if own.error:
            return f'<c r="{reference}"{style} t="e">{formula}<v>{own.error}</v></c>'
        match own.value:
            case None:
                return f'<c r="{reference}"{style}>{formula}</c>' if formula or style else ""
            case bool():
                return f'<c r="{reference}"{style} t="b">{formula}<v>{int(own.value)}</v></c>'
            case str() if formula:
                return f'<c r="{reference}"{style} t="str">{formula}<v>{escape(own.value)}</v></c>'
            case str() if shared:
                number = strings.setdefault(own.value, len(strings))
                return f'<c r="{reference}"{style} t="s"><v>{number}</v></c>'
            case str():
                return f'<c r="{reference}"{style} t="inlineStr"><is><t>{escape(own.value)}</t></is></c>'
        return f'<c r="{reference}"{style}>{formula}<v>{own.value!r}</v></c>'

    def rows(sheet: Sheet) -> str:
        parts = []
        for number, row in enumerate(sheet.rows, 1):
            cells = "".join(cell(f"{_letters(column)}{number}", value) for column, value in enumerate(row))
            hidden = ' hidden="1"' if number in sheet.hidden else ""
            parts.append(f'<row r="{number}"{hidden}>{cells}</row>' if cells or hidden else "")
        return "".join(parts)

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        names, links = "", ""
        for place, (name, sheet) in enumerate(sheets.items(), 1):
            merged = "".join(f'<mergeCell ref="{span}"/>' for span in sheet.merged)
            merged = f"<mergeCells>{merged}</mergeCells>" if merged else ""
            columns = "".join(f'<col min="{n}" max="{n}" width="9" hidden="1"/>' for n in sheet.hidden_columns)
            columns = f"<cols>{columns}</cols>" if columns else ""
            body = f'<worksheet xmlns="{MAIN}">{columns}<sheetData>{rows(sheet)}</sheetData>{merged}</worksheet>'
            archive.writestr(f"xl/worksheets/sheet{place}.xml", body)
            names += f'<sheet name={quoteattr(name)} sheetId="{place}" state="{sheet.state}" r:id="rId{place}"/>'
            target = f"worksheets/sheet{place}.xml"
            links += f'<Relationship Id="rId{place}" Type="{RELATIONS}/worksheet" Target="{target}"/>'
        for kind, target in (("styles", "styles.xml"), ("sharedStrings", "sharedStrings.xml")):
            links += f'<Relationship Id="{kind}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        formats = "".join(
            f'<numFmt numFmtId="{164 + style}" formatCode={quoteattr(code)}/>' for code, style in codes.items() if code
        )
        styles = "".join(f'<xf numFmtId="{164 + style if code else 0}"/>' for code, style in codes.items())
        texts = "".join(f'<si><t xml:space="preserve">{escape(text)}</t></si>' for text in strings)
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{MAIN}"><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>',
        )
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{texts}</sst>')
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{names}</sheets></workbook>'
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" Type="{RELATIONS}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}"/></Types>',
        )
    return path


ODS_NAMES = "".join(
    f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text", "style")
)


def ods_cell(text: str, kind: str = "string", **attributes: str) -> str:
    """Return the XML of a cell; the names of ``attributes`` have a low line for the colon, and for the hyphens that follow."""
    values = "".join(f" {n.replace('_', ':', 1).replace('_', '-')}={quoteattr(v)}" for n, v in attributes.items())
    paragraphs = "".join(f"<text:p>{escape(line)}</text:p>" for line in text.split("\n")) if text else ""
    return f'<table:table-cell office:value-type="{kind}"{values}>{paragraphs}</table:table-cell>'


def write_ods(path: Path, sheets: Mapping[str, Sequence[Sequence[str]]], hidden: Sequence[str] = ()) -> Path:
    """Write a workbook of rows of cells as :func:`ods_cell` returns them; a row may also be a whole row's XML."""
    tables = ""
    for name, rows in sheets.items():
        body = "".join(r if isinstance(r, str) else f"<table:table-row>{''.join(r)}</table:table-row>" for r in rows)
        style = ' table:style-name="off"' if name in hidden else ""
        tables += f"<table:table table:name={quoteattr(name)}{style}>{body}</table:table>"
    off = '<style:style style:name="off" style:family="table"><style:table-properties table:display="false"/></style:style>'
    content = (
        f"<office:document-content{ODS_NAMES}><office:automatic-styles>{off}</office:automatic-styles><office:body>"
        f"<office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return path
