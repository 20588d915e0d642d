// Bidding tasks in a table: heads that sort, one line for each task or two with room, drawn as they come into view.
import { computed, signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { NONE, money, perToken, unitName } from "../format.js";
import { device } from "../kept.js";
import { COLUMNS, lookOf, pressed, sortOf } from "../task_order.js";
import { rowOf, taskOf, tasks } from "../store.js";
import { Icon, Money } from "./basics.js";
import { Face } from "./face.js";
import { Segments } from "./field.js";
import { Said } from "./said.js";
import { NextCycle, State, stateOf } from "./state.js";
import { Strip } from "./strip.js";
import { faultOf, plainWords } from "../texts/reasons.js";
import "../texts/market.js";

/** "compact" or "roomy": how much of a task a row shows. */
export const density = signal(device.getItem("density") === "roomy" ? "roomy" : "compact");
density.subscribe((value) => device.setItem("density", value));

export const Density = () => html`<span class="wide-only"><${Segments} label=${t("table.density")} value=${density.value}
  options=${["compact", "roomy"].map((each) => [each, t(`table.density.${each}`)])} onChange=${(value) => (density.value = value)} /></span>`;

/** All bidding tasks as {task, row, state, look}: task_order.js finds and sorts them. */
export const entries = computed(() => tasks.value?.map((task) => {
  const row = rowOf(task.id).value;
  const [state] = stateOf(task);
  return { task, row, state, look: lookOf(task, row, state) };
}) ?? null);

const OVER = 4; // rows that are drawn beyond those in view
const GUESS = 38;

/** The part of `count` rows of one height that is in view: [ref, {from, to, tall}]. */
function useView(count, wants) {
  const box = useRef(null);
  const [view, setView] = useState({ from: 0, to: 24, tall: GUESS });
  useLayoutEffect(() => {
    const look = () => {
      const tall = box.current.querySelector("[data-row]")?.offsetHeight || GUESS;
      const clip = box.current.parentElement.getBoundingClientRect();
      const { top } = box.current.getBoundingClientRect();
      const from = Math.max(0, Math.floor((Math.max(0, clip.top) - top) / tall) - OVER);
      const to = Math.ceil((Math.min(innerHeight, clip.bottom) - top) / tall) + OVER;
      setView((old) => (old.from === from && old.to === to && old.tall === tall ? old : { from, to, tall }));
    };
    const sized = new ResizeObserver(look);
    sized.observe(box.current.parentElement);
    addEventListener("scroll", look, { capture: true, passive: true });
    look();
    return () => (sized.disconnect(), removeEventListener("scroll", look, { capture: true }));
  }, [count, density.value, ...wants]);
  return [box, view];
}

const NAMES = { name: "word.name", state: "word.state", floor: "word.floor", place: "row.place", bids: "word.bids", exposure: "word.exposure", gain: "row.gain" };
const NUMBERS = new Set(["floor", "place", "bids", "exposure", "gain"]);

function Head({ by, sort, onSort }) {
  const { by: now, isDown } = sortOf(sort);
  const isMoney = by === "exposure" || by === "gain";
  return html`<span role="columnheader" class=${`${by}-cell ${NUMBERS.has(by) ? "number-head" : ""}`} aria-sort=${now === by ? (isDown ? "descending" : "ascending") : undefined}>
    ${onSort ? html`<button type="button" class=${now === by ? "on" : ""} onClick=${() => onSort(pressed(sort, by))}>${t(NAMES[by])}<i aria-hidden="true" />${isMoney && html`<u>${unitName()}</u>`}</button>`
      : html`${t(NAMES[by])}${isMoney && html` <u>${unitName()}</u>`}`}</span>`;
}

/**
 * A table of tasks with these ids. `sort` is that of the address, `onSort` gets another one; `Lead` draws what comes before
 * the name, such as a box to choose it; `all` is the number of tasks of which these are some.
 */
export function TaskTable({ ids, label, sort, onSort, Lead, all = ids.length }) {
  const [box, { from, to, tall }] = useView(ids.length, [Boolean(Lead)]);
  const drawn = ids.slice(from, to);
  return html`<div class=${`task-table ${density.value} ${Lead ? "with-lead" : ""}`} role="table" aria-label=${label} aria-rowcount=${all + 1}>
    <div role="rowgroup" class="task-heads"><div role="row" aria-rowindex="1">${Lead && html`<span role="columnheader"><span class="sr">${t("table.choose")}</span></span>`}
      ${Object.keys(COLUMNS).map((by) => html`<${Head} key=${by} by=${by} sort=${sort} onSort=${onSort} />`)}
      <span role="columnheader" class="said-cell">${t("row.said")}</span></div></div>
    <div role="rowgroup" class="task-rows" ref=${box} style=${{ height: `${ids.length * tall}px` }}><div role="presentation" style=${{ transform: `translateY(${from * tall}px)` }}>
      ${drawn.map((id, i) => html`<${TaskRow} key=${id} id=${id} index=${from + i + 2} Lead=${Lead} />`)}</div></div></div>`;
}

/** `points` are places of a spark from 0 to 99, the oldest first. */
function Spark({ points, minutes }) {
  const known = points.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  if (known.length < 3) return html`<span class="spark" />`;
  const y = (value) => (18 - (value * 16) / 99).toFixed(1);
  const words = t("row.spark", { hours: Math.round((points.length * minutes) / 60) });
  return html`<svg class="spark" viewBox=${`0 0 ${points.length - 1} 20`} preserveAspectRatio="none" role="img" aria-label=${words}><title>${words}</title>
    <path d=${known.map(([i, value], at) => `${at ? "L" : "M"}${i} ${y(value)}`).join("")} vector-effect="non-scaling-stroke" /></svg>`;
}

/** Codes whose words are those of the server. */
const WORDS_SAY = new Set(["start_refused", "signer_refused", "venue_refused", "bad_config", "not_found"]);

export function Fault({ task }) {
  const { title, why } = faultOf(task);
  const words = WORDS_SAY.has(task.lastErrorCode) ? plainWords(task.lastError) : why;
  return html`<span class="fault-line" title=${`${title}. ${words}`}><${Icon} name="alert" /><span><b>${title}${words && "."}</b> ${words}</span></span>`;
}

const Cell = ({ name, label, why, children }) => html`<span role="cell" class=${`cell ${name}-cell`} title=${why}><span class="label">${label}</span>${children}</span>`;
const None = ({ why }) => html`<span class="num dim none" title=${why}>${NONE}</span>`;

function Place({ row, task }) {
  if (row?.place) return html`<span class=${`num place ${row.place === 1 ? "first" : ""}`}>#${row.place}</span>`;
  const { outbidEnabled, onlyBidIfHighest } = task.config;
  return html`<${None} why=${row?.bids.length ? t(outbidEnabled || onlyBidIfHighest ? "row.place.unread" : "row.place.unknown") : ""} />`;
}

function Gain({ value }) {
  if (value === null || value === undefined) return html`<${None} why=${t("row.gain.none")} />`;
  return html`<span class=${`num ${value > 0 ? "good-text" : value < 0 ? "bad-text" : ""}`}>${value > 0 ? "+" : ""}${money(value)}</span>`;
}

/** The state, or that a running task has no bid. */
export function Standing({ task, row }) {
  if (lookOf(task, row, stateOf(task)[0]) !== "empty") return html`<${State} task=${task} />`;
  return html`<span class="state held"><i aria-hidden="true" />${t("state.empty")}</span>`;
}

/** The owner's own words for the task. */
const Tags = ({ tags }) => tags.map((tag) => html`<span key=${tag} class="label-tag"><bdi>${tag}</bdi></span>`);

function TaskRow({ id, index, Lead }) {
  const task = taskOf(id).value;
  const row = rowOf(id).value;
  const isRoomy = density.value === "roomy";
  if (!task) return null;
  const isRune = task.type === "rune";
  const { config } = task;
  const show = (price) => (isRune ? perToken(price) : money(price));
  const isEmpty = row && !row.bids.length && task.isRunning && !config.dryRun;
  return html`<div role="row" aria-rowindex=${index} class=${`task-row ${task.isRunning ? "" : "is-off"}`} data-row>
    ${Lead && html`<span role="cell" class="lead-cell"><${Lead} id=${id} /></span>`}
    <span role="cell" class="name-cell"><a class="cover" href=${`#/tasks/${id}`}><${Face} venue=${task.venue} type=${task.type} slug=${task.slug} /><b title=${task.slug}><bdi>${task.slug}</bdi></b></a>
      ${config.bidType === "trait" && html`<span class="tag"><bdi>${config.traitType}: ${config.traitValue}</bdi></span>`}</span>
    <${Cell} name="state" label=${t("word.state")} why=${task.lastError ? faultOf(task).title : undefined}><${Standing} task=${task} row=${row} />${isRoomy && html`<${NextCycle} task=${task} />`}</${Cell}>
    <${Cell} name="floor" label=${t("word.floor")}><${Spark} points=${row?.spark || []} minutes=${row?.sparkMinutes} />
      ${row?.floor ? html`<span class=${`num ${row.isFloorOld ? "dim" : ""}`} title=${row.isFloorOld ? t("row.floor.old") : isRune ? t("row.each") : undefined}>${show(row.floor)}</span>` : html`<${None} />`}</${Cell}>
    <${Cell} name="place" label=${t("row.place")}><${Place} row=${row} task=${task} /></${Cell}>
    <${Cell} name="bids" label=${t("word.bids")}><span class=${`num ${isEmpty ? "held-text" : ""}`}>${row ? row.bids.length : NONE}<span class="dim"> / ${config.bidCount}</span></span></${Cell}>
    <${Cell} name=${config.dryRun ? "on-paper exposure" : "exposure"} label=${t("word.exposure")} why=${config.dryRun ? t("word.on_paper") : undefined}>${row ? html`<${Money} value=${row.exposure} />` : html`<${None} />`}</${Cell}>
    <${Cell} name="gain" label=${t("row.gain")}><${Gain} value=${row?.gain} /></${Cell}>
    <span role="cell" class="cell said-cell">${task.lastError ? html`<${Fault} task=${task} />` : row && html`<${Said} said=${row.said} most=${isRoomy ? 4 : 2} />`}<${Tags} tags=${task.tags} /></span>
    ${isRoomy && row && html`<span role="cell" class="strip-cell"><${Strip} row=${row} show=${show} /></span>`}</div>`;
}
