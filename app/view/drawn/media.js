// Media of the open instance: pictures, sound, video, and pictures of what a browser cannot display.

import { button, element } from "./dom.js";
import { Viewer, viewerOf } from "./viewer.js";

const MODALITIES = { image: "Picture", audio: "Sound", video: "Video", point_cloud: "3D model" };
let fullSize = null; // the dialog with a picture in full size: { dialog, viewer, step }

/** Return the name of a medium among those of its instance. */
export function mediumName(media, place) {
  const { modality } = media[place] ?? {};
  const alike = media.filter((medium) => medium.modality === modality);
  const number = alike.length > 1 ? ` ${alike.indexOf(media[place]) + 1}` : "";
  return `${MODALITIES[modality] ?? "Medium"}${number}`;
}

/** Return an element with the media, and a promise of whether every picture is displayed. */
export function drawMedia(media) {
  const viewers = [];
  const figures = media.map((medium, place) => {
    const name = mediumName(media, place);
    const picture = medium.modality === "video" && medium.original ? null : mediumPicture(media, place, name);
    if (picture) viewers.push(picture);
    const parts = [picture?.node, mediumPlayer(media, place, name)].filter(Boolean);
    if (!parts.length) parts.push(element("div", { class: "missing" }, medium.facts));
    return element("figure", {}, parts, element("figcaption", {}, `${name}: ${medium.facts}`, mediumLink(medium)));
  });
  const ready = Promise.all(viewers.map((viewer) => viewer.ready)).then((displayed) => displayed.every(Boolean));
  return { node: element("div", { class: "media" }, figures), ready };
}

/** Return the addresses of pictures of a medium, the best first; marks are in the preview alone. */
function pictureAddresses({ modality, original, preview, marks }, full) {
  if (modality !== "image" || marks?.length) return [preview].filter(Boolean);
  return (full ? [original, preview] : [preview, original]).filter(Boolean);
}

/** Return a viewer of a medium's picture; null where there is none. */
function mediumPicture(media, place, name) {
  const addresses = pictureAddresses(media[place], false);
  if (!addresses.length) return null;
  const viewer = new Viewer(addresses, `${name}: ${media[place].facts}`, { onclick: () => openPicture(media, place) });
  viewer.node.dataset.place = place;
  return viewer;
}

/** Return a player of a sound or video; its picture takes the place of one that the browser cannot decode. */
function mediumPlayer(media, place, name) {
  const { modality, original, preview } = media[place];
  if (!original || !["audio", "video"].includes(modality)) return null;
  const isVideo = modality === "video";
  const player = element(modality, { controls: true, preload: "metadata", src: original, poster: isVideo ? preview : null, "aria-label": name });
  player.addEventListener("error", () => {
    const picture = isVideo ? mediumPicture(media, place, name)?.node : null;
    player.replaceWith(...[picture, element("p", { class: "muted" }, `This browser cannot play the ${isVideo ? "video" : "sound"}.`)].filter(Boolean));
  }, { once: true });
  return player;
}

function mediumLink({ modality, original }) {
  return original && modality === "point_cloud" ? [" ", element("a", { href: original, download: "" }, "save the file")] : null;
}

/** Open a picture in full size; n and p go through the others. */
export function openPicture(media, place) {
  const places = media.map((_, number) => number).filter((number) => pictureAddresses(media[number], true).length);
  if (!places.length) return;
  const dialog = element("dialog", { class: "zoom", "aria-label": "Picture in full size", onclose: () => { dialog.remove(); fullSize = null; } });
  document.body.append(dialog);
  dialog.showModal();
  const display = (number) => {
    const viewer = new Viewer(pictureAddresses(media[number], true), mediumName(media, number), { large: true });
    const step = (by) => display(places[(places.indexOf(number) + by + places.length) % places.length]);
    const steps = places.length > 1 && [button("‹", () => step(-1), { "aria-label": "Previous picture" }), button("›", () => step(1), { "aria-label": "Next picture" })];
    dialog.replaceChildren(
      element("div", { class: "bar" }, steps, element("b", {}, mediumName(media, number)), element("span", { class: "muted" }, media[number].facts), element("span", { class: "space" }),
        button("−", () => viewer.zoom(1 / 1.4), { "aria-label": "Zoom out" }), button("+", () => viewer.zoom(1.4), { "aria-label": "Zoom in" }),
        button("Fit", () => viewer.reset()), button("Close", () => dialog.close())),
      viewer.node,
    );
    fullSize = { dialog, viewer, step };
    viewer.node.focus();
  };
  display(places.includes(place) ? place : places[0]);
}

/** Open the first picture in full size, or close it. */
export function togglePicture(media) {
  if (fullSize) fullSize.dialog.close();
  else openPicture(media, Number(document.activeElement?.dataset.place ?? 0));
}

/** Close what is open above the page, which is of the state before. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
}

/** Return the viewer that keys are for: the one in full size, or the one in focus. */
export function currentViewer() {
  return fullSize?.viewer ?? viewerOf(document.activeElement);
}

/** Go to another picture in full size. */
export function stepPicture(by) {
  fullSize?.step(by);
}
