// What was bought, sold and gained, and every bid there was. What is chosen stands in the address.
import { useMemo } from "preact/hooks";
import { html, t } from "../page.js";
import { get, withQuery } from "../api.js";
import { Loaded, attempt, useAct, useLoad } from "../parts/states.js";
import { NONE, amount, clock, iso, perToken, percent, quantity, secondsOf, short, span } from "../format.js";
import { setQuery } from "../router.js";
import { listingOf, now, taskOf } from "../store.js";
import { Choice, Segments, TextField } from "../parts/field.js";
import { GainPanel } from "../parts/gain.js";
import { Money, Pages, Table, download, usePages } from "../parts/basics.js";
import "../texts/history.js";

const signed = (sats) => (sats > 0 ? "good-text" : sats < 0 ? "bad-text" : "");

function nameOf(row, by) {
  if (by === "task" && row.key !== null) return taskOf(row.key).value?.slug || listingOf(row.key).value?.collectionId || `#${row.key}`;
  return row.key ?? t("word.all");
}

export function Profit({ all, rows, by }) {
  if (!all) return null;
  return html`<section class="numbers" aria-label=${t("history.profit")}>
      <div class="number"><span class="label">${t("word.gained")}</span><b class=${signed(all.realizedSats)}>${all.realizedSats > 0 ? "+" : ""}<${Money} value=${all.realizedSats} named /></b>
        <small>${t("history.realized.what", { count: all.matched })}${all.realizedPercent === null ? "" : `, ${percent(all.realizedPercent / 100)}`}</small></div>
      <div class="number"><span class="label">${t("history.bought")}</span><b><${Money} value=${all.bought.sats} named /></b><small>${t("history.times", all.bought)}</small></div>
      <div class="number"><span class="label">${t("word.sold")}</span><b><${Money} value=${all.sold.sats} named /></b><small>${t("history.times", all.sold)}</small></div>
      <div class="number"><span class="label">${t("history.held")}</span><b><${Money} value=${all.held.costSats} named /></b>
        <small>${all.held.markSats === null ? t("history.held.unknown") : t("history.held.what", { mark: amount(all.held.markSats) })}</small></div></section>
    ${(all.unmatchedSales > 0 || all.unknownFees > 0) && html`<div class="note">${all.unmatchedSales > 0 && html`<p>${t("history.unmatched", { count: all.unmatchedSales })}</p>`}
      ${all.unknownFees > 0 && html`<p>${t("history.fees", { count: all.unknownFees })}</p>`}</div>`}
    ${rows.length > 0 && html`<div class="panel"><${Table} label=${t("history.profit.rows")} rows=${rows} keyOf=${(row) => String(row.key)} columns=${[
      { name: t(`history.by.${by}`), cell: (row) => html`<b>${nameOf(row, by)}</b>` },
      { name: t("history.bought"), isNumber: true, cell: (row) => html`<${Money} value=${row.bought.sats} />` },
      { name: t("word.sold"), isNumber: true, cell: (row) => html`<${Money} value=${row.sold.sats} />` },
      { name: t("word.gained"), isNumber: true, cell: (row) => html`<span class=${signed(row.realizedSats)}>${row.realizedSats > 0 ? "+" : ""}<${Money} value=${row.realizedSats} /></span>` },
      { name: t("history.share"), isNumber: true, cell: (row) => (row.realizedPercent === null ? NONE : percent(row.realizedPercent / 100)) },
      { name: t("history.held"), isNumber: true, cell: (row) => html`<${Money} value=${row.held.costSats} />` },
      { name: t("history.worth"), isNumber: true, cell: (row) => html`<${Money} value=${row.held.markSats} />` },
    ]} /></div>`}`;
}

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
      { name: t("word.when"), cell: (row) => html`<${When} time=${row.filledAt} />` },
      { name: t("history.side"), cell: (row) => html`<span class=${row.side === "sell" ? "good-text" : ""}>${t(`history.side.${row.side}`)}</span>` },
      { name: t("word.what"), cell: (row) => html`<${Thing} row=${row} />` },
      { name: t("word.quantity"), isNumber: true, cell: (row) => quantity(row.quantity) },
      { name: t("word.price"), isNumber: true, cell: (row) => html`<${Money} value=${row.price} />` },
      { name: t("history.floor"), isNumber: true, cell: (row) => (row.type === "rune" ? perToken(row.floorAtFill) : html`<${Money} value=${row.floorAtFill} />`) },
      { name: t("history.task"), cell: (row) => (row.taskId === null ? NONE : html`<${Task} row=${row} />`) },
    ]} />`}</${Pages}>`;
}

