// The open instance: the question on the left, a column for each run.

import { drawAnswer, drawPrompt, folded, pairList } from "./answer.js";
import { badge, indexedAppearance } from "./appearance.js";
import { button, counted, element, fill } from "./dom.js";
import { focusList } from "./list.js";
import { drawMedia, togglePicture } from "./media.js";

let openPart = null; // what is on display: { instance, body, answers, revision }
let awaited = null; // the number and revision that is being read

/** Draw it, and read it first where it is another one or has changed. */
export function drawInstance(page) {
  const section = document.getElementById("instance");
  const { instance: number } = page.state;
  section.hidden = number === null;
  document.body.classList.toggle("open", number !== null);
  if (number === null) { openPart = awaited = null; page.shown = page.displayed = null; section.replaceChildren(); return; }
  if (openPart?.instance.number === number) drawAround(page);
  if (openPart?.instance.number !== number || openPart.revision !== page.instanceRevision) read(page, number);
}

async function read(page, number) {
  const { instanceRevision: revision } = page;
  const key = `${number} ${revision}`;
  if (awaited === key) return;
  awaited = key;
  try {
    const instance = await page.source.instance(number);
    if (awaited !== key || page.state.instance !== number) return; // another one has been opened since
    if (openPart?.instance.number === number) Object.assign(openPart, { instance, revision });
    else display(page, instance, revision);
    page.shown = instance;
    drawAround(page);
    drawAnswers(page);
  } catch (error) {
    if (awaited !== key) return;
    if (openPart?.instance.number !== number) { openPart = null; fill("instance", element("div", { class: "bar" }, backButton(page)), element("p", { class: "problem" }, error.message)); }
  } finally {
    if (awaited === key) awaited = null;
  }
}

/** Display another instance, with its media; these stay as they are while answers arrive. */
function display(page, instance, revision) {
  const media = drawMedia(instance.media);
  const question = element("div", { class: "question", tabindex: "0", role: "region", "aria-label": "Question" },
    media.node, element("h2", { class: "text" }, instance.question),
    titled("References", pairList(Object.entries(instance.references).map(([source, values]) => [source, values.join(" · ")]))),
    promptSection(instance), titled("Properties", pairList(Object.entries(instance.strata))), element("p", { class: "muted" }, instance.id));
  const answers = element("div", { class: "answers", tabindex: "0", role: "region", "aria-label": "Answers" });
  const bar = element("div");
  openPart = { instance, revision, bar, answers, hidden: null };
  page.displayed = null;
  const focus = document.activeElement;
  const pane = focus === document.body || focus.closest("#list") ? question : focus.closest(".answers") ? answers : focus.closest(".question") && question;
  fill("instance", bar, element("div", { class: "panes", role: "tabpanel", "aria-label": instance.condition }, question, answers));
  pane?.focus({ preventScroll: true }); // so that the arrow keys scroll it
  scrollTo(0, 0);
  media.ready.then((complete) => requestAnimationFrame(() => {
    if (openPart?.bar !== bar) return;
    page.displayed = instance.number;
    document.dispatchEvent(new CustomEvent("displayed", { detail: { number: instance.number, complete } }));
  }));
}

function titled(title, content) {
  return content && element("section", {}, element("h3", {}, title), content);
}

function promptSection({ prompt, media }) {
  if (!prompt.length) return null;
  return folded("prompt", "Prompt as sent", drawPrompt(prompt, media));
}

/** Draw what is around the question: the position in the list, the conditions, and the runs. */
function drawAround(page) {
  const { instance, bar } = openPart;
  const numbers = page.matching();
  const position = numbers.indexOf(instance.number);
  const focus = bar.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  bar.replaceChildren(
    element("div", { class: "bar" }, backButton(page),
      button("‹ Previous", () => stepInstance(page, -1), { "data-key": "previous", disabled: nextNumber(page, -1) === null }),
      button("Next ›", () => stepInstance(page, 1), { "data-key": "next", disabled: nextNumber(page, 1) === null }),
      element("span", { class: "muted" }, position < 0 ? "not among those selected" : `${counted(position + 1)} of ${counted(numbers.length)}`),
      element("span", { class: "space" }), runButtons(page)),
    conditionTabs(page) ?? "");
  const tab = bar.querySelector('[aria-selected="true"]');
  if (tab) tab.parentNode.scrollLeft = tab.offsetLeft - tab.parentNode.clientWidth / 2;
  if (focus) bar.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  if (openPart.hidden !== String(page.state.hidden)) drawAnswers(page);
}

