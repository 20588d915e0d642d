// A listing's past as columns for a chart and a table.

/**
 * Joins the samples to [times, prices, floors, least prices, lowest signatures]. Where nothing ran for `gapS` or longer stands
 * a point of nulls, so that no line is drawn over it; the last values hold until `to` if they are so young; null: they do not.
 */
export function columnsOf(series, lowest, to, gapS) {
  const columns = [[], [], [], [], []];
  const push = (...point) => columns.forEach((column, i) => column.push(point[i] ?? null));
  const numberOf = (value) => (value === null || value === undefined ? null : Number(value));
  const at = (i) => [series.price, series.floor, series.guard].map((column) => numberOf(column[i]));
  series.time.forEach((time, i) => {
    const before = series.time[i - 1];
    if (before !== undefined && time - before > gapS) push(before + gapS / 4, null, null, null, lowest);
    push(time, ...at(i), lowest);
  });
  const last = series.time.at(-1);
  if (last !== undefined && to !== null && last < to) {
    if (to - last <= gapS) push(to, ...at(series.time.length - 1), lowest);
    else push(last + gapS / 4, null, null, null, lowest), push(to, null, null, null, lowest);
  }
  return columns;
}
