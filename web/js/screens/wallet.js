// Where money and inscriptions lie, which address is for what, and the one way out: home.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call } from "../api.js";
import { Empty, Refused, Skeleton, toast, useAct, useLoad, wordsOf } from "../parts/states.js";
import { NONE, amount, clock, iso, secondsOf, short } from "../format.js";
import { me, quietly, readVenues, readWallet, venues, wallet } from "../store.js";
import { Copyable, Money, Table, isFaulty } from "../parts/basics.js";
import { Term } from "../parts/term.js";
import { Check, Choice, SatsField, TextField } from "../parts/field.js";
import "../texts/wallet.js";

function QrCode({ text }) {
  const [rows, setRows] = useState(null);
  useEffect(() => {
    let isGone = false;
    import("/web/vendor/qr.mjs").then((module) => isGone || setRows(module.encodeQR(text, "raw", { ecc: "medium", border: 3 })), () => {});
    return () => (isGone = true);
  }, [text]);
  if (!rows) return html`<div class="qr" aria-busy="true" />`;
  const path = rows.map((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")).join("")).join("");
  return html`<svg class="qr" viewBox=${`0 0 ${rows.length} ${rows.length}`} role="img" aria-label=${t("qr.of", { text })} shape-rendering="crispEdges">
    <rect width=${rows.length} height=${rows.length} /><path d=${path} /></svg>`;
}

const HOLD_MS = 1200;
const FEES = ["fastestFee", "halfHourFee", "hourFee", "economyFee"];

function bodyOf({ from, sats, item, fee, force }) {
  const isItem = from === "item";
  return {
    from: isItem ? "vault" : from,
    ...(isItem ? { inscriptionId: item.trim() } : sats === null ? {} : { amountSats: sats }),
    ...(from === "bidding" ? {} : { feeRate: fee }),
    ...(force ? { force: true } : {}),
  };
}

function Withdraw({ home, onSent }) {
  const [form, setForm] = useState({ from: "payment", sats: null, item: "", fee: "halfHourFee", force: false });
  const [quote, setQuote] = useState(null);
  const [words, setWords] = useState(null);
  const { isBusy, run } = useAct();
  const newest = useRef(form);
  newest.current = form;
  const set = (name) => (value) => {
    setForm({ ...form, [name]: value });
    setQuote(null);
    setWords(null);
  };
  const ask = (body) => call("POST", "/wallet/withdraw", body);
  const show = (event) => {
    event.preventDefault();
    if (isFaulty(event.target)) return undefined;
    if (form.from === "item" && !form.item.trim()) return setWords(t("wallet.out.item.none"));
    return run(async () => {
      try {
        setWords(null);
        const body = bodyOf(form);
        const found = await ask({ ...body, dryRun: true });
        if (newest.current === form) setQuote({ ...found, body }); // what is sent is what was shown
      } catch (refusal) {
        setQuote(null);
        setWords(wordsOf(refusal, { isRead: true }));
      }
    });
  };
  const send = () => run(async () => {
    try {
      const sent = await ask(quote.body);
      toast(t(["submitted", "confirmed"].includes(sent.state) ? "wallet.out.sent" : "wallet.out.unknown"));
      setForm({ ...form, sats: null, item: "" });
    } catch (refusal) {
      setWords(wordsOf(refusal));
    }
    setQuote(null);
    onSent();
  });
  return html`<section class="panel" aria-labelledby="out-title"><header class="panel-head"><h2 id="out-title">${t("wallet.out")}</h2></header>
    <form class="form panel-body" onSubmit=${show}><p class="quiet">${t("wallet.out.only", { address: home || NONE })}</p>
      <${Choice} label=${t("word.from")} value=${form.from} onChange=${set("from")} options=${["payment", "bidding", "vault", "item"].map((each) => [each, t(`wallet.out.from.${each}`)])} />
      ${form.from === "item"
        ? html`<${TextField} label=${t("wallet.out.item")} value=${form.item} onChange=${set("item")} />`
        : html`<${SatsField} key=${form.from} label=${t("wallet.out.amount")} hint=${t("wallet.out.amount.hint")} value=${form.sats} onChange=${set("sats")} />`}
      ${form.from !== "bidding" && html`<${Choice} label=${t("wallet.out.fee")} value=${form.fee} onChange=${set("fee")} options=${FEES.map((each) => [each, t(`wallet.fee.${each}`)])} />`}
      <${Check} label=${t("wallet.out.force")} value=${form.force} onChange=${set("force")} />
      ${words && html`<div class="note bad" role="alert"><p>${words}</p></div>`}
      ${quote ? html`<${Quote} quote=${quote} /><${Hold} isBusy=${isBusy} onHeld=${send} />`
        : html`<button class="button primary" disabled=${isBusy}>${t("wallet.out.try")}</button>`}</form></section>`;
}

const Quote = ({ quote }) => html`<div class="quote" role="status"><h3>${t("wallet.out.plan")}</h3><dl class="facts">
  <dt>${t("word.to")}</dt><dd><${Copyable} text=${quote.destination} name=${t("word.to")} /></dd>
  <dt>${t("wallet.out.arrives")}</dt><dd><${Money} value=${quote.sentSats} named /></dd>
  <dt>${t("word.fee")}</dt><dd><${Money} value=${quote.feeSats} named /></dd>
  ${quote.leftOut.map((each) => html`<dt>${t("wallet.out.left")}</dt><dd><${Money} value=${each.valueSats} named /> <span class="quiet">${each.reason}</span></dd>`)}</dl></div>`;

/** A button that acts once it has been held for a moment, by pointer or by key. */
function Hold({ isBusy, onHeld }) {
  const [isHeld, setHeld] = useState(false);
  const timer = useRef(0);
  const begin = () => {
    if (isBusy || timer.current) return;
    setHeld(true);
    timer.current = setTimeout(() => (end(), onHeld()), HOLD_MS);
  };
  const end = () => {
    clearTimeout(timer.current);
    timer.current = 0;
    setHeld(false);
  };
  useEffect(() => end, []);
  const isKey = (event) => event.key === " " || event.key === "Enter";
  return html`<button type="button" class=${`button primary hold ${isHeld ? "held" : ""}`} disabled=${isBusy} onPointerDown=${begin} onPointerUp=${end} onPointerLeave=${end}
    onKeyDown=${(event) => isKey(event) && (event.preventDefault(), begin())} onKeyUp=${(event) => isKey(event) && end()} onBlur=${end}>
    <span>${t(isHeld ? "wallet.out.holding" : "wallet.out.hold")}</span></button>`;
}

export default function Wallet() {
  const look = useLoad(() => readWallet());
  useEffect(() => quietly(readVenues()), []);
  const purse = wallet.value;
  return html`<div class="page"><header class="page-head"><h1>${t("wallet.title")}</h1><div class="acts">
      <button class="button" disabled=${look.isLoading} onClick=${look.again}>${t("word.look_again")}</button></div></header>
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
  <div class="number"><span class="label">${t("wallet.balance")}<${Term} of="bidding_wallet" /></span><b><${Money} value=${purse.biddingWallet?.balanceSats} named /></b><small>${t("wallet.balance.what")}</small></div>
  <div class="number"><span class="label">${t("word.if_all_fill_now")}<${Term} of="if_all_fill" /></span><b><${Money} value=${purse.ifAllFillNow} named /></b><small>${t("wallet.exposure.what", { worst: amount(purse.worstLoss) })}</small></div>
  <div class="number"><span class="label">${t("wallet.payment")}<${Term} of="payment_address" /></span><b><${Money} value=${purse.paymentSats} named /></b><small>${t("wallet.payment.what")}</small></div>
  <div class="number"><span class="label">${t("wallet.signed")}<${Term} of="signing_limit" /></span><b><${Money} value=${purse.signedSats} named /></b>
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
  { name: t("word.when"), cell: (row) => html`<time datetime=${row.createdAt} title=${iso(secondsOf(row.createdAt))}>${clock(secondsOf(row.createdAt))}</time>` },
  { name: t("word.from"), cell: (row) => t(`wallet.from.${row.from}`) },
  { name: t("word.what"), isNumber: true, cell: (row) => (row.inscriptionId ? html`<code title=${row.inscriptionId}>${short(row.inscriptionId, 6, 4)}</code>` : html`<${Money} value=${row.sentSats} named />`) },
  { name: t("word.fee"), isNumber: true, cell: (row) => html`<${Money} value=${row.feeSats} />` },
  { name: t("word.state"), cell: (row) => html`<span>${t(`wallet.state.${row.state}`)}${row.reason && html`<br /><small class="quiet">${row.reason}</small>`}</span>` },
  { name: t("wallet.latest.txid"), cell: (row) => (row.txid ? html`<${Copyable} text=${row.txid} head=${6} tail=${4} name=${t("wallet.latest.txid")} />` : NONE) },
]} />`;
