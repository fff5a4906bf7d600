// The list of instances.

/** Draw it. */
export function drawList(page) {
  void page;
}