function backButton(page) {
  return button("← List", () => closeInstance(page), { "data-key": "back" });
}

function runButtons(page) {
  if (page.head.runs.length < 2) return null;
  return element("div", { class: "switches", role: "group", "aria-label": "Runs on display" }, page.head.runs.map((run, place) =>
    button([place < 9 && [element("kbd", {}, place + 1), " "], run.label], () => toggleRun(page, place), { "data-key": `run ${place}`, title: run.label, "aria-pressed": String(!page.state.hidden.includes(place)) })));
}

/** Return a tab for each instance of the example, with the outcomes of the runs. */
function conditionTabs(page) {
  const { siblings, number } = openPart.instance;
  if (siblings.length < 2) return null;
  const tabs = siblings.map((sibling) => {
    const { name, id } = sibling;
    const glyphs = page.index ? page.visibleRuns().slice(0, 6).map((place) => indexedAppearance(page, sibling.number, place)) : [];
    return button([name, " ", glyphs.map((appearance) => element("span", { class: appearance?.kind ?? "none", "aria-hidden": "true" }, appearance?.glyph ?? "–"))],
      () => page.set({ instance: sibling.number }),
      { role: "tab", title: id, "data-key": `tab ${sibling.number}`, "aria-selected": String(sibling.number === number), tabindex: sibling.number === number ? "0" : "-1",
        "aria-label": `${name}: ${glyphs.map((appearance) => appearance?.word ?? "none").join(", ")}` });
  });
  return element("div", { role: "tablist", "aria-label": "Conditions of this example" }, tabs);
}

/** Draw the columns; what is open and where it is scrolled stay. */
function drawAnswers(page) {
  const { answers, instance } = openPart;
  const { scrollTop, scrollLeft } = answers;
  const focus = answers.contains(document.activeElement) ? document.activeElement.closest("[data-run]")?.dataset.run : null;
  const places = page.visibleRuns();
  answers.replaceChildren(...places.map((place) => drawAnswer(page, instance, place)));
  if (!places.length) answers.append(element("p", { class: "empty" }, "Every run is hidden."));
  Object.assign(answers, { scrollTop, scrollLeft });
  if (focus) answers.querySelector(`[data-run="${focus}"] button`)?.focus({ preventScroll: true });
  answers.parentNode.classList.toggle("many", places.length > 3);
  openPart.hidden = String(page.state.hidden);
  document.dispatchEvent(new CustomEvent("answers", { detail: { number: instance.number } }));
}

/** Show or hide the column of a run. */
export function toggleRun(page, place) {
  if (place >= page.head.runs.length) return;
  const { hidden } = page.state;
  page.set({ hidden: hidden.includes(place) ? hidden.filter((item) => item !== place) : [...hidden, place] }, { replace: true });
}

/** Return the number of the next or previous instance of the list, null at its end; where it is not in the list, the nearest. */
function nextNumber(page, by) {
  const numbers = page.matching();
  const { instance } = page.state;
  let place = numbers.indexOf(instance) + by;
  if (!numbers.includes(instance)) place = by > 0 ? numbers.findIndex((number) => number > instance) : numbers.findLastIndex((number) => number < instance);
  return place < 0 || place >= numbers.length ? null : numbers[place];
}

/** Open the next or previous instance of the list. */
export function stepInstance(page, by) {
  const number = nextNumber(page, by);
  if (number !== null) page.set({ instance: number }, { replace: true });
}

/** Open the next or previous condition of the example. */
export function stepCondition(page, by) {
  const siblings = page.shown?.siblings ?? [];
  if (siblings.length < 2) return;
  const place = siblings.findIndex(({ number }) => number === page.state.instance);
  page.set({ instance: siblings[(place + by + siblings.length) % siblings.length].number }, { replace: true });
}

/** Go back to the list. */
export function closeInstance(page) {
  page.cursor = page.state.instance;
  page.set({ instance: null });
  focusList();
}

/** Open the first picture in full size, or close it. */
export function zoomPicture(page) {
  if (page.shown?.number === page.state.instance) togglePicture(page.shown.media);
}
