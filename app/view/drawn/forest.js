// Forest plot: differences with their intervals around a line at zero. It is a table with a drawing in each row.

import { counted, element, markCut, shape } from "./dom.js";

const LIMITS = [1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100]; // the ends of the axis to choose from, in percentage points

const DIRECTIONS = {
  better: { glyph: "▲", word: "better" },
  worse: { glyph: "▼", word: "worse" },
  open: { glyph: "·", word: "not shown to differ" },
  unknown: { glyph: "", word: "not known" },
};

/**
 * Return the plot of `rows`: {label, difference, points, interval}, where a label is a text or an element. Above 0 is better.
 */
export function forestPlot(title, rows, { head = "" } = {}) {
  const limit = axisLimit(rows);
  return element(
    "figure",
    { class: "forest" },
    element("figcaption", {}, title),
    markCut(element(
      "div",
      { class: "box", tabindex: 0, role: "region", "aria-label": title, "data-key": `forest ${title}` },
      element(
        "table",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            element("th", { scope: "col" }, head),
            element(
              "th",
              { scope: "col", class: "axis" },
              element("div", {}, element("span", {}, `-${limit} worse`), element("span", {}, "0"), element("span", {}, `better +${limit}`)),
            ),
            element("th", { scope: "col", title: "Answers that are compared" }, "n"),
            element("th", { scope: "col" }, "points [95% CI]"),
          ),
        ),
        element("tbody", {}, rows.map((row) => forestRow(row, limit / 100))),
      ),
    )),
  );
}

function forestRow(row, limit) {
  const { glyph, word } = DIRECTIONS[directionOf(row.difference)];
  const shown = glyph === "▲" || glyph === "▼";
  return element(
    "tr",
    { class: shown ? "shown" : null },
    element("th", { scope: "row" }, row.label),
    element("td", { class: "plot" }, forestLine(row.difference, limit, `${word}: ${row.points} points ${row.interval}`)),
    element("td", { class: "muted" }, counted(row.difference.n)),
    element(
      "td",
      {},
      element("span", { class: "value" }, row.points),
      row.interval ? element("span", { class: "muted" }, ` ${row.interval}`) : null,
      element("span", { class: shown ? "direction" : "unseen" }, ` ${glyph} ${word}`),
    ),
  );
}

/** Return which way a difference lies: its interval excludes 0, or not. */
function directionOf({ value, low, high }) {
  if (value === null) return "unknown";
  if (low === null || high === null) return "open";
  return low > 0 ? "better" : high < 0 ? "worse" : "open";
}

/** Return the end of the axis in points: the smallest that no interval passes. */
function axisLimit(rows) {
  const ends = rows.flatMap(({ difference }) => [difference.value, difference.low, difference.high]).filter((end) => end !== null);
  const largest = 100 * Math.max(0, ...ends.map(Math.abs));
  return LIMITS.find((limit) => limit >= largest - 1e-9) ?? LIMITS.at(-1);
}

function forestLine({ value, low, high }, limit, text) {
  const place = (share) => 100 + 96 * Math.max(-1, Math.min(1, share / limit));
  const line = (x1, x2, y1, y2, name) => shape("line", { x1, x2, y1, y2, class: name });
  const drawn = [line(100, 100, 0, 20, "zero")];
  if (value !== null && low !== null && high !== null) {
    drawn.push(line(place(low), place(high), 10, 10, "range"));
    for (const end of [low, high]) drawn.push(line(place(end), place(end), 6, 14, "range"));
  }
  if (value !== null) drawn.push(line(place(value), place(value), 10, 10, "point"));
  const options = { viewBox: "0 0 200 20", preserveAspectRatio: "none", role: "img", "aria-label": text };
  return shape("svg", options, shape("title", {}, text), drawn);
}
