// The order book as a ladder: price goes up, depth goes right, own rungs lie across it with what became of them.
import { html, t } from "../page.js";
import { money, perToken, percent } from "../format.js";
import { heightOf, ladderShape } from "../ladder_shape.js";
import { reasonOf } from "../texts/reasons.js";
import { Money, Sized } from "./basics.js";
import { Empty } from "./states.js";
import { Term } from "./term.js";

const NARROW = 560;

/** How prices of an item or a token are written. */
export const priceWriter = (isRune) => (isRune ? perToken : money);

/** `picture` as ladder_shape.js wants it, with `isRune` and `name`. */
export const Ladder = ({ picture }) => html`<${Sized} name="ladder-box">${(width) => html`<${Drawing} picture=${picture} width=${width} />`}</${Sized}>`;

function Drawing({ picture, width }) {
  const isNarrow = width < NARROW;
  const shape = ladderShape(picture, width, heightOf(picture.rungs.length + 1, isNarrow), isNarrow);
  if (!shape) return html`<${Empty}>${t("ladder.none")}</${Empty}>`;
  const show = priceWriter(picture.isRune);
  const { axis, right, plot } = shape;
  const share = (unit) => (picture.floor ? percent(unit / picture.floor) : "");
  return html`<svg class="ladder" viewBox=${`0 0 ${width} ${shape.height}`} width=${width} height=${shape.height} role="img" aria-label=${sentenceOf(picture, shape, show)}>
    ${shape.band && html`<rect class="band" x=${axis} width=${plot} y=${shape.band.y} height=${shape.band.height} rx="3" />`}
    ${shape.ticks.map((tick) => html`<g class="tick" key=${tick.price}><line x1=${axis} x2=${right} y1=${tick.y} y2=${tick.y} /><text x=${axis - 8} y=${tick.y} dy=".34em">${show(tick.price)}</text></g>`)}
    ${["bids", "asks"].map((side) => html`<g class=${side}><path class="depth" d=${shape[side].area} /><path class="edge" d=${shape[side].line} /></g>`)}
    ${shape.floorY !== null && html`<line class="floor" x1=${axis} x2=${right} y1=${shape.floorY} y2=${shape.floorY} />`}
    ${shape.cap && html`<${Cap} cap=${shape.cap} at=${isNarrow ? right - 2 : width - 4} axis=${axis} right=${right} show=${show} />`}
    ${shape.beyond && html`<text class="range-beyond" x=${axis + 6} y=${shape.cap?.y === null ? 28 : 12}>${t("word.beyond", { price: show(shape.beyond) })}</text>`}
    ${shape.spread && html`<text class="spread" x=${axis + 10} y=${shape.spread.y} dy=".35em">${t("ladder.spread", { share: percent(shape.spread.share) })}</text>`}
    ${shape.rungs.map((rung) => html`<${Rung} key=${rung.key} rung=${rung} axis=${axis} plot=${plot} />`)}
    ${isNarrow && shape.floorY !== null && html`<text class="floor-words on-bar" x=${axis + 8} y=${shape.floorY - 8}>${t("word.floor")} <tspan class="strong">${show(picture.floor)}</tspan></text>`}
    ${shape.labels.map((label) => (isNarrow ? onBar(label, shape, show) : beside(label, shape, picture, show, share)))}
  </svg>`;
}

function Cap({ cap, at, axis, right, show }) {
  const words = t("word.hard_cap", { price: show(cap.price) });
  if (cap.y === null) return html`<text class="cap-words" x=${at} y="12" text-anchor="end">${words} ↑</text>`;
  return html`<g class="cap"><line x1=${axis} x2=${right} y1=${cap.y} y2=${cap.y} /><text class="cap-words" x=${axis + 10} y=${cap.y - 6}>${words}</text></g>`;
}

function Rung({ rung, axis, plot }) {
  if (!rung.isLive) {
    return html`<g class="rung none"><line x1=${axis} x2=${axis + plot} y1=${rung.y} y2=${rung.y} /><circle cx=${axis} cy=${rung.y} r="5" /></g>`;
  }
  return html`<g class=${`rung own ${rung.isLeaving ? "leaving" : ""} ${rung.isDry ? "dry" : ""}`}><rect x=${axis} y=${rung.y - 2.5} width=${plot} height="5" rx="2.5" /><circle cx=${axis} cy=${rung.y} r="5.5" /></g>`;
}

function Rank({ rank, x, y }) {
  const wide = room(rank) - 7;
  return html`<g class=${`rank ${rank === 1 ? "first" : ""}`}><rect x=${x} y=${y - 12} width=${wide} height="24" rx="7" /><text x=${x + wide / 2} y=${y} dy=".36em" text-anchor="middle">#${rank}</text></g>`;
}

