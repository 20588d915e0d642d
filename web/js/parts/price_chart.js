// Price, floor and least price over time, as steps, with the cheapest signature as a line of its own.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../page.js";
import { clock, money } from "../format.js";
import { token, usePlot } from "./plot.js";

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

const TALL = 260;

/** `columns` are [times, prices, floors, least prices, lowest signatures], null where a value is not known; `label` says what is drawn. */
export function PriceChart({ columns, from, to, label }) {
  const given = useRef({});
  given.current = { columns, from, to };
  const [box, plot] = usePlot({ height: TALL, make: (UPlot, width) => [options(UPlot, width, given), given.current.columns] });
  useEffect(() => {
    plot.current?.setData(columns, false);
    plot.current?.setScale("x", { min: from, max: to });
  }, [columns, from, to]);
  return html`<div class="price-chart" style=${{ minHeight: `${TALL}px` }} ref=${box} role="img" aria-label=${label} />`;
}

/** Lowest and highest value to show, with some room. */
function boundsOf([, ...series]) {
  const known = series.flat().filter((each) => each > 0);
  if (!known.length) return [0, 1];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = (most - least || most) * 0.1;
  return [Math.max(0, least - room), most + room];
}

function options(UPlot, width, given) {
  const paths = UPlot.paths.stepped({ align: 1 });
  const font = "11px Inter, system-ui, sans-serif";
  const line = (name, more) => ({ stroke: () => token(name), width: 1.6, paths, points: { show: false }, ...more });
  const axis = { stroke: () => token("--faint"), ticks: { show: false }, font };
  return {
    width, height: TALL, legend: { show: false }, padding: [10, 14, 0, 0], cursor: { show: false },
    scales: { x: { time: true, range: () => [given.current.from, given.current.to] }, y: { range: () => boundsOf(given.current.columns) } },
    axes: [
      { ...axis, grid: { show: false }, size: 28, space: 80, values: (u, splits) => timeWords(splits) },
      { ...axis, grid: { stroke: () => token("--grid"), width: 1 }, size: width < 560 ? 74 : 88, values: (u, splits) => splits.map((each) => money(each)) },
    ],
    series: [{}, line("--own", { width: 2.6 }), line("--text"), line("--quiet", { width: 1, dash: [3, 4] }), line("--held", { dash: [8, 4] })],
  };
}

function timeWords(splits) {
  const apart = splits.length > 1 ? splits[1] - splits[0] : 60;
  if (apart >= 86_400) return splits.map((each) => new Date(each * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" }));
  return splits.map((each) => clock(each, each).slice(0, apart < 60 ? 8 : 5));
}
