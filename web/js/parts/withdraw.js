// The way out: what would be sent is shown first; to send it the button is held, so that no slip of a finger does.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { NONE } from "../format.js";
import { call } from "../api.js";
import { useAct } from "../load.js";
import { t } from "../texts.js";
import { Check, Choice, SatsField, TextField } from "./field.js";
import { Copyable } from "./copy.js";
import { Money } from "./money.js";
import { isFaulty } from "./form.js";
import { wordsOf } from "./states.js";
import { toast } from "./toast.js";

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

export function Withdraw({ home, onSent }) {
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
      <${Choice} label=${t("wallet.out.from")} value=${form.from} onChange=${set("from")} options=${["payment", "bidding", "vault", "item"].map((each) => [each, t(`wallet.out.from.${each}`)])} />
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
  <dt>${t("wallet.out.to")}</dt><dd><${Copyable} text=${quote.destination} name=${t("wallet.out.to")} /></dd>
  <dt>${t("wallet.out.arrives")}</dt><dd><${Money} value=${quote.sentSats} named /></dd>
  <dt>${t("wallet.out.costs")}</dt><dd><${Money} value=${quote.feeSats} named /></dd>
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
