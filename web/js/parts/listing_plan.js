// What a config would do now: the price, what you receive of it, on what it rests, and what the signer says to it.
import { html } from "../html.js";
import { amount, count, percent } from "../format.js";
import { payoutOf } from "../listing_state.js";
import { t } from "../texts.js";
import { reasonOf } from "../texts/reasons.js";
import "../texts/listing_plan.js";
import { Money } from "./money.js";
import { Skeleton, wordsOf } from "./states.js";

/** What a server could not do is said as something that was not done. */
const told = (text) => text.replace(/^failed to /, "could not ");

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
    ...plan.errors.map(told),
  ].filter(Boolean);
  return found.map((words) => html`<p key=${words} class="note">${words}</p>`);
}
