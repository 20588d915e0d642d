// For those who run the installation: how it is, who may come in, and what each may do.
import { useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call, get } from "../api.js";
import { Dialog, Empty, Loaded, attempt, confirmed, toast, useAct, useLoad } from "../parts/states.js";
import { amount, clock, count, secondsOf, short, span } from "../format.js";
import { setQuery } from "../router.js";
import { me, now, setControl } from "../store.js";
import { Copyable, Money, Pages, Table, usePages } from "../parts/basics.js";
import { Choice, Field, Segments, TextField, useFaults } from "../parts/field.js";
import "../texts/admin.js";
import "../texts/venues.js";

export function Users({ find }) {
  const plans = useLoad((abort) => get("/admin/plans", { abort }));
  const pages = usePages("/admin/users", "users", { address: find }, [find], "after");
  const [changed, setChanged] = useState(null);
  return html`<section class="panel" aria-label=${t("admin.tab.users")}><div class="panel-body admin-find"><${TextField} label=${t("word.address")} value=${find} onChange=${(value) => setQuery({ find: value.trim() })} /></div>
      <${Pages} from=${pages} none=${t("admin.users.none")}>${(rows) => html`<${Table} label=${t("admin.tab.users")} rows=${rows} keyOf=${(row) => row.id} columns=${[
        { name: t("admin.user"), cell: (row) => html`<span><b>${row.displayName || short(row.address, 8, 6)}</b> ${row.isAdmin && html`<span class="tag">${t("admin.user.admin")}</span>`}${!row.maySignIn && html` <span class="tag stop">${t("admin.user.out")}</span>`}
          ${row.displayName && html`<br /><code class="quiet" title=${row.address}>${short(row.address, 8, 6)}</code>`}</span>` },
        { name: t("word.plan"), cell: (row) => html`<span>${row.plan || t("word.none")} ${row.planIsOver && html`<span class="tag stop">${t("admin.user.over")}</span>`}<br /><small class="quiet">${row.planEndsAt ? clock(secondsOf(row.planEndsAt)) : ""}</small></span>` },
        { name: t("word.tasks"), isNumber: true, cell: (row) => t("admin.user.running", row) },
        { name: t("word.open_bids"), isNumber: true, cell: (row) => html`<${Money} value=${row.exposure} />` },
        { name: t("admin.user.seen"), cell: (row) => (row.lastSeenAt ? span(now.value - secondsOf(row.lastSeenAt)) : t("admin.user.never")) },
        { name: "", isNumber: true, cell: (row) => html`<button class="button" aria-label=${t("admin.user.change.of", row)} onClick=${() => setChanged(row)}>${t("admin.user.change")}</button>` },
      ]} />`}</${Pages}></section>
    <section class="panel" aria-labelledby="plans-title"><header class="panel-head"><h2 id="plans-title">${t("admin.plans")}</h2></header>
      <${Loaded} from=${plans} rows=${1} tall=${44}>${(rows) => html`<${Table} label=${t("admin.plans")} rows=${rows} keyOf=${(row) => row.key} columns=${[
        { name: t("word.plan"), cell: (row) => html`<b>${row.name}</b>` },
        { name: t("word.tasks"), isNumber: true, cell: (row) => count(row.maxTasks) },
        { name: t("admin.plan.bids"), isNumber: true, cell: (row) => count(row.maxBidsPerTask) },
        { name: t("word.exposure"), isNumber: true, cell: (row) => html`<${Money} value=${row.maxExposure} />` },
        { name: t("word.price"), isNumber: true, cell: (row) => html`<${Money} value=${row.priceSats} />` },
        { name: t("admin.plan.days"), isNumber: true, cell: (row) => count(row.durationDays) },
        { name: t("admin.plan.users"), isNumber: true, cell: (row) => count(row.users) },
      ]} />`}</${Loaded}></section>
    ${changed && html`<${PlanOf} key=${changed.id} user=${changed} plans=${plans.value || []} onClose=${() => setChanged(null)} onSaved=${() => (setChanged(null), pages.again(), plans.again())} />`}`;
}

