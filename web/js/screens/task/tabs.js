// What else there is to see of a task: its bids and fills, another config on its past, its log, its settings.
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { get, withQuery } from "../../api.js";
import { Empty, Loaded, Skeleton, showRefusal, useAct, useLoad } from "../../parts/states.js";
import { MAIN_GROUPS, MORE_GROUPS, OWN_GROUPS, groupOf, matters, readShapes } from "../../config_shape.js";
import { unitOf } from "../../decision.js";
import { onEvent } from "../../events.js";
import { clock, iso, perToken, quantity, secondsOf, unitName } from "../../format.js";
import { setQuery } from "../../router.js";
import { now } from "../../store.js";
import { Segments } from "../../parts/field.js";
import { Lines, Money, Table } from "../../parts/basics.js";
import { valueWords } from "../edit/words.js";
import "../../texts/edit.js";
import "../../texts/task_tabs.js";

const LINES = 200;
const LAST = 20;

const readLog = (id, lines, abort) => get(`/tasks/${id}/log?lines=${lines}`, { abort }).then((answer) => answer.lines);

export function Log({ task }) {
  // A cycle writes lines: they are read again after each.
  const load = useLoad((abort) => readLog(task.id, LINES, abort), [task.id, task.lastCycle?.time], task.id);
  return html`<${Loaded} from=${load} rows=${1} tall=${260}>${(lines) => (lines.length
    ? html`<${Lines} lines=${lines} label=${t("tab.log")} /><div class="panel-body"><button class="button" onClick=${load.again}>${t("log.again")}</button></div>`
    : html`<${Empty}>${t("log.empty")}</${Empty}>`)}</${Loaded}>`;
}

/** The last lines, for a task that was given up. */
export function LogEnd({ id }) {
  const load = useLoad((abort) => readLog(id, LAST, abort), [id]);
  return html`<details open><summary>${t("task.log.end")}</summary><${Loaded} from=${load} rows=${1} tall=${120}>${(lines) => html`<${Lines} lines=${lines.length ? lines : [t("log.empty")]} label=${t("task.log.end")} />`}</${Loaded}></details>`;
}

const PAGE = 50;
const TOLD = ["order", "fill"];

const read = (id, before, abort) => get(withQuery(`/tasks/${id}/orders`, { limit: PAGE, before }), { abort });

export function Bids({ task }) {
  const [turn, setTurn] = useState(0);
  const load = useLoad((abort) => read(task.id, null, abort), [task.id, turn], task.id);
  const [older, setOlder] = useState(null);
  const { isBusy, run } = useAct();
  useEffect(() => {
    let timer = 0;
    const end = onEvent((told) => {
      if (told.task !== task.id || !TOLD.includes(told.event)) return;
      clearTimeout(timer);
      timer = setTimeout(() => setTurn((old) => old + 1), 400);
    });
    return () => (end(), clearTimeout(timer));
  }, [task.id]);
  const more = (before) => run(() => read(task.id, before).then((answer) => setOlder((old) => ({ orders: [...(old?.orders || []), ...answer.orders], next: answer.next })), (refusal) => showRefusal(refusal, { isRead: true })));
  return html`<${Loaded} from=${load} rows=${3} tall=${44}>${(page) => {
    const known = new Map([...(older?.orders || []), ...page.orders].map((order) => [order.id, order]));
    const orders = [...known.values()].sort((a, b) => b.id - a.id);
    const next = older ? older.next : page.next;
    if (!orders.length) return html`<${Empty}>${t("orders.empty")}</${Empty}>`;
    return html`<div class="orders"><${Table} label=${t("tab.bids")} columns=${columnsOf(task)} rows=${orders} keyOf=${(order) => order.id} /></div>
      ${next !== null && html`<div class="panel-body"><button class="button" disabled=${isBusy} onClick=${() => more(next)}>${t("orders.older")}</button></div>`}`;
  }}</${Loaded}>`;
}

