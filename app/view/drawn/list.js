// The list of instances: only the rows in view are elements, and their texts are read as they come into view.

import { explainAppearance, indexedAppearance, spokenAppearance } from "./appearance.js";
import { FLAGS } from "./columns.js";
import { element, fill, markCut, say } from "./dom.js";

const OVERSCAN = 6; // rows above and below the view that are drawn, too
const PAGE = 100; // rows that are read at a time
const CACHED = 5000;
const rowTexts = new Map(); // rows by number
const requested = new Set();
const rowNodes = new Map(); // elements of rows, by number
let listParts = null; // the elements of the list: { rows, inside, heads, body }
let waiting = 0;
let printing = false;

/** Draw it. */
export function drawList(page) {
  const section = document.getElementById("list");
  const wasHidden = section.hidden;
  section.hidden = page.state.instance !== null;
  if (section.hidden) return;
  if (!page.index) { fill("list", element("p", { class: "empty" }, "Reading the answers …")); return; }
  if (!listParts?.rows.isConnected) buildList(page);
  const places = page.visibleRuns();
  const numbers = page.matching();
  listParts.rows.setAttribute("aria-rowcount", numbers.length + 1);
  listParts.inside.style.setProperty("--runs", places.length);
  listParts.heads.replaceChildren(element("span", { role: "columnheader" }, element("span", {}, "Question")),
    ...places.map((place) => element("span", { role: "columnheader", title: page.head.runs[place].label }, element("span", {}, page.head.runs[place].label))));
  listParts.body.style.height = numbers.length ? `${numbers.length * rowHeight()}px` : "auto";
  if (!numbers.includes(page.cursor)) page.cursor = numbers[0] ?? null;
  listParts.rows.style.setProperty("--above", `${document.getElementById("filters").offsetHeight}px`);
  rowNodes.clear();
  drawRows(page);
  if (wasHidden) reveal(page);
}

function buildList(page) {
  const heads = element("div", { class: "row heads", role: "row" });
  const body = element("div", { class: "body", role: "rowgroup" });
  const inside = element("div", { class: "inside" }, heads, body);
  const rows = element("div", { class: "rows", tabindex: "0", role: "grid", "aria-label": "Instances and answers", onscroll: () => requestAnimationFrame(() => drawRows(page)) }, inside);
  listParts = { rows, inside, heads, body };
  fill("list", markCut(rows));
  new ResizeObserver(() => requestAnimationFrame(() => drawList(page))).observe(rows);
}

function rowHeight() {
  return parseFloat(getComputedStyle(listParts.rows).getPropertyValue("--row")) * parseFloat(getComputedStyle(document.documentElement).fontSize);
}

function drawRows(page) {
  const numbers = page.matching();
  const places = page.visibleRuns();
  const height = rowHeight();
  const first = printing ? 0 : Math.max(0, Math.floor(listParts.rows.scrollTop / height) - OVERSCAN);
  const last = Math.min(numbers.length, printing ? 300 : Math.ceil((listParts.rows.scrollTop + listParts.rows.clientHeight) / height) + OVERSCAN);
  const inView = Array.from(numbers.subarray(first, last));
  const drawn = new Set(inView);
  for (const number of rowNodes.keys()) if (!drawn.has(number)) rowNodes.delete(number);
  const nodes = inView.map((number, offset) => {
    if (!rowNodes.has(number)) rowNodes.set(number, drawRow(page, places, number, first + offset, height));
    const node = rowNodes.get(number);
    node.setAttribute("aria-selected", String(number === page.cursor));
    return node;
  });
  arrange(listParts.body, nodes);
  if (!numbers.length) listParts.body.append(element("p", { class: "empty" }, page.waiting ? "Reading …" : "No instance is selected by these filters."));
  listParts.rows.setAttribute("aria-activedescendant", page.cursor === null ? "" : `row${page.cursor}`);
  if (inView.some((number) => !rowTexts.has(number) && !requested.has(number))) {
    clearTimeout(waiting);
    waiting = setTimeout(readTexts, 50, page, inView);
  }
}

/** Make these the children of an element; those that stay are not touched. */
function arrange(parent, nodes) {
  const staying = new Set(nodes);
  for (const node of [...parent.children]) if (!staying.has(node)) node.remove();
  nodes.forEach((node, place) => { if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null); });
}

