// Why each rung has a bid or none: the price, its part of the reference, the reason in words, the time left.
import { html, t } from "../page.js";
import { amount, percent, span } from "../format.js";
import { now } from "../store.js";
import { FAULTS, detailWords, markOf, plainWords, reasonOf } from "../texts/reasons.js";
import { Price } from "./ladder.js";
import { Term } from "./term.js";

// Reasons and marks whose title is a term of the glossary.
export const TERM_OF = {
  kept: "kept", min_age: "too_young", renew: "rebid", renew_waits: "rebid", in_flight: "in_flight", outbid: "outbid", signed_limit: "signing_limit", hardcap: "hard_cap",
  exposure_limit: "exposure", budget: "budget", quota: "calls", cold_start: "spike_guard", floor_spike: "spike_guard", thin_book: "vwap", reduce: "brake", halt: "brake",
};

const TermOf = ({ code }) => (TERM_OF[code] ? html`<${Term} of=${TERM_OF[code]} />` : null);

/** `decision` as decision.js makes it; `time` is the moment looked at, null for now; `wants` are sentences of what more bids need. */
export function Why({ decision, time, wants = [] }) {
  const { isRune } = decision;
  const told = new Set();
  // A list says a sentence once: what it explains stands beside the others by its title alone.
  const once = (code) => {
    const { why } = reasonOf(code);
    return told.has(code) ? "" : (told.add(code), why);
  };
  return html`<div class="why-list">
    ${decision.faults.map((fault, i) => html`<${Fault} key=${i} fault=${fault} text=${decision.errors[i]} />`)}
    ${decision.restraint && decision.restraint !== "run" && html`<${Note} title=${reasonOf(decision.restraint).title} why=${reasonOf(decision.restraint).why} code=${decision.restraint} />`}
    ${decision.hold && html`<${Note} title=${reasonOf(decision.hold).title} why=${once(decision.hold)} />`}
    ${decision.marks.map((mark) => html`<${Note} key=${mark} title=${markOf(mark).title} why=${markOf(mark).why} code=${mark} />`)}
    ${decision.isDry && html`<p class="why-line"><b>${t("state.dry")}.</b> ${t("why.dry")}</p>`}
    <ol class="why-rungs">${decision.rungs.map((rung) => html`<${Rung} key=${rung.key} rung=${rung} decided=${decision.time} time=${time} once=${once} isRune=${isRune} />`)}</ol>
    ${decision.unpriced.length > 0 && html`<ul class="why-more">${decision.unpriced.map((each) => html`<li key=${each.reason}>
      <b class=${reasonOf(each.reason).kind}>${t("why.unpriced", { count: each.count, why: reasonOf(each.reason).title })}</b> <span class="quiet">${once(each.reason)} <${Detail} detail=${each.detail} decided=${decision.time} time=${time} /></span></li>`)}</ul>`}
    ${!decision.rungs.length && !decision.unpriced.length && html`<p class="why-line quiet">${t(decision.planned ? "why.all_ended" : "why.no_rungs")}</p>`}
    ${wants.length > 0 && html`<h3>${t("why.wants")}</h3><ul class="why-more">${wants.map((each) => html`<li key=${each}>${each}</li>`)}</ul>`}
    ${decision.cancelled.length > 0 && html`<h3>${t("why.cancelled")}</h3><ul class="why-more">${decision.cancelled.map((bid) => html`<li key=${bid.order}>
      ${priceOf(bid, isRune)} <b>${reasonOf(bid.reason).title}.</b> <span class="quiet">${once(bid.reason)}</span></li>`)}</ul>`}
    ${decision.filled.length > 0 && html`<h3>${t("why.filled")}</h3><ul class="why-more">${decision.filled.map((bid) => html`<li key=${bid.order}>
      <span class="good-text" aria-hidden="true">★</span> ${bid.price && priceOf(bid, isRune)} <span class="quiet">${t("why.order", { id: bid.order })}</span></li>`)}</ul>`}
  </div>`;
}

const Note = ({ title, why, code }) => html`<div class="note"><b>${title}<${TermOf} code=${code} /></b><span class="quiet">${why}</span></div>`;

function Fault({ fault, text }) {
  const words = plainWords(text);
  const [title, what] = fault.code === "other" ? [words, ""] : FAULTS[fault.code] || [words, ""];
  return html`<div class="note bad"><b>${title}</b>${what && html`<span>${what}</span>`}${words && words !== title && html`<small class="quiet">${words}</small>`}</div>`;
}

function Rung({ rung, decided, time, once, isRune }) {
  const { title, kind } = reasonOf(rung.reason);
  const why = once(rung.reason);
  return html`<li class=${rung.isLive ? "on" : "off"}><i class="dot" aria-hidden="true" /><div>
    <span class="price" title=${isRune ? t("why.whole", { amount: amount(rung.price) }) : undefined}>${priceOf(rung, isRune)}</span>
    ${rung.share !== null && html` <span class="share" title=${t("why.of_reference")}>${percent(rung.share)}</span>`}
    ${rung.expires && html`<${Ends} expires=${rung.expires} time=${time} />`}
    <p><b class=${rung.isLive ? "" : kind}>${rung.isLive ? title : t("ladder.no_bid", { why: title })}</b>${why && html`<${TermOf} code=${rung.reason} />`} <span>${why}</span>${rung.detail && html` <${Detail} detail=${rung.detail} decided=${decided} time=${time} />`}</p></div></li>`;
}

/** Counts a wait down: the words are of the decision. */
const Detail = ({ detail, decided, time }) => html`<span>${detailWords(detail, decided ? Math.max(0, (time ?? now.value) - decided) : 0)}</span>`;

/** Alone it knows of the time that passes: nothing around it is drawn again for that. */
function Ends({ expires, time }) {
  const left = expires - (time ?? now.value);
  return html`<span class="ends">${left > 0 ? t("why.ends", { left: span(left) }) : t("why.ended")}</span>`;
}

const priceOf = ({ unit, price }, isRune) => (unit === null ? t("why.order_of", { amount: amount(price) }) : html`<${Price} value=${unit} isRune=${isRune} />`);
