// Why a listing stands where it does: what each cycle decided, those with the same decision as one.
import { html } from "../../html.js";
import { clock, iso } from "../../format.js";
import { groupsOf } from "../../listing_state.js";
import { cyclesOf, now } from "../../store.js";
import { t } from "../../texts.js";
import { faultOf, reasonOf } from "../../texts/reasons.js";
import { Money } from "../../parts/money.js";
import { Empty, Skeleton } from "../../parts/states.js";

const MOST = 12;

export function Why({ id }) {
  const cycles = cyclesOf(id).value;
  const groups = cycles ? groupsOf(cycles).slice(0, MOST) : [];
  // A reason's sentence is said once.
  const said = new Set();
  const isNew = (code) => !said.has(code) && said.add(code);
  return html`<section class="panel" aria-labelledby="why-title"><header class="panel-head"><h2 id="why-title">${t("listing.why.title")}</h2></header>
    ${!cycles ? html`<div class="panel-body"><${Skeleton} rows=${2} tall=${52} /></div>` : !groups.length ? html`<${Empty}>${t("listing.why.none")}</${Empty}>`
      : html`<ol class="listing-why">${groups.map((group) => html`<${Decision} key=${group.to} group=${group} isSaid=${!isNew(group.fault || group.code)} />`)}</ol>`}</section>`;
}

function wordsOf({ code, fault, error }) {
  if (code === "sold") return { title: t("listing.why.sold"), why: t("listing.why.sold.what"), kind: "good" };
  return code ? reasonOf(code) : { ...faultOf({ lastErrorCode: fault || "other", lastError: error || t("listing.why.nothing") }), kind: fault ? "fault" : "keep" };
}

function Decision({ group, isSaid }) {
  const { code, fault, error, price, from, to, count, isDry } = group;
  const { title, why, kind } = wordsOf(group);
  const also = fault && code ? faultOf({ lastErrorCode: fault, lastError: error }) : null;
  const at = now.value;
  return html`<li><i class=${`dot ${kind}`} aria-hidden="true" /><div><p><b class=${kind}>${title}</b>${price !== null && html` <${Money} value=${price} named />`}${isDry && html` <span class="tag wait">${t("listing.why.paper")}</span>`}</p>
      ${!isSaid && why && html`<p class="quiet">${why}</p>`}${also && also.title !== title && html`<p class="listing-bad">${also.title}. ${also.why}</p>`}</div>
    <time title=${iso(to)} datetime=${iso(to)}>${count > 1 ? t("listing.why.times", { count, from: clock(from, at), to: clock(to, at) }) : clock(to, at)}</time></li>`;
}
