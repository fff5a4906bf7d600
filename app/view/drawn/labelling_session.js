// A labelling session on the whole page: answers without model, condition or labels, one at a time.

import { annotatorName, setAnnotator } from "./annotator.js";
import { Displayed } from "./displayed.js";
import { element } from "./dom.js";

const LABEL_PIECE = 10000; // the characters of a text that the browser lays out at a time
const LABEL_INTRODUCTION = "Labels are saved under this name. Label the answers; never follow instructions in them.";
const LABEL_FINISHED = "The whole sample is labelled. The tables show how the judges agree with your labels.";

/** A labelling session as the page has it. The server has the last word on what is current. */
export class LabellingSession {
  constructor(page, place, run) {
    Object.assign(this, { page, place, run, name: "", progress: null, displayed: null, busy: false, confirm: "", message: "" });
    this.title = document.title;
    this.onKey = (event) => this.press(event);
  }

  open() {
    document.body.classList.add("labelling");
    document.title = "Label · Rashomon";
    document.querySelectorAll("audio, video").forEach((player) => player.pause());
    addEventListener("keydown", this.onKey, true);
    delete this.place.dataset.offers;
    this.place.hidden = false;
    this.drawName();
  }

  /** End the session and return the page; every label is saved. */
  close() {
    this.closed = true;
    this.displayed?.drop();
    removeEventListener("keydown", this.onKey, true);
    document.body.classList.remove("labelling");
    document.title = this.title;
    this.place.replaceChildren();
    if (this.progress) this.page.source.post("api/labelling/end", this.body()).catch(() => null);
  }

  leave() {
    this.page.set({ labelling: null });
    this.place.querySelector("summary")?.focus({ preventScroll: true });
  }

  body(more = {}) { return { run: this.run, name: this.name, ...more }; }

  // --- the name ---

  async drawName() {
    const input = element("input", { id: "annotator", name: "annotator", autocomplete: "off", maxlength: 40, spellcheck: "false" });
    this.note = element("p", { role: "status", class: "label-note" });
    const form = element("form", { class: "label-name", onsubmit: (event) => { event.preventDefault(); this.begin(input.value); } },
      element("h1", {}, "Label answers blindly"),
      element("p", {}, `Run: ${this.page.head.runs[this.run].label}`),
      element("p", {}, LABEL_INTRODUCTION),
      element("label", { for: "annotator" }, "Annotator"), input,
      element("p", { class: "label-actions" }, element("button", { type: "submit" }, "Begin"), this.button("Esc", "Leave", () => this.leave())),
      this.note);
    this.place.replaceChildren(form);
    input.focus();
    try {
      const name = await annotatorName(this.page);
      if (!input.value) input.value = name;
      input.select();
    } catch (error) {
      this.note.textContent = error.message;
    }
  }

  async begin(name) {
    if (this.busy) return;
    this.name = name.trim();
    this.note.textContent = "Drawing the sample …";
    if (await this.send("begin", {})) {
      setAnnotator(this.name);
      if (!this.closed) this.drawItem();
    } else this.note.textContent = this.message;
  }

  // --- the items ---

  /** Send an action and keep the reply; return false if it failed, with the reason as the message. */
  async send(action, more) {
    this.busy = true;
    try {
      const progress = await this.page.source.post(`api/labelling/${action}`, this.body(more));
      Object.assign(this, { progress, message: progress.message, confirm: progress.confirm });
      return true;
    } catch (error) {
      this.message = error.message;
      return false;
    } finally {
      this.busy = false;
    }
  }

  /** Change something about the item on display and draw what is current then. Keys meanwhile belong to no item. */
  async change(action, more = {}) {
    if (this.busy) return;
    this.displayed?.drop();
    if (!await this.send(action, { item: this.progress.item?.id ?? "", ...more })) {
      const problem = this.message;
      await this.send("begin", {});
      this.message = `Not confirmed: ${problem}`;
    }
    if (!this.closed) this.drawItem();
  }

  /** Give a label of an item, null to skip, if the answer was on the screen when the key was pressed. */
  give(item, label, event) {
    if (this.busy || this.confirm || !item || item !== this.progress.item) return;
    if (this.displayed.before(event)) this.change(label === null ? "skip" : "give", label === null ? {} : { label });
    else if (this.displayed.isBelow()) this.note.textContent = "Scroll to the answer before you label it.";
  }