function columnsOf(task) {
  const isRune = task.type === "rune";
  const when = (time) => html`<time title=${iso(secondsOf(time))} dateTime=${time}>${clock(secondsOf(time))}</time>`;
  return [
    { name: t("orders.fate"), cell: (order) => html`<${Fate} order=${order} />` },
    ...(isRune ? [{ name: t("orders.each"), isNumber: true, cell: (order) => html`<span class="num">${perToken(unitOf(order.price, order.quantity))}</span>` }, { name: t("word.quantity"), isNumber: true, cell: (order) => quantity(order.quantity) }] : []),
    { name: t(isRune ? "orders.whole" : "orders.price", { unit: unitName() }), isNumber: true, cell: (order) => html`<${Money} value=${order.price} />` },
    { name: t("orders.placed"), isNumber: true, cell: (order) => when(order.createdAt) },
    { name: t("orders.ended"), isNumber: true, cell: (order) => (order.closedAt ? when(order.closedAt) : html`<span class="quiet">${t("orders.until", { time: clock(secondsOf(order.expiresAt)) })}</span>`) },
    { name: t("orders.item"), cell: (order) => (order.inscriptionId ? html`<code title=${order.inscriptionId}>${`${order.inscriptionId.slice(0, 8)}…`}</code>` : "") },
  ];
}

function Fate({ order }) {
  const code = order.state === "closed" ? order.closeReason : order.state;
  return html`<span class=${`tag ${{ filled: "fill", live: "do", unknown: "wait", lost: "wait", refused: "fault" }[code] || ""}`}>${code === "filled" && html`<span aria-hidden="true">★ </span>`}${t(`fate.${code}`)}</span>${order.dryRun && html` <span class="tag wait">${t("state.dry")}</span>`}`;
}

/** Groups of the form that are one section here, and the others. */
const SECTIONS = [[...OWN_GROUPS, ...MAIN_GROUPS], ...MORE_GROUPS.map((group) => [group])];
const HEADED = new Set(["slug", "type", "venue", "tags"]); // stand at the head of the page

export function Settings({ task, moment, isPast }) {
  const shapes = useLoad(readShapes);
  return html`<div class="panel-body settings"><${Loaded} from=${shapes} rows=${1} tall=${320}>${() => html`<${Known} task=${task} then=${isPast && moment?.cycle ? moment.cycle : null} />`}</${Loaded}></div>`;
}

function Known({ task, then }) {
  const config = then ? then.config : task.config;
  const shown = (field) => !HEADED.has(field.name) && config[field.name] !== undefined && matters(field, config);
  const words = (name, of) => (of[name] === undefined ? t("word.none") : valueWords(name, of[name], of));
  const sections = SECTIONS.map((groups) => [groups[0], groups.flatMap((group) => groupOf(group)).filter(shown)]).filter(([, fields]) => fields.length);
  return html`<p class="quiet">${then ? t("set.then", { time: clock(secondsOf(then.time), now.peek()) }) : t("set.now")}</p>
    <div class="settings-groups">${sections.map(([group, fields]) => html`<section key=${group}><h3>${t(group === "what" ? "edit.range" : `edit.group.${group}`)}</h3><dl class="facts">${fields.map(({ name, label }) => {
      const told = words(name, config);
      const today = then ? words(name, task.config) : told;
      return html`<dt key=${name}>${label}</dt><dd class=${told === today ? "" : "changed"}>${told}${told !== today && html` <span class="quiet">${t("set.today", { value: today })}</span>`}</dd>`;
    })}</dl></section>`)}</div>`;
}

const TABS = { bids: Bids, whatif: WhatIf, log: Log, settings: Settings };

export function Tabs({ task, query, moment, isPast }) {
  const tab = query.tab in TABS ? query.tab : "bids";
  return html`<section class="panel" aria-label=${t("tab.list")}><header class="panel-head"><${Segments} label=${t("tab.list")} value=${tab}
      options=${Object.keys(TABS).map((each) => [each, t(`tab.${each}`)])} onChange=${(value) => setQuery({ tab: value === "bids" ? "" : value })} /></header>
    <${TABS[tab]} key=${tab} task=${task} moment=${moment} isPast=${isPast} /></section>`;
}

/** Who does not ask what would have been needs none of it. */
function WhatIf(props) {
  const [Found, setFound] = useState(null);
  useEffect(() => void import("./whatif.js").then((module) => setFound(() => module.WhatIf), () => {}), []);
  return Found ? html`<${Found} ...${props} />` : html`<div class="panel-body"><${Skeleton} rows=${1} tall=${260} /></div>`;
}
