// One bidding task in one row: its state, its market on a line, where its best bid stands, and what its last cycle did.
import { html, t } from "../page.js";
import { NONE, money, perToken } from "../format.js";
import { useTaskRow } from "../rows.js";
import { standingOf } from "../standing.js";
import { bookOf, lastCycleOf, momentOf, now, seriesOf, taskOf } from "../store.js";
import { Icon, Money } from "./basics.js";
import { Face } from "./face.js";
import { Said } from "./said.js";
import { NextCycle, State } from "./state.js";
import { faultOf, plainWords } from "../texts/reasons.js";
import "../texts/market.js";

const TALL = 28;

/** `points` are [time, value]; two of them more than `gap` seconds apart are not joined. `words` say what is drawn. */
function Spark({ points, words, gap = 300 }) {
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
function Strip({ standing, show }) {
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

/** Codes whose words are those of the server. */
const WORDS_SAY = new Set(["start_refused", "signer_refused", "venue_refused", "bad_config", "not_found"]);

const priceOf = (isRune) => (price) => (isRune ? perToken(price) : money(price));

export function Fault({ task }) {
  const { title, why } = faultOf(task);
  const words = WORDS_SAY.has(task.lastErrorCode) ? plainWords(task.lastError) : why;
  return html`<span class="fault-line"><${Icon} name="alert" /><span><b>${title}${words && "."}</b> ${words}</span></span>`;
}

const Cell = ({ name, label, children }) => html`<div class=${`cell ${name}`}><span class="label">${label}</span>${children}</div>`;

const Place = ({ place }) => (place === null
  ? html`<span class="num dim" title=${t("row.place.unknown")}>${NONE}</span>`
  : html`<span class=${`num place ${place === 1 ? "first" : ""}`}>#${place}</span>`);

/** Names of the columns, once above the rows; on narrow screens each cell says its own. */
export const TaskHeads = ({ unit = "" }) => html`<div class="task-heads" aria-hidden="true"><span />
  <span>${t("word.floor")}</span><span>${t("row.market")}</span><span>${t("row.place")}</span><span>${t("word.bids")}</span><span>${t("row.sats")} ${unit && html`<u>${unit}</u>`}</span></div>`;

/** `series` is the task's past, `standing` as standing.js tells it, `lead` what stands before the name. */
function TaskCells({ task, standing, cycle, series, isSeen, lead }) {
  const isRune = task.type === "rune";
  const show = priceOf(isRune);
  const points = series ? series.time.map((time, i) => [time, series.floor[i] === null ? null : Number(series.floor[i])]) : [];
  const trait = task.config.bidType === "trait" ? `${task.config.traitType}: ${task.config.traitValue}` : "";
  return html`<div class="who">${lead}<a class="cover" href=${`#/tasks/${task.id}`}><${Face} venue=${task.venue} type=${task.type} slug=${task.slug} /><b><bdi>${task.slug}</bdi></b></a>${trait && html`<span class="tag"><bdi>${trait}</bdi></span>`}
      <span class="how"><${State} task=${task} />${isSeen && html`<${NextCycle} task=${task} />`}</span></div>
    <${Cell} name="floor-cell" label=${t("word.floor")}><span class="num">${standing?.floor ? show(standing.floor) : NONE}${isRune && html`<u>${t("row.each")}</u>`}</span>
      <${Spark} points=${points} words=${t("row.spark")} /></${Cell}>
    <div class="cell strip-cell">${standing && html`<${Strip} standing=${standing} show=${show} />`}</div>
    <${Cell} name="place-cell" label=${t("row.place")}><${Place} place=${standing?.place ?? null} /></${Cell}>
    <${Cell} name="bids-cell" label=${t("word.bids")}><span class="num">${standing ? standing.own.length : NONE}<span class="dim"> / ${task.config.bidCount}</span></span></${Cell}>
    <${Cell} name="sats-cell" label=${t("row.sats")}>${standing ? html`<${Money} value=${standing.sats} />` : html`<span class="num">${NONE}</span>`}
      ${task.config.dryRun && html`<span class="on-paper">${t("word.on_paper")}</span>`}</${Cell}>
    <p class="said">${task.lastError && html`<${Fault} task=${task} />`}<${Said} cycle=${cycle} />${task.tags.map((tag) => html`<span key=${tag} class="label-tag"><bdi>${tag}</bdi></span>`)}</p>`;
}

/** `Lead` draws what stands before the name, such as a box to choose it. */
export function TaskRow({ id, Lead }) {
  const [box, isSeen] = useTaskRow(id);
  const task = taskOf(id).value;
  const standing = task && standingOf(task, momentOf(id).value, bookOf(id).value, now.peek());
  return html`<li class=${`task-row ${task?.isRunning ? "" : "is-off"}`} data-row ref=${box}>${task && html`<${TaskCells} task=${task} standing=${standing}
    cycle=${lastCycleOf(id)} series=${seriesOf(id).value} isSeen=${isSeen} lead=${Lead && html`<${Lead} id=${id} />`} />`}</li>`;
}
