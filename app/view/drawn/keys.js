// Keys of the page: one table, which the help lists.

import { button, element } from "./dom.js";
import { closeMenus } from "./filters.js";
import { toggleTheme } from "./header.js";
import { closeInstance, stepCondition, stepInstance, toggleRun, zoomPicture } from "./instance.js";
import { focusList, moveCursor, openInstance, rowsInView } from "./list.js";
import { currentViewer, openPicture, stepPicture } from "./media.js";

const PLACES = { list: "List", instance: "Open instance", picture: "Picture in full size, or in focus", any: "Everywhere" };
const DIGITS = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];

const SCROLLING = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "PageDown", "PageUp", "Home", "End"]; // a table in focus

/**
 * The keys: where they hold, what they do, and the function that does it with the page and the key. One that returns false
 * leaves the key to the browser.
 */
const KEYS = [
  { where: "list", keys: ["j", "ArrowDown"], text: "next instance", act: (page) => moveCursor(page, 1) },
  { where: "list", keys: ["k", "ArrowUp"], text: "previous instance", act: (page) => moveCursor(page, -1) },
  { where: "list", keys: ["PageDown", "PageUp"], text: "a page further, or back", act: (page, key) => moveCursor(page, key === "PageDown" ? rowsInView() : -rowsInView()) },
  { where: "list", keys: ["Home", "End"], text: "first, or last", act: (page, key) => moveCursor(page, key === "End" ? Infinity : -Infinity) },
  { where: "list", keys: ["Enter", "ArrowRight"], text: "open the instance", act: (page) => openInstance(page) },
  { where: "list", keys: ["d"], text: "only where the runs differ", act: (page) => page.set({ differ: !page.state.differ }) },
  { where: "instance", keys: ["Escape", "Backspace"], text: "back to the list", act: (page) => closeInstance(page) },
  { where: "instance", keys: ["j", "n"], text: "next instance of the list", act: (page) => stepInstance(page, 1) },
  { where: "instance", keys: ["k", "p"], text: "previous instance of the list", act: (page) => stepInstance(page, -1) },
  { where: "instance", keys: ["[", "]"], text: "previous, or next condition of the example", act: (page, key) => stepCondition(page, key === "]" ? 1 : -1) },
  { where: "instance", keys: ["z"], text: "picture in full size", act: (page) => zoomPicture(page) },
  { where: "picture", keys: ["+", "=", "-"], text: "zoom in, or out", act: (_, key) => currentViewer().zoom(key === "-" ? 1 / 1.4 : 1.4) },
  { where: "picture", keys: ["0"], text: "fit the picture", act: () => currentViewer().reset() },
  { where: "picture", keys: ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], text: "move the picture", act: (_, key) => movePicture(key) },
  { where: "picture", keys: ["Enter"], text: "open the picture in focus", act: (page) => openPicture(page.shown.media, Number(document.activeElement.dataset.place ?? 0)) },
  { where: "zoom", keys: ["n", "p"], text: "next, or previous picture", act: (_, key) => stepPicture(key === "n" ? 1 : -1) },
  { where: "zoom", keys: ["z"], text: "close the picture", act: (page) => zoomPicture(page) },
  { where: "runs", keys: DIGITS, title: "1 – 9", text: "show or hide the run", act: (page, key) => toggleRun(page, Number(key) - 1) },
  { where: "runs", keys: ["0"], text: "show all runs", act: (page) => page.set({ hidden: [] }, { replace: true }) },
  { where: "any", keys: ["l"], text: "to the list of answers", act: (page) => (page.state.instance === null ? focusList() : closeInstance(page)) },
  { where: "any", keys: ["/"], text: "search", act: (page) => focusSearch(page) },
  { where: "any", keys: ["t"], text: "light or dark", act: () => toggleTheme() },
  { where: "any", keys: ["?"], text: "this help", act: (page) => openHelp(page) },
];

function movePicture(key) {
  const viewer = currentViewer();
  if (!viewer.node.classList.contains("zoomed")) return false;
  viewer.move({ ArrowLeft: 0.15, ArrowRight: -0.15 }[key] ?? 0, { ArrowUp: 0.15, ArrowDown: -0.15 }[key] ?? 0);
  return true;
}

function focusSearch(page) {
  if (page.state.instance !== null) closeInstance(page);
  const field = document.getElementById("search");
  field?.focus();
  field?.select();
}

/** Add keys, which go before those that there are. */
export function addKeys(...keys) {
  KEYS.unshift(...keys);
}

/** Return where keys are pressed now, the innermost first. */
function placesNow(page) {
  const dialog = document.querySelector("dialog[open]");
  if (dialog) return dialog.classList.contains("zoom") ? ["zoom", "picture"] : [];
  const inner = currentViewer() ? ["picture"] : [];
  return [...inner, page.state.instance === null ? "list" : "instance", "runs", "any"];
}

/** Call what a key is for. A key does nothing while something is typed or chosen in a field. */
function pressKey(page, event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { target, key } = event;
  if (key === "Escape" && closeMenus()) return;
  if (key === "Escape" && target.id === "search") { target.blur(); return; }
  if (target.closest("input, select, textarea, audio, video, [contenteditable]")) return;
  if (key === "Enter" && target.closest("button, summary, a")) return;
  if (SCROLLING.includes(key) && target.closest(".box")) return;
  if (target.closest('[role="tablist"]') && ["ArrowLeft", "ArrowRight"].includes(key)) { stepCondition(page, key === "ArrowRight" ? 1 : -1); return; }
  for (const place of placesNow(page)) {
    const binding = KEYS.find(({ where, keys }) => where === place && keys.includes(key));
    if (!binding) continue;
    if (binding.act(page, key) !== false) event.preventDefault();
    return;
  }
}

/** Listen to keys, and close menus at a click outside of them. */
export function listenToKeys(page) {
  addEventListener("keydown", (event) => pressKey(page, event));
  addEventListener("pointerdown", (event) => closeMenus(event.target));
}

/** Open a dialog with all keys. */
export function openHelp() {
  const names = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", " ": "Space" };
  const titles = { ...PLACES, picture: PLACES.picture, zoom: "Picture in full size", runs: "Runs" };
  const groups = new Map();
  for (const binding of KEYS) groups.set(binding.where, [...(groups.get(binding.where) ?? []), binding]);
  const dialog = element("dialog", { class: "help", "aria-label": "Keys", onclose: () => dialog.remove() },
    element("div", { class: "bar" }, element("h2", {}, "Keys"), element("span", { class: "space" }), button("Close", () => dialog.close(), { autofocus: true })),
    [...groups].map(([where, bindings]) => [element("h3", {}, titles[where] ?? where), element("dl", { class: "pairs" }, bindings.map(({ keys, title, text }) => [
      element("dt", {}, (title ? [title] : keys).map((key) => [element("kbd", {}, names[key] ?? key), " "])), element("dd", {}, text)]))]),
    element("p", { class: "muted" }, "Pictures: the wheel or two fingers zoom, dragging moves. The address of the page holds the filters and the open instance: a link to it opens the same view."));
  document.body.append(dialog);
  dialog.showModal();
}