function PlanOf({ user, plans, onClose, onSaved }) {
  const [plan, setPlan] = useState(user.plan || plans[0]?.key || "");
  const [day, setDay] = useState("");
  const { isBusy, run } = useAct();
  const save = (event) => {
    event.preventDefault();
    return run(() => attempt(async () => {
      const answer = await call("PUT", `/admin/users/${user.id}`, { plan, ...(day ? { endsAt: day } : {}) });
      if (answer.tasksStopped) toast(t("admin.user.stopped", { count: answer.tasksStopped }));
      onSaved();
    }));
  };
  return html`<${Dialog} title=${t("admin.user.title", { name: user.displayName || short(user.address, 8, 6) })} onClose=${onClose}><form class="form" onSubmit=${save}>
    <${Choice} label=${t("word.plan")} value=${plan} onChange=${setPlan} options=${plans.map((each) => [each.key, each.name])} />
    <${Field} label=${t("admin.user.ends")} hint=${t("admin.user.ends.hint")}>${(names) => html`<input ...${names} type="date" value=${day} onInput=${(event) => setDay(event.target.value)} />`}</${Field}>
    <div class="dialog-acts"><button type="button" class="button" onClick=${onClose}>${t("cancel")}</button><button class="button primary" disabled=${isBusy}>${t("word.save")}</button></div></form></${Dialog}>`;
}

/** Reads the whole list: some hundreds of addresses in a few pages. */
async function readWhitelist(abort) {
  const first = await get("/admin/whitelist?limit=500", { abort });
  const { addresses } = first;
  for (let { next } = first; next !== null; ) {
    const page = await get(`/admin/whitelist?limit=500&after=${encodeURIComponent(next)}`, { abort });
    addresses.push(...page.addresses);
    next = page.next;
  }
  return { ...first, addresses };
}

function Whitelist() {
  const found = useLoad(readWhitelist);
  const [address, setAddress] = useState("");
  const { isBusy, run } = useAct();
  const [faults, send] = useFaults(["address"]);
  const add = (event) => {
    event.preventDefault();
    return run(() => send(() => call("POST", "/admin/whitelist", { address: address.trim() }).then(() => (setAddress(""), found.again()))));
  };
  const remove = (row) => run(() => attempt(async () => {
    if (!(await confirmed({ title: t("admin.remove.title", row), lines: [t("admin.remove.what")], act: t("admin.remove") }))) return;
    const off = await call("DELETE", `/admin/whitelist/${row.address}`);
    toast(off.maySignIn ? t("admin.removed.still") : t("admin.user.stopped", { count: off.tasksStopped || 0 }));
    found.again();
  }));
  return html`<section class="panel" aria-label=${t("admin.tab.whitelist")}><form class="panel-body admin-find" onSubmit=${add}>
      <${TextField} label=${t("admin.add.label")} fault=${faults.address} value=${address} onChange=${setAddress} /><button class="button primary" disabled=${isBusy || !address.trim()}>${t("word.add")}</button></form>
    <${Loaded} from=${found} rows=${2} tall=${44}>${(list) => html`${list.isOpen && html`<div class="panel-body"><div class="note"><p>${t("admin.open")}</p></div></div>`}
      <${Table} label=${t("admin.tab.whitelist")} rows=${[...list.fromSettings, ...list.addresses]} keyOf=${(row) => `${row.address} ${row.addedAt || ""}`} columns=${[
        { name: t("word.address"), cell: (row) => html`<span><${Copyable} text=${row.address} head=${8} tail=${6} />${row.isAdmin && html` <span class="tag">${t("admin.user.admin")}</span>`}</span>` },
        { name: t("word.since"), cell: (row) => (row.addedAt ? clock(secondsOf(row.addedAt)) : t("admin.settings")) },
        { name: "", isNumber: true, cell: (row) => row.addedAt && !row.isAdmin && html`<button class="button" disabled=${isBusy} aria-label=${t("admin.remove.title", row)} onClick=${() => remove(row)}>${t("admin.remove")}</button>` },
      ]} />`}</${Loaded}></section>`;
}

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
  const set = (to) => run(() => attempt(async () => {
    if (to === state) return;
    if (to === "halt" && !(await confirmed({ title: t("admin.brake.title"), lines: [t("admin.brake.sure", { total })], act: t("brake.halt") }))) return;
    await setControl({ scope: "global", state: to });
    toast(t("admin.brake.set", { state: t(`brake.${to}`) }));
    again();
  }));
  return html`<section class="panel" aria-labelledby="all-brake-title"><header class="panel-head"><h2 id="all-brake-title">${t("admin.brake")}</h2>
    <div class="segments" role="group" aria-label=${t("admin.brake")}>${["run", "reduce", "halt"].map((each) => html`<button key=${each} disabled=${isBusy} aria-pressed=${each === state} class=${each === state ? "on" : ""} onClick=${() => set(each)}>${t(`brake.${each}`)}</button>`)}</div></header>
    <p class="quiet panel-body">${t("admin.brake.what")}</p></section>`;
}
