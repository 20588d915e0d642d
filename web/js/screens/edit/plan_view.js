// The plan beside the form: its picture, every rung with its reason, and what it costs and is held back by.
import { html } from "../../html.js";
import { labelOf } from "../../config_shape.js";
import { amount, count, money, percent, span } from "../../format.js";
import { Money } from "../../parts/money.js";
import { PlanPicture } from "../../parts/plan_picture.js";
import { Sized } from "../../parts/sized.js";
import { Refused } from "../../parts/states.js";
import { now } from "../../store.js";
import { t } from "../../texts.js";
import { fundWords, markOf, reasonOf } from "../../texts/reasons.js";
import { callsOf, frameOf, sumOf, warningsOf } from "./plan_frame.js";
import { plainWords } from "./words.js";

/** All of it; `plan` is what usePlan tells, `market` what useMarket does. */
export function PlanView({ plan, market, values, venue, isOld, isFaulty }) {
  if (!plan.plan) return html`<section class="panel plan"><div class="panel-head"><h2>${t("plan.title")}</h2></div><${Nothing} plan=${plan} values=${values} isFaulty=${isFaulty} /></section>`;
  const found = plan.plan;
  const frame = frameOf(found, plan.values, market);
  return html`<section class=${`panel plan ${isOld ? "is-old-plan" : ""}`} aria-label=${t("plan.title")} aria-busy=${plan.isAsking}>
    <div class="panel-head"><h2>${t("plan.title")}</h2><span class="quiet">${isOld ? t("plan.former") : t("plan.nothing")}</span></div>
    ${plan.refusal && html`<div class="panel-body"><${Refused} refusal=${plan.refusal} again=${() => plan.ask().catch(() => {})} /></div>`}
    <${Sized} name="plan-sized">${(width) => html`<${PlanPicture} width=${width} ...${frame} rungs=${frame.rungs.filter((rung) => rung.unit)} words=${inWords(frame)} />`}</${Sized}>
    <p class="plan-age"><span><i class="key ask" aria-hidden="true" />${t("plan.asks")}</span>
      <span><i class="key bid" aria-hidden="true" />${frame.bids ? t("plan.bids") : t("plan.bids.unknown")}</span><span class="grow" />${t("plan.age", { age: span(now.value - plan.at) })}</p>
    <${Sum} plan=${found} frame=${frame} />
    <${Notes} plan=${found} frame=${frame} warnings=${warningsOf(found, frame, plan.values, venue)} />
    <${Rungs} frame=${frame} />
    <${Costs} plan=${found} frame=${frame} venue=${venue} values=${plan.values} /></section>`;
}

const Nothing = ({ plan, values, isFaulty }) => {
  if (plan.refusal) return html`<div class="panel-body"><${Refused} refusal=${plan.refusal} again=${() => plan.ask().catch(() => {})} /></div>`;
  if (!values.slug.trim()) return html`<div class="empty"><b>${t("plan.empty")}</b><p>${t("plan.empty.do")}</p></div>`;
  return html`<div class="empty" aria-busy=${plan.isAsking}><p>${isFaulty ? t("plan.faulty") : t("plan.asking")}</p></div>`;
};

const inWords = (frame) =>
  t("plan.words", { floor: frame.show(frame.floor), rungs: frame.rungs.map((rung) => `${frame.show(rung.unit)} ${rung.title}`).join("; ") });

function Sum({ plan, frame }) {
  const { bids, total, placed } = sumOf(frame);
  return html`<p class="plan-sum"><b><${Money} value=${total} named /></b> <span>${t("plan.sum", { bids, placed, kept: bids - placed, cancels: plan.cancels.length })}</span></p>`;
}

/** What holds for the whole plan, and each reason for no bid once. */
function Notes({ plan, frame, warnings }) {
  const skipped = [...new Set(frame.rungs.filter((rung) => !rung.isBid).map((rung) => rung.reason))];
  const notes = [
    plan.refusal && ["bad", t("plan.refusal"), plainWords(plan.refusal)],
    plan.control.state !== "run" && ["", t(`plan.control.${plan.control.state}`), t(`plan.control.${plan.control.scope}`)],
    ...warnings.map((words) => ["bad", t("plan.warning"), words]),
    ...plan.errors.map((words) => ["bad", t("plan.unread"), plainWords(words)]),
    ...skipped.map((code) => ["", t("plan.no_bid", { count: frame.rungs.filter((rung) => rung.reason === code).length, title: reasonOf(code).title }), whyOf(code, plan)]),
    ...plan.marks.map((code) => ["", markOf(code).title, markOf(code).why]),
    ...plan.cancels.length ? [["", t("plan.cancels", { count: plan.cancels.length }), plan.cancels.map((each) => t("plan.cancel", { price: amount(each.price), why: reasonOf(each.reason).title })).join(" ")]] : [],
  ].filter(Boolean);
  return html`<ul class="plan-notes">${notes.map(([kind, title, why]) => html`<li key=${title + why} class=${`note ${kind}`}><span><b>${title}</b> ${why}</span></li>`)}</ul>`;
}

