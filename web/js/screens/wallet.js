// Where money and inscriptions lie, which address is for what, and the one way out: home.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { NONE, amount, clock, iso, secondsOf, short } from "../format.js";
import { useLoad } from "../load.js";
import { me, readWallet, venues, readVenues, wallet, quietly } from "../store.js";
import { t } from "../texts.js";
import "../texts/wallet.js";
import { Copyable } from "../parts/copy.js";
import { Money } from "../parts/money.js";
import { QrCode } from "../parts/qr.js";
import { Empty, Refused, Skeleton } from "../parts/states.js";
import { Table } from "../parts/table.js";
import { Withdraw } from "../parts/withdraw.js";

export default function Wallet() {
  const look = useLoad(() => readWallet());
  useEffect(() => quietly(readVenues()), []);
  const purse = wallet.value;
  return html`<div class="page"><header class="page-head"><h1>${t("wallet.title")}</h1><div class="acts">
      <button class="button" disabled=${look.isLoading} onClick=${look.again}>${t("wallet.refresh")}</button></div></header>
    ${look.refusal && html`<${Refused} refusal=${look.refusal} again=${look.again} />`}
    ${purse ? html`<${Purse} purse=${purse} again=${look.again} />` : !look.refusal && html`<${Skeleton} rows=${3} tall=${130} />`}</div>`;
}

function Purse({ purse, again }) {
  return html`<${Numbers} purse=${purse} />
    ${purse.balanceError && html`<div class="note"><p>${t("wallet.unknown", { why: purse.balanceError })}</p></div>`}
    <div class="two wallet-two"><section class="panel" aria-labelledby="where-title"><header class="panel-head"><h2 id="where-title">${t("wallet.where")}</h2></header>
      <ul class="addresses">${addressesOf(purse).map((each) => html`<${Address} key=${each.name} ...${each} />`)}</ul></section>
    <${Withdraw} home=${me.value?.address} onSent=${again} /></div>
    <section class="panel" aria-labelledby="latest-title"><header class="panel-head"><h2 id="latest-title">${t("wallet.latest")}</h2></header>
      ${purse.withdrawals.length ? html`<${Latest} rows=${purse.withdrawals} />` : html`<${Empty}>${t("wallet.latest.none")}</${Empty}>`}</section>`;
}

const Numbers = ({ purse }) => html`<section class="numbers" aria-label=${t("wallet.title")}>
  <div class="number"><span class="label">${t("wallet.balance")}</span><b><${Money} value=${purse.biddingWallet?.balanceSats} named /></b><small>${t("wallet.balance.what")}</small></div>
  <div class="number"><span class="label">${t("wallet.exposure")}</span><b><${Money} value=${purse.ifAllFillNow} named /></b><small>${t("wallet.exposure.what", { worst: amount(purse.worstLoss) })}</small></div>
  <div class="number"><span class="label">${t("wallet.payment")}</span><b><${Money} value=${purse.paymentSats} named /></b><small>${t("wallet.payment.what")}</small></div>
  <div class="number"><span class="label">${t("wallet.signed")}</span><b><${Money} value=${purse.signedSats} named /></b>
    <small>${t("wallet.signed.what", { limit: amount(purse.signedLimitSats) })}${purse.signedFreeAt ? `; ${t("wallet.signed.until", { time: clock(secondsOf(purse.signedFreeAt)) })}` : ""}</small></div></section>`;

/** Every address once, with what it is for. */
function addressesOf(purse) {
  const titleOf = (name) => venues.value?.find((venue) => venue.name === name)?.title || name;
  const delivered = (to) => purse.receives.find((each) => each.deliverTo === to)?.tasks.length || 0;
  const funded = purse.funding.filter((each) => each.from === "bidding").map((each) => ({
    name: t("wallet.bidding.name", { venue: titleOf(each.venue) }), what: t("wallet.bidding.what"), address: each.address, sats: each.balanceSats }));
  const coins = purse.funding.some((each) => each.from === "payment") ? ` ${t("wallet.coins.what")}` : "";
  const buys = (to) => (delivered(to) ? ` ${t("wallet.buys", { count: delivered(to) })}.` : "");
  return [
    ...funded,
    { name: t("wallet.payment.name"), what: t("wallet.payment.long") + coins, address: purse.payment, sats: purse.paymentSats },
    { name: t("wallet.vault.name"), what: t("wallet.vault.long") + buys("vault"), address: purse.vault },
    { name: t("wallet.ordinals.name"), what: t("wallet.ordinals.long") + buys("ordinalsAddress"), address: purse.ordinalsAddress },
  ];
}

function Address({ name, what, address, sats }) {
  const [isOpen, setOpen] = useState(false);
  return html`<li class="address"><div><b>${name}</b><p class="quiet">${what}</p>
      ${address ? html`<${Copyable} text=${address} head=${10} tail=${8} name=${name} />` : NONE}</div>
    <div class="address-side">${sats !== undefined && html`<${Money} value=${sats} named />`}
      ${address && html`<button class="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${t(isOpen ? "wallet.hide.qr" : "wallet.show.qr")}</button>`}</div>
    ${isOpen && html`<${QrCode} text=${address} />`}</li>`;
}

const Latest = ({ rows }) => html`<${Table} label=${t("wallet.latest")} rows=${rows} keyOf=${(row) => row.id} columns=${[
  { name: t("wallet.latest.when"), cell: (row) => html`<time datetime=${row.createdAt} title=${iso(secondsOf(row.createdAt))}>${clock(secondsOf(row.createdAt))}</time>` },
  { name: t("wallet.latest.from"), cell: (row) => t(`wallet.from.${row.from}`) },
  { name: t("wallet.latest.what"), isNumber: true, cell: (row) => (row.inscriptionId ? html`<code title=${row.inscriptionId}>${short(row.inscriptionId, 6, 4)}</code>` : html`<${Money} value=${row.sentSats} named />`) },
  { name: t("wallet.latest.fee"), isNumber: true, cell: (row) => html`<${Money} value=${row.feeSats} />` },
  { name: t("wallet.latest.state"), cell: (row) => html`<span>${t(`wallet.state.${row.state}`)}${row.reason && html`<br /><small class="quiet">${row.reason}</small>`}</span>` },
  { name: t("wallet.latest.txid"), cell: (row) => (row.txid ? html`<${Copyable} text=${row.txid} head=${6} tail=${4} name=${t("wallet.latest.txid")} />` : NONE) },
]} />`;
