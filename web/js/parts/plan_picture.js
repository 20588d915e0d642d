// The plan on the order book: price goes up, depth goes right, the planned bids lie across it.
import { html, t } from "../page.js";
import { endsOf, spreadOut, stairsOf, ticksOf } from "../ladder_shape.js";

const TOP = 20;
const BOTTOM = 14;

/**
 * `asks` and `bids`: others' levels {price, quantity}, the best first (bids may be null: not known). `rungs`: {key, unit,
 * share, rank, title, isBid} each; `show` writes a price; `words` say the picture to those who do not see it.
 */
export function PlanPicture({ width, asks, bids, floor, low, high, cap, rungs, show, words }) {
  const room = endsOf({ floor, low, high, asks }, rungs.map((rung) => rung.unit));
  if (!room) return null;
  const { min, max, beyond } = room;
  const isNarrow = width < 560;
  const height = Math.min(560, Math.max(320, 60 + rungs.length * (isNarrow ? 26 : 42)));
  const y = (price) => TOP + (height - TOP - BOTTOM) * (1 - (Math.min(max, Math.max(min, price)) - min) / (max - min));
  const left = isNarrow ? 66 : 84;
  const right = Math.max(left + 40, width - (isNarrow ? 132 : 216));
  const asked = stairsOf(asks, min, max, max);
  const bid = stairsOf(bids || [], min, max, min);
  const deep = Math.max(asked.sum, bid.sum, 1e-12);
  const x = (sum) => left + ((right - left) * 0.8 * sum) / deep;
  const line = (points) => points.map(([sum, price], i) => `${i ? "L" : "M"}${x(sum).toFixed(1)} ${y(price).toFixed(1)}`).join("");
  const area = ({ points }) => points.length > 0 && `${line(points)}L${left} ${y(points.at(-1)[1]).toFixed(1)}L${left} ${y(points[0][1]).toFixed(1)}Z`;
  const labels = spreadOut(
    [...(floor ? [{ key: "floor", y: y(floor), tall: 22 }] : []), ...rungs.map((rung) => ({ key: rung.key, y: y(rung.unit), tall: isNarrow ? 20 : 38, rung }))],
    2,
    height - 2,
    0,
  );
  const draw = isNarrow ? inShort : beside;
  return html`<svg class="plan-picture" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" aria-label=${words}>
    ${low > 0 && high > 0 && html`<rect class="band" x=${left} width=${right - left} y=${y(high)} height=${Math.max(1, y(low) - y(high))} rx="3" />`}
    ${ticksOf(min, max, Math.floor(height / 74)).map((tick) => html`<g class="tick" key=${tick}><line x1=${left} x2=${right} y1=${y(tick)} y2=${y(tick)} /><text x=${left - 8} y=${y(tick)} dy=".34em">${show(tick)}</text></g>`)}
    <path class="depth bid" d=${area(bid) || ""} /><path class="edge bid" d=${line(bid.points)} />
    <path class="depth ask" d=${area(asked) || ""} /><path class="edge ask" d=${line(asked.points)} />
    ${floor && html`<line class="floor" x1=${left} x2=${right} y1=${y(floor)} y2=${y(floor)} />`}
    ${cap > 0 && cap < max && cap > min && html`<g class="cap"><line x1=${left} x2=${right} y1=${y(cap)} y2=${y(cap)} /><text x=${right - 6} y=${y(cap) - 5} text-anchor="end">${t("word.hard_cap", { price: show(cap) })}</text></g>`}
    ${beyond && html`<text class="range-beyond" x=${left + 6} y="13">${t("word.beyond", { price: show(beyond) })}</text>`}
    ${cap >= max && html`<text class="cap-away" x=${right - 6} y="13" text-anchor="end">${t("word.hard_cap", { price: show(cap) })} ↑</text>`}
    ${rungs.map((rung) => html`<g key=${rung.key} class=${`rung ${rung.isBid ? "own" : "none"}`}>${rung.isBid
      ? html`<rect x=${left} y=${y(rung.unit) - 2.5} width=${right - left} height="5" rx="2.5" />`
      : html`<line x1=${left} x2=${right} y1=${y(rung.unit)} y2=${y(rung.unit)} />`}<circle cx=${left} cy=${y(rung.unit)} r="5" /></g>`)}
    ${labels.map((label) => draw({ label, right, show, floor }))}</svg>`;
}

function beside({ label, right, show, floor }) {
  const { key, at, rung } = label;
  const lead = html`<path class=${`lead ${rung ? (rung.isBid ? "own" : "none") : "floor"}`} d=${`M${right + 2} ${label.y}C${right + 16} ${label.y} ${right + 10} ${at} ${right + 22} ${at}`} />`;
  if (!rung) return html`<g key=${key}>${lead}<text class="label-floor" x=${right + 28} y=${at} dy=".35em">${t("word.floor")} <tspan class="strong">${show(floor)}</tspan></text></g>`;
  const from = right + 28 + (rung.rank ? 40 : 0);
  return html`<g key=${key}>${lead}
    ${rung.rank && html`<g class=${`rank ${rung.rank === 1 ? "first" : ""}`}><rect x=${right + 28} y=${at - 11} width="33" height="22" rx="7" /><text x=${right + 44.5} y=${at} dy=".35em" text-anchor="middle">#${rung.rank}</text></g>`}
    <text class=${`label-price ${rung.isBid ? "own" : "none"}`} x=${from} y=${at - 2}>${show(rung.unit)} <tspan class="share">${rung.share}</tspan></text>
    <text class="label-why" x=${from} y=${at + 13}>${rung.title}</text></g>`;
}

/** On a phone there is room for the price and its share only. */
function inShort({ label, right, show, floor }) {
  const { key, at, rung } = label;
  const lead = html`<path class=${`lead ${rung ? (rung.isBid ? "own" : "none") : "floor"}`} d=${`M${right + 2} ${label.y}L${right + 12} ${at}`} />`;
  const from = right + 16;
  if (!rung) return html`<g key=${key}>${lead}<text class="label-floor" x=${from} y=${at} dy=".35em">${t("word.floor")} <tspan class="strong">${show(floor)}</tspan></text></g>`;
  return html`<g key=${key}>${lead}<text class=${`label-price short ${rung.isBid ? "own" : "none"}`} x=${from} y=${at} dy=".35em">${show(rung.unit)} <tspan class="share">${rung.rank ? `#${rung.rank}` : rung.share}</tspan></text></g>`;
}
