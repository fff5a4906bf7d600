// Results above the answers: the verdict, the scorecard, differences, transitions, and what would change them.

import { counted, element, say } from "./dom.js";
import { forestPlot } from "./forest.js";
import { foldedPart, printedTable, tableNotes, textLines } from "./tables.js";

const NARROW = "(max-width: 699px)";
const NEXT = "What would change it";
const LEAST_WAIT = 500; // milliseconds from the end of a computation to the next one of a run in progress
const TABLES_BESIDE = ["without-looking"]; // tables on what takes no looking, which stand beside the first one

const results = { page: null, wanted: null, error: "", drawn: null, open: null, age: null };

/** Draw the results, and fetch them where those on display are not of the page's revision. */
export function drawOverview(page) {
  if (results.page !== page) Object.assign(results, { page, wanted: null, error: "", drawn: null });
  fetchOverview(page);
  const { against, changed } = page.state;
  const drawn = [page.overview, results.error, results.wanted !== null && !page.overview, against, changed];
  if (!results.drawn?.every((value, place) => value === drawn[place])) {
    results.drawn = drawn;
    results.age = element("span", { class: "muted age" });
    const root = document.getElementById("overview");
    const parts = rememberParts(root);
    root.replaceChildren(resultsPanel(page));
    restoreParts(root, parts);
  }
  results.age.textContent = resultsAge(page);
}

/** Say of which answers the results are where the runs have changed since; else "". */
function resultsAge({ overview, head, revision }) {
  if (!overview || results.error || overview.revision >= (revision ?? head.revision)) return "";
  const behind = head.runs.map(({ label, done }, place) => ({ label, done, before: overview.done[place] ?? done })).filter(({ done, before }) => done !== before);
  const answers = behind.map(({ label, before }) => `${counted(before)} answers of ${label}`).join(" and the first ");
  return `Results ${answers ? `of the first ${answers}` : "before the last change"}; computing …`;
}

function fetchOverview(page) {
  const revision = page.revision ?? page.head.revision;
  if (results.wanted !== null || results.error || (page.overview && page.overview.revision >= revision)) return;
  results.wanted = revision;
  const wait = page.overview ? LEAST_WAIT : 0;
  setTimeout(async () => {
    try {
      const overview = await page.source.overview();
      if (!overview) throw new Error("There are no results here.");
      page.overview = overview;
    } catch (error) {
      results.error = error.message;
    }
    results.wanted = null;
    page.draw();
  }, wait);
}

// --- the whole -----------------------------------------------------------------------------------

function resultsPanel(page) {
  const overview = page.overview;
  if (results.error && !overview) return problemPanel(results.error, retryButton(page));
  if (!overview) return problemPanel("Results: computing …");
  if (overview.problem !== null) return problemPanel(overview.problem);
  const pair = pairOf(page);
  const [verdict, ...more] = pair ? pair.verdict : overview.headlines;
  const open = results.open ?? !matchMedia(NARROW).matches;
  const summary = element("summary", {}, element("h2", {}, verdict ?? "No answer counts yet."), overview.warnings.length ? warningCount(overview) : null, results.age);
  const panel = element("details", { class: "results", open, "data-key": "results" }, summary);
  panel.addEventListener("toggle", () => { results.open = panel.open; });
  if (results.error) panel.append(element("p", { class: "warning" }, `! ${results.error} `, retryButton(page)));
  panel.append(
    element("div", { class: "lines" }, more.map((line) => element("p", {}, line)), overview.remarks.map((line) => element("p", {}, line))),
    ...overview.warnings.map((line) => element("p", { class: "warning" }, `! ${line}`)),
    ...adviceOf(overview),
    element("div", { class: "sides" }, firstTables(overview), pair ? pairParts(page, pair) : nextPart(overview)),
    ...foldedParts(page, overview, pair),
  );
  return panel;
}

