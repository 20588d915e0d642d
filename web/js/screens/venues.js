// The marketplaces that tasks can name: what each can do, how it answers, and the calls that are left of the month and the day.
import { html, t } from "../page.js";
import { count, sats, secondsOf, span } from "../format.js";
import { Loaded, useLoad } from "../parts/states.js";
import { Term } from "../parts/term.js";
import { now, readVenues } from "../store.js";
import "../texts/venues.js";

export default function Venues() {
  const found = useLoad(readVenues);
  return html`<div class="page"><h1>${t("venues.title")}</h1><${Loaded} from=${found} rows=${2} tall=${280}>
    ${(list) => html`<div class="venues">${list.map((venue) => html`<${Venue} key=${venue.name} venue=${venue} />`)}</div>`}</${Loaded}></div>`;
}

const Venue = ({ venue }) => html`<section class="panel" aria-label=${venue.title}>
  <header class="panel-head"><h2>${venue.title} ${venue.isDefault && html`<span class="tag">${t("venues.default")}</span>`}</h2><${Connection} told=${venue.connection} /></header>
  <div class="panel-body"><${Month} venue=${venue} /><${Today} venue=${venue} /><dl class="facts">
    <dt>${t("word.bids")}</dt><dd>${venue.kinds.length
      ? [...venue.kinds.map((kind) => t(`venues.kind.${kind}`)), ...(venue.bidTypes.includes("trait") ? [t("venues.trait")] : [])].join(", ")
      : t("venues.no_bids")}</dd>
    <dt>${t("word.listings")}</dt><dd>${t(venue.listings ? "venues.yes" : "venues.no")}</dd>
    ${venue.kinds.length > 0 && html`<dt>${t("venues.grid")}<${Term} of="tick" /></dt><dd>${venue.kinds.map((kind) => html`<div key=${kind}>${t("venues.steps", {
      kind: t(`venues.kind.${kind}`), tick: sats(venue.bids[kind].tick), least: sats(venue.bids[kind].minBid) })} <u>sats</u></div>`)}</dd>
      <dt>${t("venues.life")}</dt><dd>${span(Math.min(...venue.kinds.map((kind) => venue.bids[kind].minDurationSeconds)))}</dd>
      <dt>${t("venues.end")}</dt><dd>${t(`venues.end.${venue.expiry}`)}</dd>`}
    <dt>${t("venues.speed")}</dt><dd>${speedOf(venue.limits)}</dd>
    ${venue.needsSignIn && html`<dt>${t("venues.session")}</dt><dd>${t("venues.session.yes")}</dd>`}
    <dt>${t("venues.known")}</dt><dd>${t(`venues.known.${venue.verified}`)}</dd></dl></div></section>`;

const speedOf = (limits) => (limits.readsPerMinute ? t("venues.speed.minute", { reads: limits.readsPerMinute, writes: limits.writesPerMinute ?? limits.readsPerMinute })
  : t("venues.speed.second", { n: limits.requestsPerSecond }));

function Connection({ told }) {
  if (!told) return html`<span class="state held"><i aria-hidden="true" />${t("venues.unknown")}</span>`;
  if (told.isCutOff) return html`<span class="state fault"><i aria-hidden="true" />${t("venues.cut")}</span>`;
  if (told.pausedSeconds > 0) return html`<span class="state held"><i aria-hidden="true" />${t("venues.paused", { seconds: told.pausedSeconds })}</span>`;
  const isOff = Math.abs(told.clockSkewSeconds || 0) > 5;
  return html`<span class=${`state ${isOff ? "held" : "on"}`}><i aria-hidden="true" />${isOff ? t("venues.skew", { seconds: told.clockSkewSeconds }) : t("venues.answers")}</span>`;
}

const dayOf = (seconds) => new Date(seconds * 1000).toLocaleDateString("en-CA");

/** The month as a bar; where the rate of the last hour would not last, the day on which it ends. */
function Month({ venue }) {
  const all = venue.limits.callsPerMonth;
  if (all === null && venue.limits.callsPerDay) return null;
  if (all === null || venue.quotaLeft === null) return html`<p class="month"><span class="label">${t("venues.month")}</span>${t("venues.month.none")}</p>`;
  const used = all - venue.quotaLeft;
  const end = secondsOf(venue.quotaEndsAt);
  const rate = end && venue.quotaProjected > used ? (venue.quotaProjected - used) / (end - now.value) : 0;
  const isShort = venue.quotaProjected > all;
  return html`<div class="month"><span class="label">${t("venues.month")}<${Term} of="calls" /></span><b class="num">${t("venues.month.left", { left: count(venue.quotaLeft), all: count(all) })}</b>
    <span class="bar" role="meter" aria-label=${t("venues.month")} aria-valuemin="0" aria-valuemax=${all} aria-valuenow=${used}><i class=${isShort ? "hot" : ""} style=${{ width: `${Math.min(100, (100 * used) / all)}%` }} /></span>
    <small class=${isShort ? "bad-text" : "quiet"}>${isShort && rate ? t("venues.month.out", { day: dayOf(now.value + venue.quotaLeft / rate) }) : t("venues.month.pace", { projected: count(venue.quotaProjected) })}
      ${end ? `; ${t("venues.month.begins", { day: dayOf(end) })}` : ""}</small>
    ${venue.quotaYours && html`<small class="quiet">${t("venues.month.yours", { used: count(venue.quotaYours.used), share: count(venue.quotaYours.share) })}</small>`}</div>`;
}

/** The calls of the day, which begins anew at midnight UTC. */
function Today({ venue }) {
  const all = venue.limits.callsPerDay;
  if (!all || venue.quotaLeftToday === null) return null;
  const used = all - venue.quotaLeftToday;
  const label = t("venues.today");
  return html`<div class="month"><span class="label">${label}</span><b class="num">${t("venues.month.left", { left: count(venue.quotaLeftToday), all: count(all) })}</b>
    <span class="bar" role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax=${all} aria-valuenow=${used}><i class=${used > 0.9 * all ? "hot" : ""} style=${{ width: `${Math.min(100, (100 * used) / all)}%` }} /></span>
    <small class="quiet">${t("venues.today.begins")}</small>
    ${venue.quotaYoursToday && html`<small class="quiet">${t("venues.month.yours", { used: count(venue.quotaYoursToday.used), share: count(venue.quotaYoursToday.share) })}</small>`}</div>`;
}
