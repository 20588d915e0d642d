// Floor, reference, range and the life of every bid over time. Pointing at it, or its arrow keys, choose a moment.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../page.js";
import { clock } from "../format.js";
import { indexAt } from "../timeline_shape.js";
import { token, usePlot } from "./plot.js";
import { drawBand, drawMark, lifeDrawer } from "./timeline_canvas.js";

/**
 * `data`: {columns, lives, bounds, from, to, range: {low, high} as parts of the reference or null, step}; `mark` is the
 * moment shown, or null; `onPoint(time | null)` while somebody points, `onPick(time | null)` when one is chosen.
 */
export function Timeline({ data, mark, show, label, onPoint, onPick, height = 290 }) {
  const given = useRef({});
  given.current = { ...data, mark, show, onPoint, onPick };
  const make = (UPlot, width) => [options(UPlot, width, height, given), columnsFor(given.current)];
  const [box, plot] = usePlot({ height, make, begin: (made) => listen(made, given) });
  useEffect(() => {
    if (!plot.current) return;
    plot.current.setData(columnsFor(given.current), false);
    plot.current.setScale("x", { min: data.from, max: data.to });
  }, [data]);
  useEffect(() => plot.current?.redraw(false, false), [mark]);

  const onKey = (event) => {
    const times = data.columns.time.filter((each, i) => data.columns.floor[i] !== null || data.columns.reference[i] !== null);
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") onPick(null);
    if (!(event.key in steps) || !times.length) return;
    event.preventDefault();
    // From between two of them it is not far to the one before.
    const at = mark === null ? times.length : indexAt(times, mark) + (steps[event.key] < 0 && mark > times[indexAt(times, mark)] ? 1 : 0);
    const next = at + steps[event.key];
    onPick(next >= times.length ? null : times[Math.max(0, next)]);
  };
  return html`<div class="timeline" style=${{ minHeight: `${height}px` }} ref=${box} role="img" tabindex="0" aria-label=${label} onKeyDown=${onKey} />`;
}

const columnsFor = ({ columns }) => [columns.time, columns.floor, columns.reference];

/** Has the plot tell where somebody points; a touch chooses at once. Returns the end of it. */
function listen(made, given) {
  const timeOf = (event) => {
    const { from, to } = given.current;
    const time = made.posToVal(event.clientX - made.over.getBoundingClientRect().left, "x");
    const step = Math.max(1, Math.round((to - from) / 500));
    return Math.min(to, Math.max(from, Math.round(time / step) * step));
  };
  const move = (event) => event.pointerType === "mouse" && given.current.onPoint(timeOf(event));
  const leave = () => given.current.onPoint(null);
  const click = (event) => given.current.onPick(timeOf(event));
  const all = [["pointermove", move], ["pointerleave", leave], ["click", click]];
  for (const [name, heard] of all) made.over.addEventListener(name, heard);
  return () => all.forEach(([name, heard]) => made.over.removeEventListener(name, heard));
}

function options(UPlot, width, height, given) {
  const stepped = UPlot.paths.stepped({ align: 1 });
  const font = "11px Inter, system-ui, sans-serif";
  const now = given.current;
  return {
    width, height, legend: { show: false }, padding: [10, 14, 0, 0],
    cursor: { points: { show: false }, x: true, y: false, drag: { x: false, y: false } },
    scales: { x: { time: true, range: () => [given.current.from, given.current.to] }, y: { range: () => given.current.bounds } },
    axes: [
      { stroke: () => token("--faint"), grid: { show: false }, ticks: { show: false }, font, size: 28, space: width < 560 ? 66 : 92,
        values: (u, splits) => timeWords(splits, given.current) },
      { stroke: () => token("--faint"), grid: { stroke: () => token("--grid"), width: 1 }, ticks: { show: false }, font,
        size: width < 560 ? 70 : 88, values: (u, splits) => splits.map(given.current.show) },
    ],
    series: [{},
      { stroke: () => token("--text"), width: 1.6, paths: stepped, points: { show: false } },
      { stroke: () => token("--quiet"), width: 1, dash: [3, 4], paths: stepped, points: { show: false } }],
    hooks: {
      drawClear: [(u) => drawBand(u, given.current, token("--own-band"))],
      draw: [lifeDrawer(given, token), (u) => drawMark(u, given.current.mark, token("--text"))],
      ready: [(u) => u.setScale("x", { min: now.from, max: now.to })],
    },
  };
}

function timeWords(splits, { from, to }) {
  const apart = splits.length > 1 ? splits[1] - splits[0] : 60;
  if (apart >= 86_400) return splits.map((each) => new Date(each * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" }));
  return splits.map((each) => (each < from || each > to ? "" : clock(each, each).slice(0, apart < 60 ? 8 : 5)));
}
