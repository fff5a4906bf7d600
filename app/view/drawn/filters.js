// Filters of the list.

import { outcomeWord } from "./appearance.js";
import { countAnswers, countCodes, countFlags, FLAGS, SORTS } from "./columns.js";
import { button, counted, element, fill } from "./dom.js";
import { comparedRun, emptyState, FILTERS } from "./state.js";

const MOST = 200; // values of a menu that are drawn at a time
const CHANGES = { lost: "lost", gained: "gained", differs: "other label" };
let filterBar = null; // what is drawn, and functions that bring it up to date: { key, updates }
let typing = 0;

/** Draw it. */
export function drawFilters(page) {
  const section = document.getElementById("filters");
  section.hidden = page.state.instance !== null;
  if (!page.index) return;
  const { conditions, labels, runs } = page.head;
  const key = JSON.stringify([conditions, labels, runs.map(({ label, judge }) => [label, judge]), [...page.index.strata].map(([name, { values }]) => [name, values.length])]);
  if (filterBar?.key !== key) buildFilters(page, key);
  for (const update of filterBar.updates) update();
}

function buildFilters(page, key) {
  const updates = [];
  filterBar = { key, updates };
  const { head } = page;
  const conditions = head.conditions.map((name) => [name, name]);
  const runs = head.runs.map((run, place) => [place, run.label]);
  const within = (key) => ({ ...page.state, [key]: [] }); // the other filters
  const countOf = (key) => () => countAnswers(page.select(within(key)), page.index, head, within(key), key, head[`${key}s`].length);
  const menus = [
    filterMenu(page, updates, "Condition", conditions, fieldOf(page, "condition"), () => countCodes(page.select(within("condition")), page.index.condition, head.conditions.length)),
    filterMenu(page, updates, "Outcome", head.outcomes.map((name) => [name, outcomeWord(name)]), fieldOf(page, "outcome"), countOf("outcome"), true),
    filterMenu(page, updates, "Label", head.labels.map((name) => [name, name]), fieldOf(page, "label"), countOf("label"), true),
    labelLegend(head),
    filterMenu(page, updates, "Flags", Object.keys(FLAGS).map((name) => [name, name === "disputed" ? "judges disagree" : name]), fieldOf(page, "flag"), () => countFlags(page.select(within("flag")), page.index, head, within("flag")), true),
    runs.length > 1 && filterMenu(page, updates, "In runs", runs, fieldOf(page, "run"), null),
    [...page.index.strata].map(([name, { values }]) => filterMenu(page, updates, name, values.map((value) => [value, value]), stratumOf(page, name), () => countStratum(page, name, values.length))),
  ];
  fill("filters", element("div", { class: "filters", role: "search" },
    searchField(page, updates), foldButton(updates), element("div", { class: "menus" }, menus, runs.length > 1 && [differButton(page, updates), changeFields(page, updates)], sortField(page, updates)), clearButton(page, updates), matchCount(page, updates)));
}

/** Return what each label means, and which judges give them, folded; null where the names of labels say it. */
function labelLegend({ labels, meanings, runs }) {
  const meant = labels.filter((label) => Object.hasOwn(meanings, label));
  if (!meant.length) return null;
  const judges = [...new Set(runs.map(({ judge }) => judge))].filter(Boolean);
  return element("details", { class: "menu legend" },
    element("summary", { class: "control", title: "Meanings of the labels" }, element("span", { "aria-hidden": "true" }, "?"), element("span", { class: "unseen" }, "Meanings of the labels")),
    element("div", {}, element("p", {}, "An answer with this label"), element("dl", { class: "pairs" }, meant.map((label) => [element("dt", {}, label), element("dd", {}, meanings[label])])),
      judges.length > 0 && element("p", { class: "muted" }, `By the ${judges.length > 1 ? "judges" : "judge"} ${judges.join(", ")}, unless a person overrides it.`)));
}

function countStratum(page, name, size) {
  const strata = Object.assign(Object.create(null), page.state.strata);
  delete strata[name];
  return countCodes(page.select({ strata }), page.index.strata.get(name).codes, size + 1).subarray(1);
}

/** Return what the numbers of a menu count. */
function countedWords(page, ofAnswers) {
  const places = page.state.run.length ? page.state.run : page.visibleRuns();
  const of = places.length === 1 ? page.head.runs[places[0]].label : page.state.run.length ? "any of these runs" : page.state.hidden.length ? "any run on display" : "any run";
  return `${ofAnswers ? `Instances with such an answer of ${of}` : "Instances"}${page.isFiltered() ? ", within the other filters" : ""}`;
}

function fieldOf(page, key) {
  return { get: () => page.state[key], set: (values) => page.set({ [key]: values }) };
}

function stratumOf(page, key) {
  const set = (values) => {
    const strata = Object.assign(Object.create(null), page.state.strata);
    if (values.length) strata[key] = values;
    else delete strata[key];
    page.set({ strata });
  };
  return { get: () => page.state.strata[key] ?? [], set };
}

/**
 * Return a menu in which any of several values are chosen; those that no instance has, within the other filters, are left out.
 * The numbers `ofAnswers` are of instances that have such an answer.
 */