/** Why there is no bid, with the figure that it is about. */
function whyOf(code, plan) {
  const { limits } = plan;
  const figures = {
    task_total: limits.taskTotal,
    exposure_limit: limits.exposure,
    insufficient_balance: plan.balance,
    budget: limits.budget?.sats,
    spend_cap: limits.spend,
    spend_cap_per_day: limits.spendToday,
  };
  const figure = figures[code];
  if (code === "insufficient_balance" && plan.fundedAt && plan.missing) {
    return `${reasonOf(code).why} ${t("plan.figure.insufficient_balance", { figure: amount(figure) })} ${fundWords(plan.fundedAt, plan.missing)}`;
  }
  return `${reasonOf(code).why}${figure === undefined || figure === null ? "" : ` ${t(`plan.figure.${code}`, { figure: amount(figure) })}`}`;
}

/** Why a price is not what the range alone says. */
const LOWERED = { hardcap: "plan.at.hardcap", ask: "plan.at.ask", high: "plan.at.high", low: "plan.at.low", raise: "plan.at.raise" };

const Rungs = ({ frame }) => html`<ol class="rungs" aria-label=${t("plan.rungs")}>${frame.rungs.map((rung) => html`<li key=${rung.key} class=${rung.isBid ? "own" : "none"}>
  <i aria-hidden="true" /><span class="rung-price"><${Money} value=${rung.price} /></span>
  <span class="quiet num">${rung.share}</span>
  <span class=${`tag ${reasonOf(rung.reason).kind}`}>${rung.title}</span>
  ${rung.detail in LOWERED && html`<small>${t(LOWERED[rung.detail])}</small>`}
  ${rung.rank && html`<span class=${`place ${rung.rank === 1 ? "first" : ""}`} title=${t("plan.rank", { rank: rung.rank })}>#${rung.rank}</span>`}</li>`)}</ol>`;

/** A limit with its use: a bar, and both numbers. */
const Bar = ({ name, used, most }) => html`<div><dt>${name}</dt><dd>${t("plan.of", { used: money(used), most: amount(most) })}
  <span class="bar" aria-hidden="true"><i class=${used > most ? "hot" : ""} style=${{ width: `${Math.min(100, (100 * used) / (most || 1))}%` }} /></span></dd></div>`;

function Costs({ plan, frame, venue, values }) {
  const { total } = sumOf(frame);
  const { limits } = plan;
  const { calls, month, share } = callsOf(plan, venue);
  return html`<dl class="plan-costs">
    ${plan.balance === null
      ? html`<div><dt>${t("plan.balance")}</dt><dd>${t("plan.balance.unknown")}</dd></div>`
      : html`<${Bar} name=${t("plan.balance")} used=${total} most=${plan.balance} />`}
    <${Bar} name=${t("plan.exposure")} used=${total} most=${limits.exposure} />
    ${limits.taskTotal !== null && html`<${Bar} name=${labelOf("maxBidTotal")} used=${total} most=${limits.taskTotal} />`}
    ${limits.budget && limits.budget.sats !== null && html`<${Bar} name=${t("plan.budget", { name: limits.budget.name })} used=${total} most=${limits.budget.sats} />`}
    ${limits.signed.filter((room) => room.signed > 0).map((room) => html`<${Bar} key=${room.whose} name=${t(`plan.signed.${room.whose}`)} used=${room.signed} most=${room.most} />`)}
    <div><dt>${t("plan.calls")}</dt><dd>${t("plan.calls.count", { calls: count(calls) })}
      ${month ? html`<span class="bar" aria-hidden="true"><i class=${share > 0.05 ? "hot" : ""} style=${{ width: `${Math.min(100, 100 * share)}%` }} /></span>${t("plan.calls.share", { share: percent(share), month: count(month) })}` : t("plan.calls.free")}
      ${!plan.monthlyCalls.fits && html`<small class="fault">${t("plan.calls.over", { minutes: plan.monthlyCalls.fitsFromExpiryMinutes })}</small>`}</dd></div></dl>
    ${plan.hints.map((hint) => html`<p class="plan-hint" key=${hint}>${plainWords(hint)}${/[.]$/.test(hint) ? "" : "."}</p>`)}
    ${values.dryRun && html`<p class="plan-hint">${t("plan.dry")}</p>`}`;
}
