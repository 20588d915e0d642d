// What a config would do now: the price, what you receive of it, on what it rests, and what the signer says to it.
import { html } from "../html.js";
import { amount, count, percent } from "../format.js";
import { payoutOf } from "../plan_listing.js";
import { t } from "../texts.js";
import { reasonOf } from "../texts/reasons.js";
import "../texts/listing_plan.js";
import { Money } from "./money.js";
import { Skeleton, wordsOf } from "./states.js";

/** What a server could not do is said as something that was not done. */
const told = (text) => text.replace(/^failed to /, "could not ");

export function ListingPlan({ plan, refusal, isOld }) {
  const isMeant = refusal && !(refusal.status === 400 && refusal.details.length);
  return html`<section class="panel sell-plan" aria-labelledby="plan-title" aria-busy=${isOld}><header class="panel-head"><h2 id="plan-title">${t("plan.title")}</h2></header>
    <div class=${`panel-body ${isOld && plan ? "sell-old" : ""}`}>
      ${isMeant && html`<div class="note bad" role="alert"><p>${wordsOf(refusal, { isRead: true })}</p></div>`}
      ${plan ? html`<${Plan} plan=${plan} />` : refusal ? !isMeant && html`<p class="quiet">${t("plan.faulty")}</p>` : html`<${Skeleton} rows=${1} tall=${180} />`}</div></section>`;
}

function Plan({ plan }) {
  const { title, why, kind } = reasonOf(plan.reason);
  const floor = plan.market.lowestAsk;
  const payout = payoutOf(plan);
  return html`<div class="sell-price" role="status"><span class="label">${t(`plan.${plan.price === null ? "none" : plan.action}`)}</span>
      ${plan.price !== null && html`<b><${Money} value=${plan.price} named /></b>`}
      ${plan.price !== null && floor > 0 && html`<small>${t("plan.of_floor", { share: percent(plan.price / floor) })}</small>`}</div>
    ${payout !== null && html`<div class="sell-receive"><span class="label">${t("plan.receive")}</span><b><${Money} value=${payout} named /></b><small>${differenceOf(payout - plan.price)}</small></div>`}
    <p class="sell-why"><b class=${kind}>${title}</b> ${why}</p>
    <${Objections} plan=${plan} />
    <dl class="facts"><dt>${t("plan.floor")}</dt><dd><${Money} value=${floor} /></dd>
      ${plan.market.median !== null && html`<dt>${t("plan.median")}</dt><dd><${Money} value=${plan.market.median} /></dd>`}
      ${plan.market.asks !== null && html`<dt>${t("plan.asks")}</dt><dd>${count(plan.market.asks)}</dd>`}
      ${plan.market.lastSales?.length > 0 && html`<dt>${t("plan.sales")}</dt><dd>${plan.market.lastSales.map((each) => amount(each)).join(", ")}</dd>`}
      <dt>${t("plan.least")}</dt><dd>${plan.leastPrice === null ? t("plan.least.none") : html`<${Money} value=${plan.leastPrice} />`}</dd></dl>
    ${plan.draft && html`<details class="sell-draft"><summary>${t(plan.draft.isSigned ? "plan.signed" : "plan.not_signed")}</summary>
      ${plan.draft.forms.map((form) => html`<pre key=${form.form} tabindex="0">${form.words.join("\n")}</pre>`)}</details>`}`;
}

const differenceOf = (sats) => (sats > 0 ? t("plan.more", { sats: amount(sats) }) : sats < 0 ? t("plan.less", { sats: amount(-sats) }) : t("plan.same"));

/** What would keep a task from it. */
function Objections({ plan }) {
  const { state } = plan.control;
  const found = [
    plan.refusal,
    state !== "run" && t("plan.control", { state: t(`state.${state}`) }),
    plan.draft && !plan.draft.isSigned && t("plan.signer", { why: plan.draft.verdict }),
    ...plan.errors.map(told),
  ].filter(Boolean);
  return found.map((words) => html`<p key=${words} class="note">${words}</p>`);
}
