// Results above the answers: the scorecard, differences, transitions, and what would change them.

/** Draw it. */
export function drawOverview(page) {
  void page;
}
