// Every bid that a task ever made, the newest first, with what became of it.
import { useEffect, useState } from "preact/hooks";
import { html } from "../../html.js";
import { get, withQuery } from "../../api.js";
import { clock, iso, perToken, quantity, secondsOf, unitName } from "../../format.js";
import { unitOf } from "../../decision.js";
import { onEvent } from "../../events.js";
import { useAct, useLoad } from "../../load.js";
import { t } from "../../texts.js";
import { Money } from "../../parts/money.js";
import { Empty, Loaded, wordsOf } from "../../parts/states.js";
import { Table } from "../../parts/table.js";
import { toast } from "../../parts/toast.js";

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
  const more = (before) => run(() => read(task.id, before).then((answer) => setOlder((old) => ({ orders: [...(old?.orders || []), ...answer.orders], next: answer.next })), (refusal) => toast(wordsOf(refusal, { isRead: true }), { isBad: true })));
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
    ...(isRune ? [{ name: t("orders.each"), isNumber: true, cell: (order) => html`<span class="num">${perToken(unitOf(order.price, order.quantity))}</span>` }, { name: t("numbers.quantity"), isNumber: true, cell: (order) => quantity(order.quantity) }] : []),
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
