// The way of one number, as a line without an axis; a gap is where it was not known.
import { html } from "../html.js";

const TALL = 28;

/** `points` are [time, value]; two of them more than `gap` seconds apart are not joined. `words` say what is drawn. */
export function Spark({ points, words, gap = 300 }) {
  const known = points.filter(([, value]) => value !== null && Number.isFinite(value));
  if (known.length < 2) return html`<span class="spark" />`;
  const [first, last] = [known[0][0], known.at(-1)[0]];
  const values = known.map(([, value]) => value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const x = (time) => (last === first ? 100 : (100 * (time - first)) / (last - first));
  const y = (value) => (most === least ? TALL / 2 : 3 + (TALL - 6) * (1 - (value - least) / (most - least)));
  const path = known.map(([time, value], i) => `${i && time - known[i - 1][0] <= gap ? "L" : "M"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return html`<span class="spark" role="img" aria-label=${words} title=${words}>
    <svg viewBox=${`0 0 100 ${TALL}`} preserveAspectRatio="none" aria-hidden="true"><path d=${path} vector-effect="non-scaling-stroke" /></svg>
    <svg class="end" aria-hidden="true"><circle cx="100%" cy=${`${((100 * y(values.at(-1))) / TALL).toFixed(1)}%`} r="2.500" /></svg></span>`;
}
