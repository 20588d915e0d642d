// One bidding task: its ladder on the order book, why each rung is as it is, its past, and what can be done with it.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { get, withQuery } from "../api.js";
import { Empty, Loaded, Refused, Skeleton, showRefusal, useLoad } from "../parts/states.js";
import { bookOf, decisionOf } from "../decision.js";
import { watch } from "../events.js";
import { amount, clock, monthOf, span } from "../format.js";
import { setQuery } from "../router.js";
import { cyclesOf, link, listingIds, me, momentOf, now, readMoment, readVenues, taskIds, taskOf, venues } from "../store.js";
import { Ladder, LadderLegend } from "../parts/ladder.js";
import { Term } from "../parts/term.js";
import { Why } from "../parts/why.js";
import { Head } from "./task/head.js";
import { LadderNumbers, NumbersSwitch, Past, useMoment } from "./task/time.js";
import { Tabs } from "./task/tabs.js";
import { signingRoom } from "../texts/reasons.js";
import "../texts/task.js";

const fullest = (rooms) => rooms.reduce((a, b) => (b.signedSats / b.mostSats > a.signedSats / a.mostSats ? b : a));

const WANTS = {
  insufficient_balance: ({ decision, lowest }) => {
    if (decision.balance === null) return null;
    const more = decision.fund?.missing || Math.max(0, lowest + (decision.feeReserve || 0) - decision.balance);
    return t("why.balance", { more: amount(more), balance: amount(decision.balance), address: decision.fund?.address });
  },
  exposure_limit: ({ me }) => me && t("why.exposure", { exposure: amount(me.stats.exposure), most: amount(me.stats.maxExposure) }),
  task_total: ({ decision }) => t("why.task_total", { most: amount(decision.config.maxBidTotal) }),
  signed_limit: ({ decision, details }) => {
    const [first] = details.map(signingRoom).filter(Boolean);
    const room = decision.signed.find((each) => each.whose === first?.whose) || (decision.signed.length ? fullest(decision.signed) : null);
    return room && t("why.signed", { signed: amount(room.signedSats), most: amount(room.mostSats), isKept: Boolean(first?.kept) });
  },
  plan_bids: ({ me }) => me && t("why.plan", { most: me.planDetails.maxBidsPerTask }),
  spend_cap: () => t("why.spend"),
  spend_cap_per_day: () => t("why.spend"),
  max_fills: () => t("why.fills"),
  max_fills_per_day: () => t("why.fills"),
  budget: () => t("why.budget"),
  quota: () => t("why.quota"),
};

export function wantsOf(decision, known) {
  const empty = [...decision.rungs.filter((rung) => !rung.isLive), ...decision.unpriced];
  const reasons = new Set(empty.map((rung) => rung.reason));
  const sentences = [...reasons].map((reason) => {
    const prices = empty.filter((rung) => rung.reason === reason && rung.price).map((rung) => rung.price);
    const details = empty.filter((rung) => rung.reason === reason).map((rung) => rung.detail);
    return WANTS[reason]?.({ ...known, decision, details, lowest: prices.length ? Math.min(...prices) : 0 });
  });
  return [...new Set(sentences.filter(Boolean))];
}

const EVERY_MS = 30_000;

/** {book, again}: the marketplace's book while `isWanted`; where calls are counted by the month or day, only when asked for. */
function useMarketBook(task, isWanted) {
  const [book, setBook] = useState(null);
  const { slug, type, venue, config } = task;
  const traits = config.bidType === "trait" ? { traitType: config.traitType, traitValue: config.traitValue } : {};
  const read = async () => {
    const found = await get(withQuery("/market/book", { slug, type, venue, ...traits }));
    setBook({ ...bookOf(found), ranks: new Map(found.ranks?.map(({ order, rank }) => [order, rank])) });
  };
  const quietly = () => read().catch(() => {});
  useEffect(() => {
    if (!venues.peek()) readVenues().catch(() => {});
  }, []);
  const known = venues.value?.find((each) => each.name === venue);
  const isFree = known && monthOf(known.limits) === null;
  useEffect(() => {
    if (!isWanted || !isFree) return undefined;
    quietly();
    const timer = setInterval(() => document.hidden || quietly(), EVERY_MS);
    return () => clearInterval(timer);
  }, [task.id, isWanted, isFree]);
  return { book: isWanted ? book : null, again: read, isCounted: Boolean(known) && !isFree };
}

const REST_MS = 200;

export default function Task({ id, query }) {
  const task = taskOf(id).value;
  if (taskIds.value === null && !task) return html`<${Skeleton} rows=${3} tall=${160} />`;
  if (!task || (taskIds.value && !taskIds.value.includes(id))) return html`<${Nowhere} id=${id} />`;
  return html`<${Page} task=${task} query=${query} />`;
}

const Nowhere = ({ id }) => html`<div class="empty big"><h1>${t("task.none.title")}</h1><p>${t("task.none.what")}</p>
  ${listingIds.value?.includes(id) ? html`<a class="button" href=${`#/listings/${id}`}>${t("task.is_listing")}</a>` : html`<a class="button" href="#/bids">${t("word.to_your_bids")}</a>`}</div>`;