function filterMenu(page, updates, title, options, { get, set }, count, ofAnswers = false) {
  const caption = element("span", {}, title);
  const panel = element("div", { role: "group", "aria-label": title });
  const node = element("details", { class: "menu", ontoggle: () => { if (node.open) open(); } }, element("summary", { class: "control" }, caption), panel);
  const toggle = (value, checked) => set(checked ? [...get(), value] : get().filter((item) => item !== value));
  const open = () => {
    for (const other of document.querySelectorAll(".menu[open]")) if (other !== node) other.open = false;
    node.classList.toggle("flush", node.getBoundingClientRect().left > innerWidth / 2);
    const counts = count?.();
    const present = options.map(([value, word], place) => ({ value, word, number: counts?.[place] })).filter(({ value, number }) => number !== 0 || get().includes(value));
    const list = element("div");
    const fillList = (words) => {
      const matching = present.filter(({ word }) => word.toLowerCase().includes(words.toLowerCase()));
      list.replaceChildren(...matching.slice(0, MOST).map(({ value, word, number }) => element("label", {},
        element("input", { type: "checkbox", checked: get().includes(value), onchange: (event) => toggle(value, event.target.checked) }), element("span", {}, word), number !== undefined && element("span", { class: "number" }, counted(number)))));
      if (matching.length > MOST) list.append(element("p", { class: "muted" }, `and ${counted(matching.length - MOST)} more; type a part of one`));
      if (!matching.length) list.append(element("p", { class: "muted" }, "none"));
    };
    panel.replaceChildren(present.length > 12 ? element("input", { type: "search", placeholder: `Find in ${title}`, "aria-label": `Find in ${title}`, oninput: (event) => fillList(event.target.value) }) : "", count ? element("p", { class: "muted" }, countedWords(page, ofAnswers)) : "", list);
    fillList("");
  };
  updates.push(() => {
    const chosen = get();
    const word = options.find(([value]) => value === chosen[0])?.[1] ?? chosen[0];
    caption.textContent = chosen.length ? `${title}: ${word}${chosen.length > 1 ? ` +${chosen.length - 1}` : ""}` : title;
    node.classList.toggle("active", chosen.length > 0);
    if (node.open && !panel.contains(document.activeElement)) open();
  });
  return node;
}

function searchField(page, updates) {
  const search = (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => page.set({ words: event.target.value.trim() }, { replace: true }), event.type === "change" ? 0 : 250);
  };
  const field = element("input", { type: "search", id: "search", placeholder: "Search id, question, answers", "aria-label": "Search id, question and answers", oninput: search, onchange: search });
  updates.push(() => { if (document.activeElement !== field) field.value = page.state.words; });
  return field;
}

/** Return the button that unfolds the menus on a narrow screen. */
function foldButton(updates) {
  const node = button("Filters", () => { node.parentNode.classList.toggle("unfolded"); update(); }, { class: "fold" });
  const update = () => node.setAttribute("aria-expanded", String(Boolean(node.parentNode?.classList.contains("unfolded"))));
  updates.push(update);
  return node;
}

function differButton(page, updates) {
  const node = button("Runs differ", () => page.set({ differ: !page.state.differ }));
  updates.push(() => node.setAttribute("aria-pressed", String(page.state.differ)));
  return node;
}

/** Return the choice of what has changed beside the baseline, and of the run in which. */
function changeFields(page, updates) {
  const what = element("select", { "aria-label": "Changed beside the baseline", onchange: () => page.set({ changed: what.value }) });
  const run = element("select", { "aria-label": "Run that is compared with the baseline", onchange: () => page.set({ against: Number(run.value) }) });
  updates.push(() => {
    const pairOf = page.overview?.pairs.find((item) => item.run === comparedRun(page));
    const { changed } = page.state;
    const options = Object.entries(CHANGES);
    if (changed && !Object.hasOwn(CHANGES, changed)) options.push([changed, changed.replace(">", " → ")]); // a label that became another
    what.replaceChildren(element("option", { value: "" }, "Changed: any"), ...options.map(([value, word]) =>
      element("option", { value }, pairOf ? `${pairOf[value] ?? word} (${counted(pairOf.changes[value]?.length ?? 0)})` : word)));
    what.value = page.state.changed;
    run.replaceChildren(...page.head.runs.slice(1).map(({ label }, place) => element("option", { value: place + 1 }, `by ${label}`)));
    run.value = String(comparedRun(page));
    run.hidden = page.head.runs.length < 3 || !page.state.changed;
  });
  return [what, run];
}

function sortField(page, updates) {
  const sorts = Object.entries(SORTS).filter(([value]) => value !== "changed" || page.head.runs.length > 1);
  const field = element("select", { "aria-label": "Order", title: "Most changed: right turned wrong or wrong turned right first, then other labels than the baseline's", onchange: () => page.set({ sort: field.value }) },
    sorts.map(([value, word]) => element("option", { value }, `Order: ${word}`)));
  updates.push(() => { field.value = page.state.sort; });
  return field;
}

function clearButton(page, updates) {
  const node = button("Clear", () => {
    const empty = emptyState();
    page.set(Object.fromEntries(FILTERS.map((key) => [key, empty[key]])));
  });
  updates.push(() => { node.hidden = !page.isFiltered(); });
  return node;
}

function matchCount(page, updates) {
  const node = element("span", { class: "count", role: "status" });
  updates.push(() => {
    const all = counted(page.index.size);
    node.textContent = page.waiting ? "reading …" : page.isFiltered() ? `${counted(page.matching().length)} of ${all}` : `${all} instances`;
  });
  return node;
}

/** Close menus, but one that has this element. */
export function closeMenus(target = null) {
  const menus = [...document.querySelectorAll(".menu[open]")].filter((node) => !node.contains(target));
  for (const node of menus) {
    if (node.contains(document.activeElement)) node.querySelector("summary").focus();
    node.open = false;
  }
  return menus.length > 0;
}
