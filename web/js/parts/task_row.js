// One bidding task in one row: its state, its market on a line, where its best bid stands, and what its last cycle did.
import { html } from "../html.js";
import { NONE, money, perToken } from "../format.js";
import { t } from "../texts.js";
import "../texts/market.js";
import { faultOf, spoken } from "../texts/reasons.js";
import { Icon } from "./icon.js";
import { Money } from "./money.js";
import { Said } from "./said.js";
import { Spark } from "./spark.js";
import { NextCycle, State } from "./state.js";
import { Strip } from "./strip.js";

/** Codes whose words are those of the server. */
const WORDS_SAY = new Set(["start_refused", "signer_refused", "venue_refused", "bad_config", "not_found"]);

const priceOf = (isRune) => (price) => (isRune ? perToken(price) : money(price));

export function Fault({ task }) {
  const { title, why } = faultOf(task);
  const words = WORDS_SAY.has(task.lastErrorCode) ? spoken(task.lastError) : why;
  return html`<span class="fault-line"><${Icon} name="alert" /><span><b>${title}${words && "."}</b> ${words}</span></span>`;
}

const Cell = ({ name, label, children }) => html`<div class=${`cell ${name}`}><span class="label">${label}</span>${children}</div>`;

const Place = ({ place }) => (place === null
  ? html`<span class="num dim" title=${t("row.place.unknown")}>${NONE}</span>`
  : html`<span class=${`num place ${place === 1 ? "first" : ""}`}>#${place}</span>`);

/** Names of the columns, once above the rows; on narrow screens each cell says its own. */
export const TaskHeads = ({ unit = "" }) => html`<div class="task-heads" aria-hidden="true"><span />
  <span>${t("row.floor")}</span><span>${t("row.market")}</span><span>${t("row.place")}</span><span>${t("row.bids")}</span><span>${t("row.sats")} ${unit && html`<u>${unit}</u>`}</span></div>`;

/** `series` is the task's past, `standing` as standing.js tells it, `lead` what stands before the name. */
export function TaskCells({ task, standing, cycle, series, isSeen, lead }) {
  const isRune = task.type === "rune";
  const show = priceOf(isRune);
  const points = series ? series.time.map((time, i) => [time, series.floor[i] === null ? null : Number(series.floor[i])]) : [];
  const trait = task.config.bidType === "trait" ? `${task.config.traitType}: ${task.config.traitValue}` : "";
  return html`<div class="who">${lead}<a class="cover" href=${`#/tasks/${task.id}`}><b><bdi>${task.slug}</bdi></b></a>${trait && html`<span class="tag"><bdi>${trait}</bdi></span>`}
      <span class="how"><${State} task=${task} />${isSeen && html`<${NextCycle} task=${task} />`}</span></div>
    <${Cell} name="floor-cell" label=${t("row.floor")}><span class="num">${standing?.floor ? show(standing.floor) : NONE}${isRune && html`<u>${t("row.each")}</u>`}</span>
      <${Spark} points=${points} words=${t("row.spark")} /></${Cell}>
    <div class="cell strip-cell">${standing && html`<${Strip} standing=${standing} show=${show} />`}</div>
    <${Cell} name="place-cell" label=${t("row.place")}><${Place} place=${standing?.place ?? null} /></${Cell}>
    <${Cell} name="bids-cell" label=${t("row.bids")}><span class="num">${standing ? standing.own.length : NONE}<span class="dim"> / ${task.config.bidCount}</span></span></${Cell}>
    <${Cell} name="sats-cell" label=${t("row.sats")}>${standing ? html`<${Money} value=${standing.sats} />` : html`<span class="num">${NONE}</span>`}
      ${task.config.dryRun && html`<span class="on-paper">${t("row.paper")}</span>`}</${Cell}>
    <p class="said">${task.lastError && html`<${Fault} task=${task} />`}<${Said} cycle=${cycle} />${task.tags.map((tag) => html`<span key=${tag} class="label-tag"><bdi>${tag}</bdi></span>`)}</p>`;
}