function Page({ task, query }) {
  const { id } = task;
  useEffect(() => watch(id, { moments: true }), [id]);
  const pinned = query.at ? Number(query.at) || Date.parse(query.at) / 1000 || null : null;
  const [pointed, setPointed] = useState(null);
  const chosen = pointed ?? pinned;
  const kept = useRef(pinned);
  if (pointed === null) kept.current = pinned;
  const point = (time) => (setPointed(time), time === null && setQuery({ at: kept.current }));
  const pick = (time) => (setPointed(null), setQuery({ at: time }));
  // Where the pointer rests stands in the address, too, until it goes; a browser takes only so many changes of it.
  // The timer ends with the pointing: later, it may have put a moment there that the pointer has left.
  useLayoutEffect(() => {
    if (pointed === null) return undefined;
    const timer = setTimeout(() => setQuery({ at: pointed }), REST_MS);
    return () => clearTimeout(timer);
  }, [pointed]);
  const past = useMoment(id, chosen);
  const first = useLoad(() => (momentOf(id).peek() ? Promise.resolve(true) : readMoment(id).then(() => true)), [id]);
  // Until a moment is here the one before stays, so that nothing moves under the pointer.
  const moment = chosen === null ? momentOf(id).value : past.moment || momentOf(id).value;
  const isReading = chosen !== null && past.time !== chosen;
  return html`<div class="page task-page"><${Head} task=${task} />
    <div class="task-grid">
      ${chosen !== null && past.refusal && !isReading && html`<div class="span"><${Refused} refusal=${past.refusal} /></div>`}
      ${moment ? html`<${Decision} task=${task} moment=${moment} chosen=${chosen} isReading=${isReading} onBack=${() => pick(null)} />`
        : html`<div class="span"><${Loaded} from=${{ ...first, value: null }} rows=${1} tall=${532} /></div>`}
      <${Past} task=${task} query=${query} mark=${chosen} onPoint=${point} onPick=${pick} />
    </div>
    <${Tabs} task=${task} query=${query} moment=${moment} isPast=${chosen !== null} /></div>`;
}

/** The ladder with its reasons, of now or of a moment. */
function Decision({ task, moment, chosen, isReading, onBack }) {
  const isNow = chosen === null;
  const [hasNumbers, setNumbers] = useState(false);
  const decision = decisionOf(task, moment, cyclesOf(task.id).value, isNow);
  const market = useMarketBook(task, isNow && task.isRunning && moment.cycle !== null && decision.book.bids === null);
  const rungs = decision.rungs.map((rung) => ({ ...rung, rank: rung.rank ?? market.book?.ranks.get(rung.order) ?? null }));
  const picture = { ...decision, ...decision.book, rungs, name: task.slug, bids: decision.book.bids || market.book?.bids || null };
  if (!moment.cycle && !decision.rungs.length) {
    return html`<section class=${`panel span ${isNow ? "" : "ladder-none"}`}><${Empty} title=${t("ladder.no_cycle.title")}>${isNow ? t(`ladder.no_cycle.${task.isRunning ? "running" : "stopped"}`) : decision.unknown}</${Empty}>
      ${decision.faults.length > 0 && html`<${Why} decision=${decision} time=${chosen} />`}</section>`;
  }
  return html`<section class=${`panel ladder-panel ${isReading ? "is-reading" : ""}`} aria-labelledby="ladder-title">
      <header class="panel-head"><h2 id="ladder-title">${t("ladder.title")}${decision.time && html`<${Age} decision=${decision} chosen=${chosen} />`}</h2><${Term} of="ladder" />
        <div class="panel-acts">${!hasNumbers && html`<${LadderLegend} />`}<${NumbersSwitch} isOn=${hasNumbers} onChange=${setNumbers} /></div></header>
      ${hasNumbers ? html`<${LadderNumbers} picture=${picture} />` : html`<${Ladder} picture=${picture} />`}
      <${BookNote} decision=${decision} market=${market} isNow=${isNow} isRunning=${task.isRunning} hasCycle=${moment.cycle !== null} /></section>
    <section class=${`panel why ${isReading ? "is-reading" : ""}`} tabindex="0" aria-labelledby="why-title">
      <header class="panel-head"><h2 id="why-title">${t("word.why")}<span class="count">${isNow ? t("word.now") : isReading ? t("why.reads") : t("why.at", { time: clock(chosen, now.peek()) })}</span></h2><${Term} of="reference" />
        ${!isNow && html`<button class="button small" onClick=${onBack}>${t("why.back")}</button>`}</header>
      <${Why} decision=${decision} time=${chosen} wants=${isNow ? wantsOf(decision, { me: me.value }) : []} /></section>`;
}

/** How old a decision is, where the next one should have come. */
function Age({ decision, chosen }) {
  const age = (chosen ?? now.value) - decision.time;
  return age > 3 * (decision.config.loopSeconds || 120) ? html`<span class="count held-text">${t("ladder.age", { age: span(age) })}</span>` : null;
}

/** What the picture does not know of others, and how it can. */
function BookNote({ decision, market, isNow, isRunning, hasCycle }) {
  if (!hasCycle) return html`<p class="hint">${t("ladder.past_unknown")}</p>`;
  if (decision.book.bids !== null || (isNow && !isRunning)) return html`<p class="hint" />`;
  if (market.book?.bids) return html`<p class="hint">${t("ladder.others_at", { time: clock(market.book.takenAt, now.peek()) })}</p>`;
  return html`<p class="hint">${t("ladder.others_unknown")}
    ${isNow && market.isCounted && html` <button class="plain link" disabled=${link.value === "offline"} onClick=${() => market.again().catch((refusal) => showRefusal(refusal, { isRead: true }))}>${t("ladder.others_read")}</button> ${t("ladder.others_cost")}`}</p>`;
}