const room = (rank) => (rank ? Math.max(34, 20.6 + String(rank).length * 7.6) + 7 : 0);

/** A price of an item or a token in a list: an amount in even columns, or per token. */
export const Price = ({ value, isRune }) => (isRune ? html`<span class="num">${perToken(value)}</span>` : html`<${Money} value=${value} />`);

/** What a rung is, in words: its reason, and that there is no bid where there is none. */
export const rungWords = (rung) => (rung.isLive ? reasonOf(rung.reason).title : t("ladder.no_bid", { why: reasonOf(rung.reason).title }));

function beside(label, shape, picture, show, share) {
  const { at, y } = label;
  const x = shape.right + 30;
  const lead = html`<path class=${`lead ${label.kind === "floor" ? "floor" : label.rung.isLive ? "own" : ""}`} d=${`M${shape.right + 2} ${y}C${shape.right + 18} ${y} ${shape.right + 12} ${at} ${x - 6} ${at}`} />`;
  if (label.kind === "floor") return html`<g key="floor">${lead}<text class="floor-words" x=${x} y=${at} dy=".35em">${t("word.floor")} <tspan class="strong">${show(picture.floor)}</tspan></text></g>`;
  const { rung } = label;
  const left = x + (rung.isLive ? shape.rungs.reduce((most, each) => Math.max(most, room(each.rank)), 0) : 0);
  const price = html`<tspan class=${`price ${rung.isLive ? "" : "none"}`}>${show(rung.unit)}</tspan> <tspan class="share">${share(rung.unit)}</tspan>`;
  return html`<g key=${rung.key}>${lead}${rung.rank && html`<${Rank} rank=${rung.rank} x=${x} y=${at} />`}
    ${shape.isTight
      ? html`<text x=${left} y=${at} dy=".35em">${price} <tspan class="why-words" dx="4">${rungWords(rung)}</tspan></text>`
      : html`<text x=${left} y=${at - 3}>${price}</text><text class="why-words" x=${left} y=${at + 13}>${rungWords(rung)}</text>`}</g>`;
}

function onBar(label, { right }, show) {
  const { rung } = label;
  const wide = room(rung.rank);
  return html`<g key=${rung.key}>${rung.rank && html`<${Rank} rank=${rung.rank} x=${right - wide} y=${label.y} />`}
    <text class=${`price on-bar ${rung.isLive ? "" : "none"}`} x=${right - 6 - wide} y=${label.y - 8} text-anchor="end">${show(rung.unit)}</text></g>`;
}

function sentenceOf(picture, shape, show) {
  const bids = shape.rungs.filter((rung) => rung.isLive).map((rung) => `${show(rung.unit)}${rung.rank ? ` #${rung.rank}` : ""}, ${reasonOf(rung.reason).title}`);
  const none = shape.rungs.filter((rung) => !rung.isLive).map((rung) => `${show(rung.unit)}, ${rungWords(rung)}`);
  return t("ladder.sentence", { name: picture.name, floor: show(picture.floor), others: picture.bids && picture.bids.reduce((sum, level) => sum + level.orders, 0), bids, none });
}

/** What the ladder's lines are, each by its colour and its shape. */
export const LadderLegend = () => html`<span class="legend">
  <span><svg class="k-own-bar" viewBox="0 0 18 12" aria-hidden="true"><path d="M4 6h14" /><circle cx="4" cy="6" r="4" /></svg>${t("legend.own")}<${Term} of="rung" /></span>
  <span><svg class="k-bids" viewBox="0 0 18 12" aria-hidden="true"><path d="M1 2h6v4h5v4h5" /></svg>${t("legend.bids")}</span>
  <span><svg class="k-asks" viewBox="0 0 18 12" aria-hidden="true"><path d="M1 10h6v-4h5v-4h5" /></svg>${t("legend.asks")}<${Term} of="ask" /></span>
  <span><i class="k-band" />${t("legend.range")}<${Term} of="range" /></span></span>`;

/** The same as numbers: rows for a table. */
export function ladderRows(picture) {
  const others = [...(picture.asks || []).map((each) => ({ ...each, kind: "ask" })), ...(picture.bids || []).map((each) => ({ ...each, kind: "bid" }))];
  const own = picture.rungs.filter((rung) => rung.unit > 0).map((rung) => ({ price: rung.unit, quantity: rung.quantity, kind: rung.isLive ? "own" : "none", rung }));
  return [...others, ...own].sort((a, b) => b.price - a.price).map((row, i) => ({ ...row, key: `${row.kind} ${i}` }));
}
