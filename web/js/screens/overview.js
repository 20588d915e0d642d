// What stands where, why, and what it could cost: everything in one glance.
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html, knows, t } from "../page.js";
import { get } from "../api.js";
import { linesOf, ranked } from "../feed.js";
import { NONE, amount, clock, count, iso, percent, secondsOf, span, unitName } from "../format.js";
import { useRows } from "../rows.js";
import { control, feed, fillsToday, listingOf, listings, me, now, places, quietly, readFillsToday, taskOf, tasks, venues, wallet } from "../store.js";
import { Money } from "../parts/basics.js";
import { GainStrip } from "../parts/gain.js";
import { Listings } from "./overview/listings.js";
import { Tasks } from "./overview/tasks.js";
import { faultOf, plainWords } from "../texts/reasons.js";
import "../texts/overview.js";

const SOON_S = 7 * 86_400;
const QUOTA_S = 86_400; // it is told once a day

/** Events of quotas from before those of the feed. */
const earlier = signal([]);
const readQuotas = async () => (earlier.value = (await get("/events?wait=0&limit=5&events=quota")).events);

function notes() {
  const codes = new Set([...(tasks.value || []), ...(listings.value || [])].map((each) => each.lastErrorCode));
  const found = [];
  if (codes.has("signer_locked")) found.push(["bad", t("note.signer_locked")]);
  else if (codes.has("signer_away") || (control.value && control.value.user.signerState === null)) found.push(["bad", t("note.signer_away")]);
  const { effective } = control.value || {};
  if (effective?.scope === "global" && effective.state !== "run") found.push([effective.state === "halt" ? "bad" : "", t(`note.${effective.state}`)]);
  return [...found, ...plan(codes), ...quotas()];
}

function plan(codes) {
  if (!me.value) return [];
  const left = secondsOf(me.value.subscription.expiresAt) - now.peek();
  if (left <= 0 || me.value.subscription.status === "expired") return [["bad", t("note.plan_over", { when: span(-left) })]];
  return left < SOON_S ? [["", t("note.plan_ends", { left: span(left) })]] : codes.has("not_entitled") ? [["bad", t("note.not_entitled")]] : [];
}

function quotas() {
  const title = (name) => venues.value?.find((each) => each.name === name)?.title || name;
  const all = venues.value || [];
  const spent = all.filter((each) => each.quotaLeft === 0).map((each) => each.name);
  const today = all.filter((each) => each.quotaLeftToday === 0 && each.quotaLeft !== 0).map((each) => each.name);
  const short = new Map();
  for (const each of [...feed.value, ...earlier.value]) {
    if (each.event !== "quota" || now.peek() - secondsOf(each.at) > QUOTA_S || [...spent, ...today].includes(each.data.venue)) continue;
    if (!short.has(each.data.venue)) short.set(each.data.venue, each.data);
  }
  return [
    ...spent.map((name) => ["bad", t("note.quota.left", { venue: title(name) })]),
    ...today.map((name) => ["bad", t("note.quota.today", { venue: title(name) })]),
    ...[...short].map(([name, data]) => ["", t("note.quota", { venue: title(name), every: span(data.everySeconds) })]),
  ];
}

export function Notes() {
  useEffect(() => quietly(readQuotas()), []);
  return html`${notes().map(([kind, words]) => html`<p key=${words} class=${`note ${kind}`} role="status">${words}</p>`)}`;
}

const MOST = 10;

export function Feed() {
  const lines = ranked(linesOf(feed.value), MOST);
  return html`<section class="panel" aria-labelledby="feed-title"><header class="panel-head"><h2 id="feed-title">${t("overview.feed")}</h2>
      <a class="link" href="#/history">${t("overview.feed.all")}</a></header>
    ${lines.length ? html`<ol class="feed" tabindex="0" aria-labelledby="feed-title">${lines.map((line) => html`<${Line} key=${line.id} line=${line} />`)}</ol>` : html`<div class="empty"><p>${t("overview.feed.none")}</p></div>`}</section>`;
}

