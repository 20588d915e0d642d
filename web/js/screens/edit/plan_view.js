// The plan beside the form: its picture, every rung with its reason, and what it costs and is held back by.
import { html, t } from "../../page.js";
import { othersOf } from "../../decision.js";
import { labelOf } from "../../config_shape.js";
import { amount, count, money, monthOf, perToken, percent, span } from "../../format.js";
import { now } from "../../store.js";
import { Money, Sized } from "../../parts/basics.js";
import { PlanPicture } from "../../parts/plan_picture.js";
import { Refused } from "../../parts/states.js";
import { plainWords } from "./words.js";
import { fundWords, markOf, reasonOf } from "../../texts/reasons.js";

/** Reasons of rungs that have or get a bid. */
const BIDS = new Set(["place", "kept", "renew", "renew_waits", "in_flight"]);
const NEW = new Set(["place", "renew"]);
const SPECIAL_SHARE = 0.05;

/** Items or tokens of a bid at this rung; null where that is not known. */
function quantityOf(rung, values) {
  if (values.type !== "rune") return 1;
  if (values.quantityMode === "quantity") return values.quantity || null;
  return rung.quantity;
}

/** The plan's rungs and its market in prices of one item or token. */
export function frameOf(plan, values, market) {
  const isRune = values.type === "rune";
  const asks = othersOf(plan.book.asks) || [];
  const bids = othersOf(plan.book.bids || market.book?.bids || null);
  const reference = plan.reference === null ? null : Number(plan.reference);
  const raw = plan.rawReference === null ? null : Number(plan.rawReference);
  const per = isRune && values.quantityMode === "quantity" ? values.quantity || 1 : 1;
  const isFixed = values.bidMode === "fixed";
  const low = isFixed ? values.bidFixedLow / per : reference && reference * values.bidPercentLow;
  const high = isFixed ? values.bidFixedHigh / per : reference && reference * values.bidPercentHigh;
  const isInSats = isRune && values.quantityMode === "sats";
  const rungs = plan.rungs.map((rung) => {
    const quantity = quantityOf(rung, values);
    const unit = rung.price === null || !quantity ? null : rung.price / quantity;
    const isBid = BIDS.has(rung.reason);
    return { ...rung, key: rung.rung, unit, isBid, isNew: NEW.has(rung.reason), title: reasonOf(rung.reason).title, share: unit && reference ? percent(unit / reference) : "" };
  });
  return { asks, bids, reference, floor: asks[0]?.price ?? raw, low, high, cap: isInSats ? null : values.hardcapSats / per, rungs, per, show: isRune ? perToken : money };
}

/** Sats of all bids that would stand, and how many they are: new ones, and those that stay. */
export function sumOf(frame) {
  const bids = frame.rungs.filter((rung) => rung.isBid);
  return { bids: bids.length, total: bids.reduce((sum, rung) => sum + (rung.price || 0), 0), placed: bids.filter((rung) => rung.isNew).length };
}

/** Calls a month, and their share of the tightest quota at the marketplace; null where it has none. */
function callsOf(plan, venue) {
  const { reads, writes } = plan.monthlyCalls;
  const month = venue ? monthOf(venue.limits) : null;
  return { calls: reads + writes, month, share: month && (reads + writes) / month };
}

/** Sentences that name a figure that somebody may not have meant. */
export function warningsOf(plan, frame, values, venue) {
  const found = [];
  const perBid = frame.floor && frame.cap ? frame.cap / frame.floor : 0;
  if (perBid > 1) found.push(t("edit.warn.cap", { times: percent(perBid), cap: amount(values.hardcapSats), floor: amount(frame.floor * frame.per) }));
  const { total, bids } = sumOf(frame);
  if (plan.balance !== null && total > plan.balance && !values.dryRun) found.push(t("edit.warn.balance", { total: amount(total), bids, balance: amount(plan.balance) }));
  const { share, calls } = callsOf(plan, venue);
  if (share > SPECIAL_SHARE) found.push(t("edit.warn.calls", { calls, share: percent(share) }));
  return found;
}

/** All of it; `plan` is what usePlan tells, `market` what useMarket does. */
export function PlanView({ plan, market, values, venue, isOld, isFaulty, isNamed }) {
  // The plan of another collection or kind says nothing about what is named now.
  if (!plan.plan || ["type", "slug"].some((name) => plan.values[name] !== values[name])) return html`<section class="panel plan"><div class="panel-head"><h2>${t("plan.title")}</h2></div><${Nothing} plan=${plan} isNamed=${isNamed && values.slug.trim() !== ""} isFaulty=${isFaulty} /></section>`;
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

const Nothing = ({ plan, isNamed, isFaulty }) => {
  if (plan.refusal) return html`<div class="panel-body"><${Refused} refusal=${plan.refusal} again=${() => plan.ask().catch(() => {})} /></div>`;
  if (!isNamed) return html`<div class="empty"><b>${t("plan.empty")}</b><p>${t("plan.empty.do")}</p></div>`;
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
const Bar = ({ name, used, most }) => html`<div><dt>${name}</dt><dd>${t("word.used_of", { used: money(used), most: amount(most) })}
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
