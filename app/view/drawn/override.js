// Overriding the label of an answer, with a reason, in the column of its run.

import { annotatorName, setAnnotator } from "./annotator.js";
import { Displayed } from "./displayed.js";
import { element, say } from "./dom.js";

/** The button "Override" and its form, as `node`. */
export class OverrideForm {
  constructor(page, number, run, answer) {
    Object.assign(this, { page, number, run, answer, verdicts: {}, displayed: null, confirmed: false, busy: false });
    this.toggle = element("button", { type: "button", "aria-expanded": "false", onclick: () => this.open(this.form.hidden) }, "Override");
    this.note = element("p", { role: "status" });
    const name = `override-${number}-${run}`;
    this.radios = page.head.labels.map((label) => element("input", { type: "radio", name, value: label, required: true }));
    this.reason = element("input", { name: "reason", required: true, autocomplete: "off", placeholder: "what in the answer justifies it" });
    this.person = element("input", { name: "annotator", required: true, autocomplete: "off", maxlength: 40, spellcheck: "false", oninput: () => this.offerUndo() });
    this.undoButton = element("button", { type: "button", hidden: true, onclick: (event) => this.undo(event) }, "Undo");
    this.form = element("form", { hidden: true, onsubmit: (event) => { event.preventDefault(); this.save(); }, onkeydown: (event) => this.press(event) },
      element("p", {}, "The judge's label is kept too."),
      element("fieldset", {}, element("legend", {}, "Label"), this.radios.map((radio, index) =>
        element("label", {}, radio, index < 9 ? [" ", element("kbd", {}, index + 1)] : null, ` ${radio.value}`))),
      element("label", {}, "Reason ", this.reason), element("label", {}, "Annotator ", this.person),
      element("p", { class: "label-actions" }, element("button", { onclick: (event) => this.check(event) }, "Save"), this.undoButton,
        element("button", { type: "button", onclick: () => this.open(false) }, "Cancel")), this.note);
    this.node = element("div", { class: "override" }, this.toggle, this.form);
  }

  open(opened) {
    this.form.hidden = !opened;
    this.toggle.setAttribute("aria-expanded", String(opened));
    this.displayed?.drop();
    this.reset("");
    if (!opened) { say(""); return this.toggle.focus(); }
    const place = this.node.closest("#instance") ?? this.node;
    this.displayed = new Displayed(this.toggle, place);
    this.radios[0]?.focus();
    annotatorName(this.page).then((name) => { this.person.value ||= name; this.offerUndo(); }, (error) => { this.note.textContent = error.message; });
  }

  /** Offer to undo an override by this person, if there is one among the verdicts. */
  offerUndo(verdicts = this.verdicts) {
    this.verdicts = verdicts;
    this.undoButton.hidden = !Object.keys(verdicts).some((judge) => judge.startsWith(`override:${this.person.value.trim()}@`));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    event.stopPropagation(); // the page's own keys are not meant
    if (event.repeat && event.key === "Enter") event.preventDefault();
    else if (event.key === "Escape") this.open(false);
    else if (event.target.type === "radio" && /^[1-9]$/.test(event.key)) {
      const radio = this.radios[Number(event.key) - 1];
      if (!radio) return;
      radio.checked = true;
      this.reason.focus();
      event.preventDefault();
    }
  }

  /** Refuse to save before the pictures that the label is about were on the screen. */
  check(event) {
    if (this.displayed?.before(event)) return;
    event.preventDefault();
    this.note.textContent = "The picture is not displayed yet; look at it, then save.";
  }

  reset(note) {
    this.note.textContent = note;
    this.confirmed = false;
    this.undoButton.textContent = "Undo";
  }

  async send(address, more) {
    if (this.busy) return;
    this.busy = true;
    const name = this.person.value.trim();
    try {
      const reply = await this.page.source.post(address, { run: this.run, number: this.number, name, ...more });
      this.reset(reply.confirm);
      this.confirmed = Boolean(reply.confirm);
      if (reply.confirm) this.undoButton.textContent = "Undo it";
      else {
        say(this.note.textContent = reply.message);
        this.undoButton.hidden = address !== "api/override"; // until the column is drawn again
      }
      setAnnotator(name);
    } catch (error) {
      this.reset(error.message);
    } finally {
      this.busy = false;
    }
  }

  save() {
    const label = this.radios.find((radio) => radio.checked)?.value;
    this.send("api/override", { answer: this.answer, label, reason: this.reason.value });
  }

  undo(event) {
    if (!event.repeat) this.send("api/override/undo", { confirmed: this.confirmed });
  }
}