function Line({ line }) {
  const [low, high] = (line.prices || [null, null]).map(amount);
  const name = `feed.${line.name}`;
  const words = knows(name) ? t(name, { ...line, low, high, was: amount(line.was), words: troubleOf(line) }) : line.text;
  return html`<li class=${`kind-${line.kind}`}><${Age} at=${line.at} /><i aria-hidden="true" /><span><b><bdi>${nameOf(line)}</bdi></b> ${words}</span></li>`;
}

function Age({ at }) {
  const past = now.value - at;
  return html`<time datetime=${iso(at)} title=${clock(at, now.value)}>${past < 3 ? t("word.now") : span(past)}</time>`;
}

function nameOf({ task, slug, data }) {
  if (slug) return slug;
  if (task === null) return data.venue || t("feed.everything");
  const known = taskOf(task).value || listingOf(task).value;
  return known?.slug || known?.collectionId || t("feed.gone.task");
}

/** The trouble in our words where it is still the task's, else in the server's. */
function troubleOf({ task, data }) {
  const known = taskOf(task).value || listingOf(task).value;
  return known?.lastError && known.lastError === data.error ? faultOf(known).title : data.error && plainWords(data.error);
}

const lastFill = computed(() => feed.value.find((each) => each.event === "fill")?.id || 0);

function Number({ label, value, children }) {
  return html`<div class="number"><span class="label">${label}</span><b class="num">${value}</b>${children}</div>`;
}

/** `isMissing`: no wallet was read yet, or the marketplace tells no balance. */
const Sum = ({ value }) => (value === null || value === undefined ? html`<span class="dim">${NONE}</span>` : html`<${Money} value=${value} /> <u>${unitName()}</u>`);

export function Numbers() {
  const stats = me.value?.stats;
  const purse = wallet.value;
  const balance = purse?.biddingWallet?.balanceSats;
  useEffect(() => quietly(readFillsToday()), [lastFill.value]);
  return html`<section class="numbers" aria-label=${t("overview.numbers")}>
    <${Number} label=${t("word.exposure")} value=${html`<${Sum} value=${stats?.exposure} />`}>${stats && html`<${Limit} stats=${stats} />`}</${Number}>
    <${Number} label=${t("word.if_all_fill_now")} value=${html`<${Sum} value=${purse?.ifAllFillNow} />`}>
      <small>${purse && (purse.worstLoss === null ? t("overview.all.unknown") : t("overview.all.ever", { sum: amount(purse.worstLoss) }))}</small></${Number}>
    <${Number} label=${t("word.open_bids")} value=${html`${stats ? count(stats.openBids) : NONE}<span class="dim"> / ${wanted.value}</span>`}><small>${openWords()}</small></${Number}>
    <${Number} label=${t("overview.balance")} value=${html`<${Sum} value=${balance} />`}>
      <small class=${purse?.balanceError || balance === 0 ? "held-text" : ""}>${purse && balanceWords(purse, balance)}</small></${Number}></section>`;
}

const wanted = computed(() => (tasks.value || []).filter((task) => task.isRunning && !task.config.dryRun).reduce((sum, task) => sum + task.config.bidCount, 0));

function openWords() {
  const said = places.value?.known ? [t("overview.open.first", places.value)] : [];
  if (fillsToday.value) said.push(t("overview.open.fills", { count: fillsToday.value.length }));
  return said.join(" · ");
}

function balanceWords(purse, balance) {
  if (purse.balanceError) return t("overview.balance.unknown");
  return t(balance ? "overview.balance.where" : "overview.balance.none");
}

function Limit({ stats }) {
  const share = stats.maxExposure ? stats.exposure / stats.maxExposure : 0;
  return html`<span class="bar" role="meter" aria-valuenow=${Math.round(100 * share)} aria-valuemin="0" aria-valuemax="100" aria-label=${t("overview.exposure.bar")}>
    <i class=${share > 0.9 ? "hot" : ""} style=${{ width: `${Math.min(100, 100 * share)}%` }} /></span>
    <small>${t("overview.exposure.of", { share: percent(share), most: amount(stats.maxExposure) })}</small>`;
}

export default function Overview() {
  useRows();
  return html`<div class="page overview"><h1 class="sr">${t("overview.title")}</h1>
    <${Notes} /><${Numbers} /><${GainStrip} />
    <div class="desk"><${Tasks} /><div class="column"><${Listings} /><${Feed} /></div></div></div>`;
}