function drawRow(page, places, number, position, height) {
  const row = rowTexts.get(number);
  const condition = page.head.conditions[page.index.condition[number]];
  const node = element("div", {
    class: "row", role: "row", id: `row${number}`, "aria-rowindex": position + 2,
    onclick: () => openInstance(page, number),
  }, element("div", { role: "gridcell" }, element("span", {}, row?.question ?? "…"), element("span", { class: "detail" }, element("b", {}, condition), ` ${row?.id ?? ""}`)),
  places.map((place) => {
    const appearance = indexedAppearance(page, number, place);
    const answer = row?.answers[place] ?? "";
    const overridden = Boolean(page.index.runs[place].flags[number] & FLAGS.overridden);
    return element("div", { role: "gridcell", "aria-label": `${spokenAppearance(appearance)}${overridden ? ", overridden" : ""} ${answer}` },
      element("span", { class: `badge ${appearance?.kind ?? "none"}`, title: appearance && explainAppearance(appearance, page.head.runs[place].judge, overridden) }, appearance ? `${appearance.glyph} ${appearance.word}` : "–"),
      element("span", { class: "detail" }, overridden && element("b", { class: "overridden", title: "A person's label is in force" }, "* overridden "), answer));
  }));
  node.style.top = `${position * height}px`;
  return node;
}

/** Read the texts of rows in view, a page at a time. */
async function readTexts(page, inView) {
  const numbers = inView.filter((number) => !rowTexts.has(number) && !requested.has(number)).slice(0, PAGE);
  numbers.forEach((number) => requested.add(number));
  try {
    for (const row of await page.source.rows(numbers)) rowTexts.set(row.number, row);
    for (const number of rowTexts.keys()) { if (rowTexts.size <= CACHED) break; rowTexts.delete(number); }
  } catch (error) {
    say(error.message);
    return; // they stay requested until something changes, so that a server that is gone is not asked again and again
  }
  for (const number of numbers) { requested.delete(number); rowNodes.delete(number); }
  if (!document.getElementById("list").hidden) drawRows(page);
}

/** Forget the texts of rows that have changed; without numbers, of all. */
export function forgetTexts(numbers) {
  requested.clear();
  if (numbers) numbers.forEach((number) => rowTexts.delete(number));
  else rowTexts.clear();
}

/** Bring the list into view, and the focus to its marked row. */
export function focusList() {
  listParts?.rows.focus({ preventScroll: true });
  document.getElementById("filters")?.scrollIntoView();
}

/** Move the cursor by a number of rows; Infinity is the end. The focus goes to the list, so that Enter opens what is marked. */
export function moveCursor(page, by) {
  const numbers = page.matching();
  if (!numbers.length) return;
  listParts.rows.focus({ preventScroll: true });
  const place = Math.min(Math.max(numbers.indexOf(page.cursor) + by, 0), numbers.length - 1);
  page.cursor = numbers[place];
  reveal(page);
}

/** Return the number of whole rows in view. */
export function rowsInView() {
  return Math.max(1, Math.floor(listParts.rows.clientHeight / rowHeight()) - 2);
}

/** Scroll as far as the row at the cursor needs. */
function reveal(page) {
  const height = rowHeight();
  const top = page.matching().indexOf(page.cursor) * height;
  const room = listParts.rows.clientHeight - listParts.heads.offsetHeight - height;
  if (top < listParts.rows.scrollTop) listParts.rows.scrollTop = top;
  else if (top > listParts.rows.scrollTop + room) listParts.rows.scrollTop = top - room;
  if (document.activeElement === document.body) listParts.rows.focus({ preventScroll: true });
  drawRows(page);
  const place = document.getElementById(`row${page.cursor}`)?.getBoundingClientRect();
  if (place && (place.top < 0 || place.bottom > innerHeight)) document.getElementById("filters").scrollIntoView();
}

/** Open an instance; by default that at the cursor. */
export function openInstance(page, number = page.cursor) {
  if (number === null) return;
  page.cursor = number;
  page.set({ instance: number });
}

/** Draw the first rows instead of those in view while the page is printed. */
export function printList(page, now) {
  printing = now;
  if (listParts?.rows.isConnected && !document.getElementById("list").hidden) drawRows(page);
}