function problemPanel(text, button = null) {
  return element("div", { class: "results" }, element("p", { class: "verdict" }, text), button);
}

function retryButton(page) {
  const again = () => { results.error = ""; page.draw(); };
  return element("button", { type: "button", onclick: again, "data-key": "again" }, "Try again");
}

function warningCount({ warnings }) {
  return element("span", { class: "warning" }, warnings.length > 1 ? `! ${warnings.length} warnings` : "! 1 warning");
}

/** Return the summary of the recommendation. */
function adviceOf({ recommendation }) {
  const summary = recommendation.filter((section) => section.title === "").flatMap((section) => section.lines);
  return summary.length ? [element("p", { class: "advice" }, element("strong", {}, "Recommendation: "), summary.join(" "))] : [];
}

/** Return the table that a user reads first, and the one on what takes no looking. */
function firstTables(overview) {
  const tables = overview.tables.filter((table) => isFirst(overview, table));
  const broad = tables.some((table) => table.columns.length > 3);
  return element("div", { class: broad ? "side broad" : "side first" }, tables.map((table) => [
    element("h3", {}, table.title),
    printedTable(table, { bars: table.name === "scorecard" }),
    tableNotes(table),
  ]));
}

function isFirst(overview, table) {
  return table.name === overview.lead || TABLES_BESIDE.includes(table.name);
}

function foldedParts(page, overview, pair) {
  const others = overview.tables.filter((table) => !isFirst(overview, table));
  const reasons = overview.recommendation.filter((section) => section.title !== "");
  return [
    pair && overview.next.length ? changeParts(overview) : null,
    reasons.length ? foldedPart("reasons", "Why this recommendation", reasons.map(sectionOf)) : null,
    pair ? foldedPart("runs", "Each run in a sentence", [textLines(overview.headlines)]) : null,
    tableList(page, "More tables", others),
    tableList(page, "Tables of the comparison", overview.comparison),
  ].filter(Boolean);
}

/** Return what would change or decide the verdict of a single run. */
function nextPart({ next }) {
  return next.length ? element("div", { class: "side" }, element("h3", {}, NEXT), next.map(sectionOf)) : [];
}

/** Return what would change or decide the verdict on several runs, folded to its first sentence. */
function changeParts({ next }) {
  const title = [`${NEXT} `, element("span", { class: "muted" }, next[0].lines[0])];
  return foldedPart("next", title, next.map(sectionOf));
}

function sectionOf(section) {
  return [element("h4", {}, section.title), textLines(section.lines)];
}

function tableList(page, title, tables) {
  if (!tables.length) return null;
  const folded = tables.map((table) => {
    const open = page.state.table === table.name;
    const note = (event) => page.set({ table: event.currentTarget.parentNode.open ? "" : table.name }, { replace: true });
    return foldedPart(`table ${table.name}`, table.title, [printedTable(table), tableNotes(table, { open: true })], open, { onclick: note });
  });
  const open = tables.some((table) => table.name === page.state.table);
  return foldedPart(title, `${title} (${tables.length})`, folded, open);
}

// --- a run beside the baseline -------------------------------------------------------------------

/** Return the pair of the run that the state compares with the baseline; null with a single run. */
function pairOf(page) {
  const pairs = page.overview.pairs;
  return pairs.find((pair) => pair.run === page.state.against) ?? pairs[0] ?? null;
}

function pairParts(page, pair) {
  const baseline = page.head.runs[0].label;
  const name = page.head.runs[pair.run].label;
  const title = `Accuracy: ${name} less ${baseline}, in percentage points`;
  const rows = pair.conditions.map((row) => ({ ...row, label: row.condition }));
  const choice = page.overview.pairs.length > 1 ? runChoice(page, pair, baseline) : null;
  return [
    element("div", { class: "side" }, choice, forestPlot(title, rows, { head: "condition" })),
    element("div", { class: "side" }, transitions(page, pair, baseline, name)),
  ];
}

