// The name under which a person labels on this page.

let lastAnnotator = "";

/** Return the name that was typed last, or else that of the system's user. */
export async function annotatorName(page) {
  lastAnnotator ||= (await page.source.get("api/labelling")).annotator;
  return lastAnnotator;
}

/** Remember the name that a person typed. */
export function setAnnotator(name) { lastAnnotator = name; }
