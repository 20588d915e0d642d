// What holds everything back, over the whole width: what it is, and who can change it.
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { html } from "../../html.js";
import { secondsOf, span } from "../../format.js";
import { get } from "../../api.js";
import { control, feed, listings, me, now, quietly, tasks, venues } from "../../store.js";
import { t } from "../../texts.js";

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
