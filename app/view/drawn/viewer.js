// A picture that can be zoomed and panned, by mouse, wheel, touch and keys.

import { element } from "./dom.js";

const FURTHEST = 40;
const viewers = new WeakMap();

/** Return the viewer of an element. */
export function viewerOf(node) {
  return viewers.get(node);
}

/** A picture in its frame. In a `large` one the wheel zooms at once, and a small picture is enlarged to fit. */
export class Viewer {
  constructor(addresses, name, { large = false, onclick = null } = {}) {
    this.large = large;
    this.onclick = onclick;
    this.image = element("img", { alt: name, draggable: "false", decoding: "async" });
    this.node = element("div", { class: "viewer", tabindex: "0", role: "group", "aria-label": `${name}; + and - zoom, arrows move` }, this.image);
    this.pointers = new Map();
    this.place = { scale: 1, x: 0, y: 0 };
    this.ready = this.load(addresses);
    viewers.set(this.node, this);
    this.node.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.node.addEventListener("pointerdown", (event) => this.press(event));
    this.node.addEventListener("pointermove", (event) => this.drag(event));
    for (const type of ["pointerup", "pointercancel"]) this.node.addEventListener(type, (event) => this.release(event));
  }

  /** Display the first of the addresses that can be, and return whether there is one. */
  async load(addresses) {
    for (const address of addresses) {
      this.image.src = address;
      try {
        await this.image.decode();
        if (!this.large) this.setHeight();
        this.reset();
        return true;
      } catch { /* the next one */ }
    }
    this.node.replaceChildren(element("p", { class: "muted" }, "The browser cannot display this picture."));
    return false;
  }

  /** Make the frame as high as the picture, of which a small one is enlarged. */
  setHeight() {
    const { naturalWidth: width, naturalHeight: height } = this.image;
    const scale = Math.min(2, (this.node.clientWidth || width) / width, 0.45 * innerHeight / height);
    this.node.style.height = `${Math.max(96, Math.ceil(height * scale) + 2)}px`;
  }

  get fit() {
    const { clientWidth: width, clientHeight: height } = this.node;
    const fit = Math.min(width / this.image.offsetWidth, height / this.image.offsetHeight, this.large ? 4 : 2);
    return fit > 0 && Number.isFinite(fit) ? fit : 1;
  }

  reset() { this.to({ scale: this.fit, x: 0, y: 0 }); }

  /** Zoom by a factor around a point of the window; by default the middle. */
  zoom(factor, x, y) {
    const frame = this.node.getBoundingClientRect();
    const { scale, x: left, y: top } = this.place;
    const next = Math.min(Math.max(scale * factor, Math.min(1, this.fit)), FURTHEST);
    const fromLeft = (x ?? frame.left + frame.width / 2) - frame.left - this.node.clientLeft - this.image.offsetLeft - left;
    const fromTop = (y ?? frame.top + frame.height / 2) - frame.top - this.node.clientTop - this.image.offsetTop - top;
    const share = 1 - next / scale;
    this.to({ scale: next, x: left + fromLeft * share, y: top + fromTop * share });
  }

  /** Move the picture by shares of its frame. */
  move(right, down) {
    const { scale, x, y } = this.place;
    this.to({ scale, x: x + right * this.node.clientWidth, y: y + down * this.node.clientHeight });
  }

  /** Put the picture at a place, but never out of its frame. */
  to({ scale, x, y }) {
    const { image, node } = this;
    const within = (start, size, room, value) => {
      const spare = room - size * scale;
      return spare >= 0 ? spare / 2 - start : Math.min(Math.max(value, spare - start), -start);
    };
    this.place = {
      scale,
      x: within(image.offsetLeft, image.offsetWidth, node.clientWidth, x),
      y: within(image.offsetTop, image.offsetHeight, node.clientHeight, y),
    };
    image.style.transform = `translate(${this.place.x}px, ${this.place.y}px) scale(${scale})`;
    node.classList.toggle("zoomed", this.isZoomed());
  }

  isZoomed() { return this.place.scale > this.fit * 1.001; }

  wheel(event) {
    if (!this.large && !event.ctrlKey && !this.isZoomed()) return; // the page scrolls
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), event.clientX, event.clientY);
  }

  press(event) {
    if (event.button) return;
    if (!this.pointers.size) this.dragged = false;
    this.pointers.set(event.pointerId, event);
    this.node.setPointerCapture(event.pointerId);
    this.node.classList.add("dragged");
  }

  /** Pan with a finger or the mouse, and zoom with two fingers. */
  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    if (!this.dragged && Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 4) return;
    this.dragged = true;
    this.pointers.set(event.pointerId, event);
    const other = [...this.pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    const { scale, x, y } = this.place;
    if (other) {
      const apart = ({ clientX, clientY }) => Math.hypot(clientX - other.clientX, clientY - other.clientY) || 1;
      this.zoom(apart(event) / apart(before), other.clientX, other.clientY);
    } else this.to({ scale, x: x + event.clientX - before.clientX, y: y + event.clientY - before.clientY });
  }

  release(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    this.node.classList.remove("dragged");
    if (!this.dragged && event.type === "pointerup") this.onclick?.();
  }
}
