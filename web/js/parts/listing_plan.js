// What a listing config would do now: its price, what you receive, what the signer says; and the question before it is signed.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { hasUnread } from "../amounts.js";
import { call } from "../api.js";
import { amount, count, percent } from "../format.js";
import { hasNoLeast, payoutOf } from "../listing_state.js";
import { Skeleton, confirmed, wordsOf } from "./states.js";
import { Money } from "./basics.js";
import { plainWords, reasonOf } from "../texts/reasons.js";
import "../texts/listing_form.js";

const SETTLES_MS = 500; // each other price is a draft at the marketplace, of which a user may have few a minute

export const askPlan = (body, abort) => call("POST", "/autolist/preview", body, { abort });

/** `body` is that of POST /api/autolist/preview, or null; a number that cannot be read is not asked about. Returns {plan, refusal, isOld}: of the body before while that of now is asked. */
export function usePlan(body) {
  const wanted = body && !hasUnread(body) ? JSON.stringify(body) : null;
  const [state, setState] = useState({ of: null, plan: null, refusal: null });
  const isFirst = useRef(true);
  useEffect(() => {
    if (!wanted) return undefined;
    const abort = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const plan = await askPlan(JSON.parse(wanted), abort.signal);
        if (!abort.signal.aborted) setState({ of: wanted, plan, refusal: null });
      } catch (refusal) {
        if (abort.signal.aborted) return;
        setState((old) => ({ of: wanted, plan: refusal.status === 429 ? old.plan : null, refusal }));
        if (refusal.status === 429) timer = setTimeout(ask, 1000 * (refusal.retryAfterS || 5));
      }
    };
    timer = setTimeout(ask, isFirst.current ? 0 : SETTLES_MS);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [wanted]);
  return { plan: state.plan, refusal: state.of === wanted ? state.refusal : null, isOld: state.of !== wanted || (state.refusal !== null && state.plan !== null) };
}

export function ListingPlan({ plan, refusal, isOld }) {
  const isMeant = refusal && !(refusal.status === 400 && refusal.details.length);
  return html`<section class="panel sell-plan" aria-labelledby="plan-title" aria-busy=${isOld}><header class="panel-head"><h2 id="plan-title">${t("outcome.title")}</h2></header>
    <div class=${`panel-body ${isOld && plan ? "sell-old" : ""}`}>
      ${isMeant && html`<div class="note bad" role="alert"><p>${wordsOf(refusal, { isRead: true })}</p></div>`}
      ${plan ? html`<${Plan} plan=${plan} />` : refusal ? !isMeant && html`<p class="quiet">${t("outcome.faulty")}</p>` : html`<${Skeleton} rows=${1} tall=${180} />`}</div></section>`;
}

function Plan({ plan }) {
  const { title, why, kind } = reasonOf(plan.reason);
  const floor = plan.market.lowestAsk;
  const payout = payoutOf(plan);
  return html`<div class="sell-price" role="status"><span class="label">${t(`outcome.${plan.price === null ? "none" : plan.action}`)}</span>
      ${plan.price !== null && html`<b><${Money} value=${plan.price} named /></b>`}
      ${plan.price !== null && floor > 0 && html`<small>${t("outcome.of_floor", { share: percent(plan.price / floor) })}</small>`}</div>
    ${payout !== null && html`<div class="sell-receive"><span class="label">${t("outcome.receive")}</span><b><${Money} value=${payout} named /></b><small>${differenceOf(payout - plan.price)}</small></div>`}
    <p class="sell-why"><b class=${kind}>${title}</b> ${why}</p>
    <${Objections} plan=${plan} />
    <dl class="facts"><dt>${t("outcome.floor")}</dt><dd><${Money} value=${floor} /></dd>
      ${plan.market.median !== null && html`<dt>${t("outcome.median")}</dt><dd><${Money} value=${plan.market.median} /></dd>`}
      ${plan.market.asks !== null && html`<dt>${t("outcome.asks")}</dt><dd>${count(plan.market.asks)}</dd>`}
      ${plan.market.lastSales?.length > 0 && html`<dt>${t("outcome.sales")}</dt><dd>${plan.market.lastSales.map((each) => amount(each)).join(", ")}</dd>`}
      <dt>${t("outcome.least")}</dt><dd>${plan.leastPrice === null ? t("outcome.least.none") : html`<${Money} value=${plan.leastPrice} />`}</dd></dl>
    ${plan.draft && html`<details class="sell-draft"><summary>${t(plan.draft.isSigned ? "outcome.signed" : "outcome.not_signed")}</summary>
      ${plan.draft.forms.map((form) => html`<pre key=${form.form} tabindex="0">${form.words.join("\n")}</pre>`)}</details>`}`;
}

const differenceOf = (sats) => (sats > 0 ? t("outcome.more", { sats: amount(sats) }) : sats < 0 ? t("outcome.less", { sats: amount(-sats) }) : t("outcome.same"));

/** What would keep a task from it. */
function Objections({ plan }) {
  const { state } = plan.control;
  const found = [
    plan.refusal,
    state !== "run" && t("outcome.control", { state: t(`state.${state}`) }),
    plan.draft && !plan.draft.isSigned && t("outcome.signer", { why: plan.draft.verdict }),
    ...plan.errors.map(plainWords),
  ].filter(Boolean);
  return found.map((words) => html`<p key=${words} class="note">${words}</p>`);
}

/** Resolves to whether it shall be done; on paper nothing is signed, so nothing is asked. `config` as the form or the server has it. */
export async function confirmListing({ name, config, plan }) {
  if (config.dryRun) return true;
  if (plan.price === null) {
    const lines = [t("confirm_listing.none.what"), hasNoLeast(config) && t("sell.least.none")];
    return confirmed({ title: t("confirm_listing.none", { name }), lines, act: t("word.start"), isDanger: false });
  }
  const floor = plan.market.lowestAsk;
  const payout = payoutOf(plan);
  return confirmed({
    title: t("confirm_listing", { name, price: amount(plan.price) }),
    lines: [
      payout !== null && t("confirm_listing.receive", { payout: amount(payout) }),
      floor > 0 && plan.price < floor && t("confirm_listing.below", { floor: amount(floor) }),
      config.priceMode !== "fixed" && t("confirm_listing.moves", { least: plan.leastPrice === null ? null : amount(plan.leastPrice) }),
      t("confirm_listing.signature"),
    ],
    act: t("confirm_listing.do"),
    isDanger: false,
  });
}
