// For those who run the installation: how it is, who may come in, and what each may do.
import { html } from "../html.js";
import { get } from "../api.js";
import { amount, count } from "../format.js";
import { useAct, useLoad } from "../load.js";
import { setQuery } from "../router.js";
import { me, setControl } from "../store.js";
import { t } from "../texts.js";
import "../texts/admin.js";
import "../texts/venues.js";
import { Users } from "../parts/admin_users.js";
import { Whitelist } from "../parts/admin_whitelist.js";
import { confirmed } from "../parts/dialog.js";
import { Segments } from "../parts/field.js";
import { Money } from "../parts/money.js";
import { Empty, Loaded, wordsOf } from "../parts/states.js";
import { toast } from "../parts/toast.js";

const TABS = ["state", "users", "whitelist"];

export default function Admin({ query }) {
  const tab = TABS.includes(query.tab) ? query.tab : "state";
  if (me.value && !me.value.isAdmin) return html`<div class="page"><h1>${t("admin.title")}</h1><${Empty}>${t("admin.not")}</${Empty}></div>`;
  return html`<div class="page"><h1>${t("admin.title")}</h1>
    <${Segments} label=${t("admin.title")} value=${tab} onChange=${(value) => setQuery({ tab: value })} options=${TABS.map((each) => [each, t(`admin.tab.${each}`)])} />
    ${tab === "state" ? html`<${State} />` : tab === "users" ? html`<${Users} find=${query.find || ""} />` : html`<${Whitelist} />`}</div>`;
}

const sumOf = (numbers) => Object.values(numbers).reduce((sum, each) => sum + each, 0);

function State() {
  const found = useLoad((abort) => get("/admin/readiness", { abort }));
  return html`<${Loaded} from=${found} rows=${3} tall=${120}>${(all) => html`
    <div class=${`note ${all.isReady ? "good" : "bad"}`}><p><b>${t(all.isReady ? "admin.ready" : "admin.not_ready")}</b></p></div>
    <section class="numbers" aria-label=${t("admin.tab.state")}>
      <div class="number"><span class="label">${t("admin.workers")}</span><b class="num">${count(all.workers)}</b><small>${t("admin.workers.of", { most: count(all.mostWorkers) })}</small></div>
      <div class="number"><span class="label">${t("admin.tasks")}</span><b class="num">${count((all.tasks.running || 0) + (all.autolist.running || 0))}</b><small>${t("admin.tasks.of", { all: count(sumOf(all.tasks) + sumOf(all.autolist)) })}</small></div>
      <div class="number"><span class="label">${t("admin.exposure")}</span><b><${Money} value=${all.exposure} named /></b><small>${all.maxExposure === null ? t("admin.exposure.free") : t("admin.exposure.of", { most: amount(all.maxExposure) })}</small></div>
      <div class="number"><span class="label">${t("admin.sessions")}</span><b class="num">${count(all.sessions)}</b></div></section>
    <div class="two"><section class="panel" aria-labelledby="programs-title"><header class="panel-head"><h2 id="programs-title">${t("admin.programs")}</h2></header>
        <ul class="rows">${all.peers.map((peer) => html`<li key=${peer.name}><b>${peer.name}</b><span class=${`state ${peer.isReady ? "on" : "fault"}`}><i aria-hidden="true" />${peer.isReady ? t("admin.answers") : peer.reason}</span></li>`)}</ul></section>
      <section class="panel" aria-labelledby="markets-title"><header class="panel-head"><h2 id="markets-title">${t("admin.venues")}</h2></header>
        ${all.venues ? html`<ul class="rows">${all.venues.map((venue) => html`<${Venue} key=${venue.name} venue=${venue} />`)}</ul>` : html`<${Empty}>${t("admin.venues.unknown")}</${Empty}>`}</section></div>
    <${GlobalBrake} state=${all.control.state} total=${amount(all.exposure)} again=${found.again} />`}</${Loaded}>`;
}

/** The use of the month and the day, where the key has such a quota. */
const callsOf = ({ quota, quotaToday }) =>
  [["admin.calls", quota], ["admin.calls.today", quotaToday]].filter(([, each]) => each).map(([name, each]) => t(name, { used: count(each.used), limit: count(each.limit) }));

const Venue = ({ venue }) => html`<li><div><b>${venue.name}</b><br /><small class="quiet">${callsOf(venue).join("; ") || t("admin.calls.none")}</small></div>
  <span class=${`state ${venue.isCutOff ? "fault" : venue.pausedSeconds > 0 ? "held" : "on"}`}><i aria-hidden="true" />${venue.isCutOff ? t("venues.cut") : venue.pausedSeconds > 0
    ? t("venues.paused", { seconds: Math.ceil(venue.pausedSeconds) }) : t("admin.answers")}</span></li>`;

function GlobalBrake({ state, total, again }) {
  const { isBusy, run } = useAct();
  const set = (to) => run(async () => {
    if (to === state) return;
    if (to === "halt" && !(await confirmed({ title: t("admin.brake.title"), lines: [t("admin.brake.sure", { total })], act: t("brake.halt") }))) return;
    try {
      await setControl({ scope: "global", state: to });
      toast(t("admin.brake.set", { state: t(`brake.${to}`) }));
      again();
    } catch (refusal) {
      toast(wordsOf(refusal), { isBad: true });
    }
  });
  return html`<section class="panel" aria-labelledby="all-brake-title"><header class="panel-head"><h2 id="all-brake-title">${t("admin.brake")}</h2>
    <div class="segments" role="group" aria-label=${t("admin.brake")}>${["run", "reduce", "halt"].map((each) => html`<button key=${each} disabled=${isBusy} aria-pressed=${each === state} class=${each === state ? "on" : ""} onClick=${() => set(each)}>${t(`brake.${each}`)}</button>`)}</div></header>
    <p class="quiet panel-body">${t("admin.brake.what")}</p></section>`;
}