/** What became of a bid, in a word or two. */
function fateOf(order) {
  if (order.state !== "closed") return t(`history.state.${order.state}`);
  const known = ["filled", "cancelled", "expired", "refused", "lost"];
  return t(`history.closed.${known.includes(order.closeReason) ? order.closeReason : "other"}`);
}

export function Orders({ path = "/orders", hasTask = true }) {
  const pages = usePages(path, "orders", {}, [path]);
  return html`<${Pages} from=${pages} none=${t("history.orders.none")}>${(rows) => html`<${Table} label=${t("history.orders")} rows=${rows} keyOf=${(row) => row.id} columns=${[
    { name: t("word.when"), cell: (row) => html`<${When} time=${row.createdAt} />` },
    ...(hasTask ? [{ name: t("word.what"), cell: (row) => html`<${Thing} row=${row} />` }] : []),
    { name: t("word.quantity"), isNumber: true, cell: (row) => quantity(row.quantity) },
    { name: t("word.price"), isNumber: true, cell: (row) => html`<${Money} value=${row.price} />` },
    { name: t("history.fate"), cell: (row) => html`<span class=${row.closeReason === "filled" ? "good-text" : ""}>${fateOf(row)}</span>` },
    { name: t("history.stood"), isNumber: true, cell: (row) => span((row.closedAt ? secondsOf(row.closedAt) : now.value) - secondsOf(row.createdAt)) },
  ]} />`}</${Pages}>`;
}

const DAY_S = 86_400;

const beginOf = (days) => (Number(days) > 0 ? new Date(Math.floor(Date.now() / 1000 - Number(days) * DAY_S) * 1000).toISOString().replace(".000", "") : "");

export default function History({ query }) {
  const { by = "slug", days = "", method = "fifo" } = query;
  const tab = query.tab === "orders" ? "orders" : "trades";
  const from = useMemo(() => beginOf(days), [days]); // of when it was chosen: pages of one list begin at one moment
  return html`<div class="page"><header class="page-head"><h1>${t("history.title")}</h1>
      <div class="acts"><${Files} from=${from} method=${method} /></div></header>
    <${GainPanel} query=${query} />
    <div class="history-choice"><${Segments} label=${t("word.since")} value=${days} onChange=${(value) => setQuery({ days: value })}
        options=${["", "7", "30", "365"].map((each) => [each, t(`history.when.${each}`)])} />
      <${Segments} label=${t("history.by")} value=${by} onChange=${(value) => setQuery({ by: value })}
        options=${["slug", "task", "month", "none"].map((each) => [each, t(`history.by.${each}`)])} />
      <${Choice} label=${t("history.method")} value=${method} onChange=${(value) => setQuery({ method: value })}
        options=${["fifo", "average"].map((each) => [each, t(`history.method.${each}`)])} /></div>
    <${Sums} key=${`${by} ${days} ${method}`} by=${by} method=${method} from=${from} />
    <div class="panel"><header class="panel-head">
      <${Segments} label=${t("history.title")} value=${tab} onChange=${(value) => setQuery({ tab: value })}
        options=${["trades", "orders"].map((each) => [each, t(`history.${each}`)])} /></header>
      ${tab === "orders" ? html`<${Orders} key="orders" />` : html`<${Trades} from=${from} side=${query.side || ""} slug=${query.slug || ""} />`}</div></div>`;
}

/** The profit of one choice; another choice is another one of these, so that no figure stands under what it is not of. */
function Sums({ by, method, from }) {
  const sums = useLoad(async (abort) => {
    const [all, rows] = await Promise.all(["none", by].map((groupBy) => get(withQuery("/pnl", { groupBy, method, from }), { abort })));
    return { all: all.rows[0], rows: by === "none" ? [] : rows.rows };
  });
  return html`<${Loaded} from=${sums} rows=${2} tall=${110}>${(found) => html`<${Profit} all=${found.all} rows=${found.rows} by=${by} />`}</${Loaded}>`;
}

function Files({ from, method }) {
  const { isBusy, run } = useAct();
  const save = (format) => run(() => attempt(async () => {
    const file = await get(withQuery("/trades.csv", { format, from, method }));
    download(file, `bidkeeper-${format}.csv`);
  }, { isRead: true }));
  return ["plain", "koinly", "cointracking"].map((format) => html`<button key=${format} class="button" disabled=${isBusy} onClick=${() => save(format)}>${t(`history.file.${format}`)}</button>`);
}
