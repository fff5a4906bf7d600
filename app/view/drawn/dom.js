// Elements of the page. Every text from a model, a data set or a file gets here as text, never as markup.

/**
 * Return a new element. `attributes` may have listeners as `onclick`, and `class`; a false or null attribute is left out.
 * Children are elements, texts, arrays of them, or null.
 */
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...present(children));
  return node;
}

function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Return a new button. */
export function button(text, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, text);
}

/** Return a new SVG element, as `element` does. */
export function shape(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children.flat(Infinity));
  return node;
}

/** Replace the children of the element with this id. */
export function fill(id, ...children) {
  document.getElementById(id).replaceChildren(...present(children));
}

/** Return a number with its thousands apart. */
export function counted(number) {
  return number.toLocaleString("en");
}

/** Mark an element that scrolls sideways while a part of it is cut off at the right. */
export function markCut(node) {
  const mark = () => node.classList.toggle("cut", node.scrollLeft + node.clientWidth < node.scrollWidth - 1);
  node.addEventListener("scroll", mark, { passive: true });
  const observer = new ResizeObserver(mark);
  for (const part of [node, node.firstElementChild]) observer.observe(part);
  return node;
}

let silence = 0; // the timer that ends the status; 0 while one stays

/** Say something in the status line, which screen readers read out; it goes after a while and with the next action, unless it is to `stay`. */
export function say(text, { stay = false } = {}) {
  clearTimeout(silence);
  document.getElementById("status").textContent = text;
  silence = text && !stay ? setTimeout(say, 4000, "") : 0;
}

for (const type of ["keydown", "pointerdown"]) addEventListener(type, () => { if (silence) say(""); }, true);