/** Return the choice of the run to compare with the baseline, as a plot of all of them. */
function runChoice(page, chosen, baseline) {
  const rows = page.overview.pairs.filter((pair) => pair.conditions.length).map((pair) => {
    const attributes = { type: "button", class: "choice", "aria-pressed": String(pair === chosen), "data-key": `against ${pair.run}` };
    const button = element("button", { ...attributes, onclick: () => page.set({ against: pair.run }) }, page.head.runs[pair.run].label);
    return { ...pair.conditions[0], label: button };
  });
  return forestPlot(`Each run less ${baseline}: ${page.overview.pairs[0].conditions[0]?.condition ?? ""}`, rows, { head: "compare with" });
}

/** Return which label became which. A cell lists its instances below; pressed again, it lists all. */
function transitions(page, pair, baseline, name) {
  const heads = pair.outcomes.map((label) => element("th", { scope: "col" }, label));
  const rows = pair.outcomes.map((was, row) =>
    element("tr", {}, element("th", { scope: "row" }, was), pair.outcomes.map((now, column) => {
      const count = pair.label_counts[row][column];
      if (row === column) return element("td", { class: "same" }, String(count || "·"));
      return element("td", {}, count ? changeButton(page, pair, `${was}>${now}`, String(count), `${count} from ${was} to ${now}`) : "·");
    })),
  );
  const title = `Which label became which: ${baseline} (rows) to ${name} (columns)`;
  return element(
    "div",
    { class: "transitions" },
    element("h3", {}, title),
    element(
      "p",
      { class: "changes" },
      changeButton(page, pair, "lost", `▼ ${pair.changes.lost?.length ?? 0} lost`),
      changeButton(page, pair, "gained", `▲ ${pair.changes.gained?.length ?? 0} gained`),
      changeButton(page, pair, "differs", `≠ ${pair.changes.differs?.length ?? 0} differ`),
    ),
    element("p", { class: "muted" }, pair.meaning),
    element(
      "div",
      { class: "box", tabindex: 0, role: "region", "aria-label": title, "data-key": "transitions" },
      element("table", { class: "printed" }, element("thead", {}, element("tr", {}, element("td", {}), heads)), element("tbody", {}, rows)),
    ),
  );
}

function changeButton(page, pair, change, text, spoken = text) {
  const count = pair.changes[change]?.length ?? 0;
  const pressed = page.state.changed === change && pairOf(page) === pair;
  const list = () => {
    page.set({ changed: pressed ? "" : change, against: pair.run });
    if (pressed) return;
    say(`Listed below: ${spoken}.`);
    document.getElementById("list").scrollIntoView({ block: "start" });
  };
  const attributes = { type: "button", disabled: !count && !pressed, "aria-pressed": String(pressed), "data-key": `change ${change}` };
  return element("button", { ...attributes, "aria-label": `List ${spoken}`, onclick: list }, text);
}

// --- drawing again -------------------------------------------------------------------------------

/** Return what the user did to the parts on display: unfolded, scrolled, focused. */
function rememberParts(root) {
  const parts = new Map();
  for (const node of root.querySelectorAll("[data-key]")) {
    parts.set(node.dataset.key, { open: node.open, left: node.scrollLeft, top: node.scrollTop });
  }
  const focused = root.contains(document.activeElement) ? document.activeElement.closest("[data-key]") : null;
  return { parts, key: focused?.dataset.key, isSummary: document.activeElement?.tagName === "SUMMARY" };
}

function restoreParts(root, { parts, key, isSummary }) {
  for (const node of root.querySelectorAll("[data-key]")) {
    const part = parts.get(node.dataset.key);
    if (part && node.tagName === "DETAILS") node.open = part.open;
    if (part) Object.assign(node, { scrollLeft: part.left, scrollTop: part.top });
    if (node.dataset.key === key) (isSummary ? node.querySelector("summary") : node)?.focus({ preventScroll: true });
  }
}
