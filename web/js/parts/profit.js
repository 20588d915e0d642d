// What was gained, by the server's reckoning: what it does not know is said beside it.
import { html } from "../html.js";
import { NONE, amount, percent } from "../format.js";
import { taskOf, listingOf } from "../store.js";
import { t } from "../texts.js";
import { Money } from "./money.js";
import { Table } from "./table.js";

const signed = (sats) => (sats > 0 ? "good-text" : sats < 0 ? "bad-text" : "");

function nameOf(row, by) {
  if (by === "task" && row.key !== null) return taskOf(row.key).value?.slug || listingOf(row.key).value?.collectionId || `#${row.key}`;
  return row.key ?? t("history.key.none");
}

export function Profit({ all, rows, by }) {
  if (!all) return null;
  return html`<section class="numbers" aria-label=${t("history.profit")}>
      <div class="number"><span class="label">${t("history.realized")}</span><b class=${signed(all.realizedSats)}>${all.realizedSats > 0 ? "+" : ""}<${Money} value=${all.realizedSats} named /></b>
        <small>${t("history.realized.what", { count: all.matched })}${all.realizedPercent === null ? "" : `, ${percent(all.realizedPercent / 100)}`}</small></div>
      <div class="number"><span class="label">${t("history.bought")}</span><b><${Money} value=${all.bought.sats} named /></b><small>${t("history.times", all.bought)}</small></div>
      <div class="number"><span class="label">${t("history.sold")}</span><b><${Money} value=${all.sold.sats} named /></b><small>${t("history.times", all.sold)}</small></div>
      <div class="number"><span class="label">${t("history.held")}</span><b><${Money} value=${all.held.costSats} named /></b>
        <small>${all.held.markSats === null ? t("history.held.unknown") : t("history.held.what", { mark: amount(all.held.markSats) })}</small></div></section>
    ${(all.unmatchedSales > 0 || all.unknownFees > 0) && html`<div class="note">${all.unmatchedSales > 0 && html`<p>${t("history.unmatched", { count: all.unmatchedSales })}</p>`}
      ${all.unknownFees > 0 && html`<p>${t("history.fees", { count: all.unknownFees })}</p>`}</div>`}
    ${rows.length > 0 && html`<div class="panel"><${Table} label=${t("history.profit.rows")} rows=${rows} keyOf=${(row) => String(row.key)} columns=${[
      { name: t(`history.by.${by}`), cell: (row) => html`<b>${nameOf(row, by)}</b>` },
      { name: t("history.bought"), isNumber: true, cell: (row) => html`<${Money} value=${row.bought.sats} />` },
      { name: t("history.sold"), isNumber: true, cell: (row) => html`<${Money} value=${row.sold.sats} />` },
      { name: t("history.gain"), isNumber: true, cell: (row) => html`<span class=${signed(row.realizedSats)}>${row.realizedSats > 0 ? "+" : ""}<${Money} value=${row.realizedSats} /></span>` },
      { name: t("history.share"), isNumber: true, cell: (row) => (row.realizedPercent === null ? NONE : percent(row.realizedPercent / 100)) },
      { name: t("history.held"), isNumber: true, cell: (row) => html`<${Money} value=${row.held.costSats} />` },
      { name: t("history.worth"), isNumber: true, cell: (row) => html`<${Money} value=${row.held.markSats} />` },
    ]} /></div>`}`;
}
