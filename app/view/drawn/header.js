// The header: the title, the runs with their progress, and the theme.

import { policyMark, stateGlyph } from "./appearance.js";
import { button, counted, element, fill } from "./dom.js";
import { focusList } from "./list.js";

const THEME = "rashomon-theme"; // the key in the browser's storage
const systemTheme = matchMedia("(prefers-color-scheme: dark)");

/** Draw it; `help` opens the help. */
export function drawHeader(page, help) {
  document.title = page.head.title;
  fill("header",
    element("div", { class: "title" }, document.getElementById("status"), element("h1", { title: page.head.title }, page.head.title),
      button("", focusList, { id: "to-list", title: "To the list of answers (l)" }),
      button(["◐", element("span", {}, " Theme")], toggleTheme, { class: "quiet", title: "Light or dark (t)", "aria-label": "Theme: light or dark" }), button(["?", element("span", {}, " Keys")], help, { class: "quiet", title: "Keys (?)", "aria-label": "Keys" })),
    element("ul", { class: "runs", id: "runs", "aria-label": "Runs" }));
  drawRuns(page);
}

/** Write the number of instances in the list on the button that leads there. */
export function countMatches(page) {
  fill("to-list", counted(page.index ? page.matching().length : page.head.instances), element("span", {}, " instances"), " ↓");
}

/** Draw the runs with their progress. */
export function drawRuns(page) {
  fill("runs", page.head.runs.map(runChip));
}

/** Return the run's name, which commands take, where its label is another one; else null. */
export function runName({ name, label }) {
  return name === label ? null : element("span", { class: "run-name" }, ` ${name}`);
}

function runChip(run, place) {
  const { name, label, model, is_policy: isPolicy, state, note, problem, done, total, errors, judge } = run;
  const facts = [place === 0 && "baseline", `${counted(done)} of ${counted(total)}`, errors > 0 && `${counted(errors)} ${errors === 1 ? "error" : "errors"}`, judge && `judge ${judge}`].filter(Boolean);
  return element("li", { class: "chip", title: [name, model, note].filter(Boolean).join("\n") },
    element("div", {}, element("b", {}, label), isPolicy && [" ", policyMark()], runName(run)),
    element("span", { class: "facts" }, element("span", {}, `${stateGlyph(state)} ${state}`), facts.map((fact) => element("span", {}, fact))),
    problem && element("span", { class: "problem" }, problem),
    done < total && element("progress", { max: total, value: done, "aria-label": `Progress of ${label}` }));
}

function storedTheme() {
  try { return localStorage.getItem(THEME); } catch { return null; } // a file may have no storage
}

/** Set the theme: the one that was chosen, or that of the system. */
export function setTheme() {
  const stored = storedTheme();
  document.documentElement.dataset.theme = ["light", "dark"].includes(stored) ? stored : systemTheme.matches ? "dark" : "light";
}

/** Change between light and dark, and remember it. */
export function toggleTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem(THEME, theme); } catch { /* it lasts as long as the page */ }
}

/** Follow the system's theme as it changes. */
export function followTheme() {
  setTheme();
  systemTheme.addEventListener("change", setTheme);
}
