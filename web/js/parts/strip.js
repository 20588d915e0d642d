// A market on one line: the task's range as a band, bids of others, own bids, asks, and the floor. Prices grow to the right.
import { html } from "../html.js";
import { t } from "../texts.js";

const MID = 20;
const MOST_TICKS = 40;

/** Turns a price into its place between the ends, in percent. */
function scaleOf(standing) {
  const ours = [standing.floor, standing.low, standing.high, ...standing.own.map((each) => each.unit), ...standing.empty.map((each) => each.unit)];
  const known = ours.filter((each) => each > 0);
  if (!known.length) return null;
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = most - least || most * 0.1;
  const [from, to] = [least - room * 0.06, most + room * 0.22];
  const at = (price) => (100 * (price - from)) / (to - from);
  return { at: (price) => `${at(price).toFixed(2)}%`, width: (a, b) => `${Math.max(0.5, at(b) - at(a)).toFixed(2)}%`, holds: (price) => price >= from && price <= to };
}

const Tick = ({ x, name, half }) => html`<line class=${name} x1=${x} x2=${x} y1=${MID - half} y2=${MID + half} />`;

/** `standing` as standing.js tells it; `show` writes a price for people. */
export function Strip({ standing, show }) {
  const scale = scaleOf(standing);
  if (!scale) return html`<span class="strip-none">${t(standing.hasRun ? "strip.unread" : "strip.none")}</span>`;
  const { floor, low, high, own, empty, rivals, asks } = standing;
  const shown = (list) => (list || []).filter((each) => scale.holds(each.unit)).slice(0, MOST_TICKS);
  const words = t("strip.words", { bids: own.length, top: own.length ? show(own[0].unit) : "", floor: floor ? show(floor) : "", place: standing.place });
  return html`<svg class="strip" height=${2 * MID} role="img" aria-label=${words}><title>${words}</title>
    <line class="axis" x1="0" x2="100%" y1=${MID} y2=${MID} />
    ${low && high && html`<rect class="band" x=${scale.at(low)} width=${scale.width(low, high)} y=${MID - 15} height="30" rx="4" />`}
    ${shown(asks).map((each) => html`<${Tick} key=${`a${each.unit}`} x=${scale.at(each.unit)} name="ask" half=${7} />`)}
    ${shown(rivals).map((each) => html`<${Tick} key=${`b${each.unit}`} x=${scale.at(each.unit)} name="rival" half=${7} />`)}
    ${floor && html`<${Tick} x=${scale.at(floor)} name="floor" half=${17} />`}
    ${empty.map((each, i) => html`<circle key=${`e${i}`} class="no-bid" cx=${scale.at(each.unit)} cy=${MID} r="4.500" />`)}
    ${own.map((each) => html`<svg key=${each.id} x=${scale.at(each.unit)} y=${MID} overflow="visible"><path class=${each.isSettled ? "own" : "own waits"} d="M0 -6.500 6.500 0 0 6.500 -6.500 0z" /></svg>`)}
  </svg>`;
}
