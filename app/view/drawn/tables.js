// Tables as they are printed: every cell is the text that the terminal and the exports have.

import { counted, element, markCut, shape } from "./dom.js";

const PROSE = 32; // the characters from which a cell is wrapped

/**
 * Return a table in a box of its own that scrolls sideways. With `bars`, intervals of shares are drawn below their values;
 * `marks` are elements by the column beside whose head they stand.
 */
export function printedTable(table, { bars = false, marks = new Map() } = {}) {
  const heads = table.columns.map((column) => element("th", { scope: "col" }, column, marks.get(column)));
  const rows = table.rows.map((row) =>
    element("tr", {}, element("th", { scope: "row" }, row.label), row.cells.map((cell) => printedCell(cell, bars))),
  );
  const box = element(
    "div",
    { class: "box", tabindex: 0, role: "region", "aria-label": table.title, "data-key": `box ${table.name}` },
    element(
      "table",
      { class: "printed" },
      element("caption", { class: "unseen" }, table.title),
      element("thead", {}, element("tr", {}, element("td", {}), heads)),
      element("tbody", {}, rows),
    ),
  );
  return markCut(box);
}

/** Return the notes of a table as a list, folded. */
export function tableNotes(table, { open = false } = {}) {
  if (!table.notes.length) return null;
  const title = table.notes.length > 1 ? `${table.notes.length} notes` : "1 note";
  return foldedPart(`notes ${table.name}`, title, [textLines(table.notes)], open);
}

/** Return a list of sentences. */
export function textLines(lines) {
  return element("ul", { class: "sentences" }, lines.map((line) => element("li", {}, line)));
}

/** Return a part that is folded; it stays as the user leaves it when the results are drawn again. */
export function foldedPart(key, title, children, open = false, more = {}) {
  return element("details", { class: "folded", open, "data-key": key }, element("summary", more, ...[title].flat()), children);
}

function printedCell(cell, bars) {
  if (cell.text.length >= PROSE && !cell.estimate) return element("td", { class: "prose" }, cell.text);
  const { value, low, high } = cell.estimate ?? {};
  const drawn = bars && isShare(value) && isShare(low) && isShare(high);
  const name = cell.estimate && value === null ? "muted" : !cell.estimate && /\p{L}/u.test(cell.text) ? "word" : null;
  return element("td", { class: name, title: cell.estimate && countOf(cell.estimate) }, cell.estimate ? estimateText(cell.text) : cell.text, drawn ? intervalBar(value, low, high) : null);
}

/** Return the text of an estimate, whose interval may be on a line of its own, but not on two. */
function estimateText(text) {
  const place = text.indexOf(" [") + 1;
  return place ? [text.slice(0, place), element("span", { class: "whole" }, text.slice(place))] : text;
}

/** Return the number of answers behind an estimate. */
function countOf({ n, missing }) {
  return missing ? `n = ${counted(n)}; ${counted(missing)} more have no label` : `n = ${counted(n)}`;
}

function isShare(number) {
  return typeof number === "number" && number >= 0 && number <= 1;
}

function intervalBar(value, low, high) {
  const line = (from, to, name) => shape("line", { x1: 100 * from, x2: 100 * to, y1: 3, y2: 3, class: name });
  return shape(
    "svg",
    { class: "interval", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    line(0, 1, "scale"),
    line(low, high, "range"),
    line(value, value, "point"),
  );
}
