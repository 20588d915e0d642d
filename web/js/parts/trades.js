// Fills and bids in pages, newest first; a page stays as it is while newer ones come in.
import { html } from "../html.js";
import { NONE, clock, iso, perToken, quantity, secondsOf, short, span } from "../format.js";
import { setQuery } from "../router.js";
import { now, taskOf } from "../store.js";
import { t } from "../texts.js";
import { Segments, TextField } from "./field.js";
import { Money } from "./money.js";
import { Pages, usePages } from "./pages.js";
import { Table } from "./table.js";

const When = ({ time }) => html`<time datetime=${time} title=${iso(secondsOf(time))}>${clock(secondsOf(time), now.value)}</time>`;

const Thing = ({ row }) => html`<span><b>${row.slug}</b>${row.trait && html` <span class="quiet">${row.trait.type}: ${row.trait.value}</span>`}
  ${row.inscriptionId && html` <code class="quiet" title=${row.inscriptionId}>${short(row.inscriptionId, 6, 4)}</code>`}
  ${row.dryRun && html` <span class="tag wait">${t("history.paper")}</span>`}</span>`;

const Task = ({ row }) => {
  const isListing = row.taskKind === "autolist";
  return html`<a class="link" href=${`#/${isListing ? "listings" : "tasks"}/${row.taskId}`}>${(!isListing && taskOf(row.taskId).value?.slug) || `#${row.taskId}`}</a>`;
};

export function Trades({ from, side, slug }) {
  const pages = usePages("/fills", "fills", { from, side, slug }, [from, side, slug]);
  return html`<div class="history-choice panel-body"><${Segments} label=${t("history.side")} value=${side} onChange=${(value) => setQuery({ side: value })}
      options=${["", "buy", "sell"].map((each) => [each, t(`history.side.${each}`)])} />
    <${TextField} label=${t("history.filter")} value=${slug} onChange=${(value) => setQuery({ slug: value.trim() })} /></div>
    <${Pages} from=${pages} none=${t("history.trades.none")}>${(rows) => html`<${Table} label=${t("history.trades")} rows=${rows} keyOf=${(row) => row.id} columns=${[
      { name: t("history.time"), cell: (row) => html`<${When} time=${row.filledAt} />` },
      { name: t("history.side"), cell: (row) => html`<span class=${row.side === "sell" ? "good-text" : ""}>${t(`history.side.${row.side}`)}</span>` },
      { name: t("history.what"), cell: (row) => html`<${Thing} row=${row} />` },
      { name: t("history.quantity"), isNumber: true, cell: (row) => quantity(row.quantity) },
      { name: t("history.price"), isNumber: true, cell: (row) => html`<${Money} value=${row.price} />` },
      { name: t("history.floor"), isNumber: true, cell: (row) => (row.type === "rune" ? perToken(row.floorAtFill) : html`<${Money} value=${row.floorAtFill} />`) },
      { name: t("history.task"), cell: (row) => (row.taskId === null ? NONE : html`<${Task} row=${row} />`) },
    ]} />`}</${Pages}>`;
}

/** What became of a bid, in a word or two. */
export function fateOf(order) {
  if (order.state !== "closed") return t(`history.state.${order.state}`);
  const known = ["filled", "cancelled", "expired", "refused", "lost"];
  return t(`history.closed.${known.includes(order.closeReason) ? order.closeReason : "other"}`);
}

export function Orders({ path = "/orders", hasTask = true }) {
  const pages = usePages(path, "orders", {}, [path]);
  return html`<${Pages} from=${pages} none=${t("history.orders.none")}>${(rows) => html`<${Table} label=${t("history.orders")} rows=${rows} keyOf=${(row) => row.id} columns=${[
    { name: t("history.time"), cell: (row) => html`<${When} time=${row.createdAt} />` },
    ...(hasTask ? [{ name: t("history.what"), cell: (row) => html`<${Thing} row=${row} />` }] : []),
    { name: t("history.quantity"), isNumber: true, cell: (row) => quantity(row.quantity) },
    { name: t("history.price"), isNumber: true, cell: (row) => html`<${Money} value=${row.price} />` },
    { name: t("history.fate"), cell: (row) => html`<span class=${row.closeReason === "filled" ? "good-text" : ""}>${fateOf(row)}</span>` },
    { name: t("history.stood"), isNumber: true, cell: (row) => span((row.closedAt ? secondsOf(row.closedAt) : now.value) - secondsOf(row.createdAt)) },
  ]} />`}</${Pages}>`;
}
