// One's own bids on a line with the market: the range, the floor, and the best bid of others.
import { html, t } from "../page.js";
import "../texts/market.js";

const MID = 14;

/** Turns a price into its place between the ends, in percent. */
function scaleOf(prices) {
  const known = prices.filter((each) => each > 0);
  if (!known.length) return null;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = most - least || most * 0.1;
  const [from, to] = [least - room * 0.06, most + room * 0.12];
  return (price) => (100 * (price - from)) / (to - from);
}

const Tick = ({ x, name, half }) => html`<line class=${name} x1=${`${x}%`} x2=${`${x}%`} y1=${MID - half} y2=${MID + half} />`;

/** `row` is that of the server, `show` writes a price for people. */
export function Strip({ row, show }) {
  const { floor, bestBid, bids, low, high } = row;
  const at = scaleOf([floor, bestBid, low, high, ...bids.map((each) => each.unitPrice)]);
  if (!at) return html`<span class="strip-none">${t(row.said ? "strip.unread" : "strip.none")}</span>`;
  const words = t("strip.words", { bids: bids.length, top: bids.length ? show(bids[0].unitPrice) : "", floor: floor ? show(floor) : "", place: row.place });
  return html`<svg class="strip" height=${2 * MID} role="img" aria-label=${words}><title>${words}</title>
    <line class="axis" x1="0" x2="100%" y1=${MID} y2=${MID} />
    ${low && high > low && html`<rect class="band" x=${`${at(low)}%`} width=${`${at(high) - at(low)}%`} y=${MID - 11} height="22" rx="4" />`}
    ${bestBid && html`<${Tick} x=${at(bestBid)} name="rival" half=${7} />`}
    ${floor && html`<${Tick} x=${at(floor)} name="floor" half=${12} />`}
    ${bids.map((each) => html`<svg key=${each.id} x=${`${at(each.unitPrice)}%`} y=${MID} overflow="visible"><path class=${each.state === "live" ? "own" : "own waits"} d="M0 -6 6 0 0 6 -6 0z" /></svg>`)}</svg>`;
}
