"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const PAGE = 25;
  let first = 0;
  let shown = [];

  // Whatever the data says becomes text, never markup.
  const make = (tag, kind, ...content) => {
    const node = document.createElement(tag);
    if (kind) node.className = kind;
    node.append(...content);
    return node;
  };

  const options = (id, pairs) => {
    for (const [value, text] of pairs) {
      const option = make("option", "", text);
      option.value = value;
      at(id).append(option);
    }
  };
  const distinct = (values) => [...new Set(values)];
  const answers = data.instances.flatMap((each) => each.answers);
  options("condition", distinct(data.instances.map((each) => each.condition)).map((each) => [each, each]));
  options("run", data.runs.map((each, number) => [String(number), each]));
  options("label", distinct(answers.map((each) => each.label)).sort().map((each) => [each, each]));
  options("right", [["yes", "yes"], ["no", "no"], ["unknown", "not labelled"]]);

  const found = (each) =>
    [each.id, each.question, ...each.parts.map((part) => part.text || ""), ...Object.values(each.references).flat(),
      ...each.answers.flatMap((answer) => [answer.text, answer.reason])].join("\n").toLowerCase();
  const searched = new Map();
  const text = (each) => searched.get(each) ?? searched.set(each, found(each)).get(each);
  const verdict = (answer) => (answer.right === null ? "unknown" : answer.right ? "yes" : "no");

  const select = () => {
    const [condition, run, label, right] = ["condition", "run", "label", "right"].map((id) => at(id).value);
    const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = data.instances.filter((each) =>
      (!condition || each.condition === condition) &&
      each.answers.some((answer) =>
        (!run || answer.run === Number(run)) && (!label || answer.label === label) && (!right || verdict(answer) === right)) &&
      (!at("differ").checked || distinct(each.answers.map((answer) => answer.label)).length > 1) &&
      words.every((word) => text(each).includes(word)));
    first = 0;
    draw();
  };

  const prompt = (each) => {
    const box = make("div", "prompt");
    for (const part of each.parts) {
      if (part.text !== undefined) {
        box.append(part.text);
        continue;
      }
      const { facts, picture } = data.media[part.media];
      const medium = make("figure", "medium", make("figcaption", "", facts));
      medium.title = part.media;
      if (picture) {
        const image = make("img");
        image.src = picture;
        image.alt = facts;
        medium.prepend(image);
      }
      box.append(medium);
    }
    return box;
  };

  const answer = (each) => {
    const box = make("div", `answer ${verdict(each)}`);
    const told = each.right === null ? "" : each.right ? ", accurate" : ", not accurate";
    const cut = each.cut ? ", cut at the token limit" : "";
    box.append(
      make("p", "who", `${data.runs[each.run]}: `, make("span", "tag", each.label), told + cut),
      make("p", "", each.text),
      make("p", "why", each.reason));
    return box;
  };

  const card = (each) => {
    const list = make("dl");
    for (const [name, values] of Object.entries(each.references)) {
      list.append(make("dt", "", `${name} says`), make("dd", "", values.join(" | ")));
    }
    const strata = Object.entries(each.strata).map(([key, value]) => `${key}: ${value}`).join(", ");
    return make("article", "",
      make("h3", "", each.id, make("span", "", `${each.condition}${strata ? `; ${strata}` : ""}`)),
      prompt(each), list, ...each.answers.map(answer));
  };

  const draw = () => {
    const last = Math.min(first + PAGE, shown.length);
    at("count").textContent = shown.length
      ? `${first + 1} to ${last} of ${shown.length} (${data.instances.length} in all)`
      : `none of ${data.instances.length}`;
    at("list").replaceChildren(...shown.slice(first, last).map(card));
    at("back").disabled = first === 0;
    at("next").disabled = last >= shown.length;
  };

  const turn = (by) => {
    first = Math.max(0, first + by);
    draw();
    at("count").scrollIntoView();
  };
  at("back").addEventListener("click", () => turn(-PAGE));
  at("next").addEventListener("click", () => turn(PAGE));
  at("filters").addEventListener("input", select);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  select();
})();