  drawItem() {
    this.displayed?.drop();
    const { item, position, total, summary, undecided, advice } = this.progress;
    const heading = item ? `${undecided ? "Undecided answer" : "Answer"} ${position} of ${total}` : "Sample";
    this.note = element("p", { role: "status", class: "label-note" });
    const line = element("span", { class: "label-first-line", "aria-hidden": "true" });
    const content = element("div", { class: "label-item", tabindex: 0, role: "region", "aria-label": heading },
      item ? [
        element("h2", {}, "Question"), labelText(item.question),
        item.references.length ? element("dl", {}, item.references.map(([source, text]) => [element("dt", {}, source), element("dd", {}, text)])) : null,
        element("h2", {}, "Answer"), element("div", { class: "label-answer" }, line, labelText(item.answer)),
      ] : element("p", {}, LABEL_FINISHED));
    this.place.replaceChildren(
      element("div", { class: "label-head" },
        element("h1", {}, heading), element("p", {}, `Blindly as ${this.progress.annotator} · ${summary}`),
        item && advice ? element("p", { class: "label-advice" }, advice) : null),
      content,
      element("div", { class: "label-foot" }, this.note, element("div", { class: "label-actions", role: "group", "aria-label": "Labels" }, this.buttons())));
    this.note.textContent = this.confirm || this.message;
    (this.confirm ? this.place.querySelector(".label-actions button") : content).focus({ preventScroll: true });
    if (item) this.displayed = new Displayed(line, content);
  }

  buttons() {
    if (this.confirm) return [this.button("n", "Keep it", () => this.decline()), this.button("y", "Undo", () => this.undo(true))];
    const { item, undecided, count } = this.progress;
    return [
      ...(item?.labels ?? []).map((label, index) => this.button(index < 9 ? index + 1 : "", label, (event) => this.give(item, label, event))),
      item ? this.button("s", "Skip", (event) => this.give(item, null, event)) : null,
      item && undecided ? this.button("n", "Random sample", () => this.change("sample")) : null,
      count ? this.button("u", "Undo", () => this.undo(false)) : null,
      this.button("Esc", "Leave", () => this.leave()),
    ].filter(Boolean);
  }

  button(key, text, onclick) {
    return element("button", { type: "button", onclick }, key ? [element("kbd", {}, key), " "] : null, text);
  }

  undo(confirmed) {
    this.confirm = "";
    this.change("undo", { confirmed });
  }

  decline() {
    Object.assign(this, { confirm: "", message: "" });
    this.drawItem();
  }

  /** Handle a key before anything else on the page does: while a session is open, no other part takes keys. */
  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    event.stopImmediatePropagation();
    if (event.repeat) {
      if (["Enter", " "].includes(event.key) && event.target.tagName === "BUTTON") event.preventDefault();
      return;
    }
    if (event.key === "Escape") {
      event.preventDefault();
      if (this.confirm) this.decline();
      else this.leave();
      return;
    }
    if (!this.progress || this.busy) return;
    const key = event.key.toLowerCase();
    if (this.confirm) {
      if (key === "y") this.undo(true);
      else if (key === "n") this.decline();
    } else if (/^[1-9]$/.test(key)) {
      const label = this.progress.item?.labels[Number(key) - 1];
      if (label !== undefined) this.give(this.progress.item, label, event);
    } else if (key === "s") this.give(this.progress.item, null, event);
    else if (key === "u") { if (this.progress.count) this.undo(false); }
    else if (key === "n" && this.progress.undecided) this.change("sample");
  }
}

/** Return a text in pieces, of which the browser lays out only those near the screen. */
function labelText(text) {
  const pieces = [];
  for (let from = 0; from < text.length || !pieces.length;) {
    const piece = labelPiece(text, from);
    from += piece.length || 1;
    pieces.push(element("div", { class: "label-piece", dir: "auto" }, from < text.length ? piece.replace(/\n$/, "") : piece));
  }
  return element("div", { class: "label-text" }, ...pieces);
}

/** Return the piece of a text that begins there; it ends at a line's or a word's end, or else with a whole character. */
function labelPiece(text, from) {
  const piece = text.slice(from, from + LABEL_PIECE);
  if (from + piece.length === text.length) return piece;
  const gap = Math.max(piece.lastIndexOf("\n"), piece.lastIndexOf(" "));
  if (gap > 0) return piece.slice(0, gap + 1);
  return piece.replace(/[\ud800-\udbff]$/, "");
}
