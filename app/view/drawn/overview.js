// Results above the answers: the verdict, the scorecard, differences, transitions, and what would change them.

import { policyMark } from "./appearance.js";
import { FLAGS } from "./columns.js";
import { counted, element, markCut } from "./dom.js";
import { forestPlot } from "./forest.js";
import { focusList } from "./list.js";
import { comparedRun } from "./state.js";
import { foldedPart, printedTable, tableNotes, textLines } from "./tables.js";

const NARROW = "(max-width: 699px)";
const COMPUTING = "The comparison of the runs: computing …";
const NEXT = "What would change it";
const LEAST_WAIT = 500; // milliseconds from the end of a computation to the next one of a run in progress
const TABLES_BESIDE = ["without-looking"]; // tables on what takes no looking, which stand beside the first one

const keptTables = new WeakMap();
const results = { page: null, wanted: null, error: "", drawn: null, open: null, age: null };

/** Draw the results, and fetch them where those on display are not of the page's revision. */
export function drawOverview(page) {
  if (results.page !== page) Object.assign(results, { page, wanted: null, error: "", drawn: null });
  fetchOverview(page);
  const overridden = countOverrides(page);
  const drawn = [page.overview, results.error, results.wanted !== null && !page.overview, comparedRun(page), page.state.changed, overridden];
  if (!results.drawn?.every((value, place) => value === drawn[place])) {
    results.drawn = drawn;
    results.age = element("span", { class: "muted age" });
    const root = document.getElementById("overview");
    const parts = rememberParts(root);
    root.replaceChildren(resultsPanel(page, overridden));
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
  if (results.wanted !== null || results.error || (page.overview?.complete && page.overview.revision >= revision)) return;
  results.wanted = revision;
  const wait = page.overview ? LEAST_WAIT : 0;
  setTimeout(async () => {
    try {
      const first = page.overview ? null : await page.source.firstResults();
      if (first) page.overview = first;
      if (first && !first.complete) page.draw();
      if (!first?.complete) page.overview = await page.source.overview();
    } catch (error) {
      results.error = error.message;
    }
    results.wanted = null;
    page.draw();
  }, wait);
}

// --- the whole -----------------------------------------------------------------------------------

function resultsPanel(page, overridden) {
  const overview = page.overview;
  if (results.error && !overview) return problemPanel(results.error, retryButton(page));
  if (!overview) return problemPanel("Results: computing …");
  if (overview.problem !== null) return problemPanel(overview.problem);
  const pair = pairOf(page);
  const first = overview.complete ? overview.headlines : [overview.headlines[0], ...(results.error ? [] : [COMPUTING])];
  const [verdict, ...more] = pair ? pair.verdict : first;
  const open = results.open ?? !matchMedia(NARROW).matches;
  const summary = element("summary", {}, element("h2", {}, verdict ?? "No answer counts yet."), overview.warnings.length ? warningCount(overview) : null,
    overridden ? element("p", { class: "overrides" }, overrideNote(overridden)) : null, results.age);
  const panel = element("details", { class: "results", open, "data-key": "results" }, summary);
  panel.addEventListener("toggle", () => { results.open = panel.open; });
  if (results.error) panel.append(element("p", { class: "warning" }, `! ${results.error} `, retryButton(page)));
  panel.append(
    element("div", { class: "lines" }, more.map((line) => element("p", {}, line)), overview.remarks.map((line) => element("p", {}, line))),
    ...overview.warnings.map((line) => element("p", { class: "warning" }, `! ${line}`)),
    ...adviceOf(overview),
    element("div", { class: "sides" }, firstTables(page, overview), pair ? pairParts(page, pair) : nextPart(overview)),
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

/** Return the number of labels that a person has overridden. */
function countOverrides({ index }) {
  let count = 0;
  for (const { flags } of index?.runs ?? []) for (const bits of flags) count += bits & FLAGS.overridden;
  return count;
}

function overrideNote(count) {
  const [labels, them] = count > 1 ? ["labels are", "them"] : ["label is", "it"];
  return `* ${counted(count)} ${labels} overridden: the list shows ${them}, these results are the judge's.`;
}

/** Return the summary of the recommendation. */
function adviceOf({ recommendation }) {
  const summary = recommendation.filter((section) => section.title === "").flatMap((section) => section.lines);
  return summary.length ? [element("p", { class: "advice" }, element("strong", {}, "Recommendation: "), summary.join(" "))] : [];
}

/** Return the table that a user reads first, and the one on what takes no looking. */
function firstTables(page, overview) {
  const marks = new Map(page.head.runs.filter((run) => run.is_policy).map(({ label }) => [label, policyMark()]));
  const tables = overview.tables.filter((table) => isFirst(overview, table));
  const broad = tables.some((table) => table.columns.length > 3);
  return element("div", { class: broad ? "side broad" : "side first" }, tables.map((table) => [
    element("h3", {}, table.title),
    printedTable(table, table.name === "scorecard" ? { bars: true, marks } : {}),
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
    pair || !overview.complete ? foldedPart("runs", "Each run in a sentence", [textLines(overview.headlines)]) : null,
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

/** Return a table as it was drawn before, if it was; of 20 runs, all tables are 100,000 elements. */
function keptTable(table) {
  if (!keptTables.has(table)) keptTables.set(table, printedTable(table));
  return keptTables.get(table);
}

function tableList(page, title, tables) {
  if (!tables.length) return null;
  const folded = tables.map((table) => {
    const open = page.state.table === table.name;
    const note = (event) => page.set({ table: event.currentTarget.parentNode.open ? "" : table.name }, { replace: true });
    return foldedPart(`table ${table.name}`, table.title, [keptTable(table), tableNotes(table, { open: true })], open, { onclick: note });
  });
  const open = tables.some((table) => table.name === page.state.table);
  return foldedPart(title, `${title} (${tables.length})`, folded, open);
}

// --- a run beside the baseline -------------------------------------------------------------------

/** Return the pair of the run that the state compares with the baseline; null with a single run. */
function pairOf(page) {
  const pairs = page.overview.pairs;
  return pairs.find((pair) => pair.run === comparedRun(page)) ?? pairs[0] ?? null;
}

function pairParts(page, pair) {
  const baseline = page.head.runs[0].label;
  const name = page.head.runs[pair.run].label;
  const title = `Accuracy: ${name} minus ${baseline}, in percentage points`;
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
  return forestPlot(`Accuracy of each run minus ${baseline}: ${page.overview.pairs[0].conditions[0]?.condition ?? ""}`, rows, { head: "compare with" });
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
      changeButton(page, pair, "lost", `▼ ${pair.changes.lost?.length ?? 0} ${pair.lost}`),
      changeButton(page, pair, "gained", `▲ ${pair.changes.gained?.length ?? 0} ${pair.gained}`),
      changeButton(page, pair, "differs", `≠ ${pair.changes.differs?.length ?? 0} differ`),
    ),
    pair.meaning ? element("p", { class: "muted" }, pair.meaning) : null,
    markCut(element(
      "div",
      { class: "box", tabindex: 0, role: "region", "aria-label": title, "data-key": "transitions" },
      element("table", { class: "printed" }, element("thead", {}, element("tr", {}, element("td", {}), heads)), element("tbody", {}, rows)),
    )),
  );
}

function changeButton(page, pair, change, text, spoken = text) {
  const count = pair.changes[change]?.length ?? 0;
  const pressed = page.state.changed === change && pairOf(page) === pair;
  const list = () => {
    page.set({ changed: pressed ? "" : change, against: pair.run });
    if (!pressed) focusList();
  };
  const attributes = { type: "button", disabled: !count && !pressed, "aria-pressed": String(pressed), "data-key": `change ${change}` };
  return element("button", { ...attributes, "aria-label": `List ${spoken}`, onclick: list }, text);
}

// --- drawing again -------------------------------------------------------------------------------

/** Return what the user did to the parts on display: unfolded, scrolled, focused. */
function rememberParts(root) {
  const parts = new Map();
  for (const node of root.querySelectorAll("[data-key]")) {
    const isFolded = node.closest("details:not([open])") !== null; // where reading a place would lay out all that is folded
    parts.set(node.dataset.key, { open: node.open, left: isFolded ? 0 : node.scrollLeft, top: isFolded ? 0 : node.scrollTop });
  }
  const focused = root.contains(document.activeElement) ? document.activeElement.closest("[data-key]") : null;
  return { parts, key: focused?.dataset.key, isSummary: document.activeElement?.tagName === "SUMMARY" };
}

function restoreParts(root, { parts, key, isSummary }) {
  for (const node of root.querySelectorAll("[data-key]")) {
    const part = parts.get(node.dataset.key);
    if (part && node.tagName === "DETAILS") node.open = part.open;
    if (part?.left || part?.top) Object.assign(node, { scrollLeft: part.left, scrollTop: part.top });
    if (node.dataset.key === key) (isSummary ? node.querySelector("summary") : node)?.focus({ preventScroll: true });
  }
}
