// Filters of the list.

/** Draw it. */
export function drawFilters(page) {
  void page;
}
