// Knowing that something was on the screen before a key was pressed or a button clicked.

let lastPress = 0; // when the last key or pointer went down that was not repeated
for (const type of ["keydown", "pointerdown"]) addEventListener(type, (event) => { if (!event.repeat) lastPress = event.timeStamp; }, true);

/** Watch for the time from which `line`, an element as high as a line, has been on the screen, with the pictures in `place`. */
export class Displayed {
  constructor(line, place) {
    this.since = Infinity;
    this.line = line;
    this.place = place;
    this.observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.intersectionRatio > 0.9)) this.finish();
    }, { threshold: [0.95] });
    this.observer.observe(line);
  }

  async finish() {
    if (!this.observer) return;
    this.stop();
    // A picture that cannot be decoded is never displayed, and what stands in its place is.
    await Promise.all([...this.place.querySelectorAll("img")].filter(pictureInViewport).map((picture) => picture.decode().catch(() => null)));
    await afterFrame(); // drawn in this frame
    await afterFrame(); // so it is on the screen by this one
    if (!this.dropped) this.since = performance.now();
  }

  stop() {
    this.observer?.disconnect();
    this.observer = null;
  }

  /** Count as never displayed. */
  drop() {
    this.stop();
    this.dropped = true;
    this.since = Infinity;
  }

  /** Return true if one has to scroll down to it. */
  isBelow() { return this.line.getBoundingClientRect().bottom > this.place.getBoundingClientRect().bottom; }

  /** Return true if what leads to a key's or a click's event began after it was displayed. A repeated key began earlier. */
  before(event) {
    if (event.repeat) return false;
    const began = event.type === "click" && event.detail > 0 ? Math.min(lastPress, event.timeStamp) : event.timeStamp;
    return began > this.since;
  }
}

function pictureInViewport(node) {
  const { top, bottom, left, right } = node.getBoundingClientRect();
  return bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
}

function afterFrame() {
  return new Promise((resolve) => { requestAnimationFrame(resolve); });
}
