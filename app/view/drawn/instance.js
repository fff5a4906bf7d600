// The open instance: the question on the left, a column for each run.

/** Draw it. */
export function drawInstance(page) {
  void page;
}
