// Sessions, and tokens for programs: what there is, and the end of each.
import { useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call, get } from "../api.js";
import { Empty, Loaded, deleteIfSure, showRefusal, useAct, useLoad } from "./states.js";
import { clock, secondsOf, span } from "../format.js";
import { listings, now, tasks } from "../store.js";
import { Copyable, Table, isFaulty } from "./basics.js";
import { Check, Choice, CountField, TextField, useFaults } from "./field.js";

const SCOPES = ["read", "trade", "control"];

export default function Access() {
  return html`<${Sessions} /><${Tokens} />`;
}

function Sessions() {
  const found = useLoad((abort) => get("/sessions", { abort }));
  const { isBusy, run } = useAct();
  const end = (row) => run(() => call("DELETE", `/sessions/${row.id}`).then(found.again, showRefusal));
  const endAll = () => run(() => deleteIfSure("/sessions", { title: t("sessions.all.title"), lines: [t("sessions.all.what")], act: t("sessions.all") }, found.again));
  const nameOf = (row) => row.client || t("sessions.client.none");
  return html`<section class="panel" aria-labelledby="sessions-title"><header class="panel-head"><h2 id="sessions-title">${t("sessions.title")}</h2>
      <button class="button" disabled=${isBusy} onClick=${endAll}>${t("sessions.all")}</button></header>
    <${Loaded} from=${found} rows=${2} tall=${44}>${(rows) => html`<${Table} label=${t("sessions.title")} rows=${rows} keyOf=${(row) => row.id} columns=${[
      { name: t("sessions.client"), cell: (row) => html`<span>${nameOf(row)} ${row.isCurrent && html`<span class="tag">${t("sessions.this")}</span>`}</span>` },
      { name: t("word.since"), cell: (row) => clock(secondsOf(row.createdAt), now.value) },
      { name: t("sessions.used"), cell: (row) => span(now.value - secondsOf(row.usedAt)) },
      { name: "", isNumber: true, cell: (row) => html`<button class="button" disabled=${isBusy} aria-label=${t("sessions.end.of", { client: nameOf(row) })} onClick=${() => end(row)}>${t("sessions.end")}</button>` },
    ]} />`}</${Loaded}></section>`;
}

function Tokens() {
  const found = useLoad((abort) => get("/tokens", { abort }));
  const [made, setMade] = useState(null);
  const [form, setForm] = useState(null);
  const { isBusy, run } = useAct();
  const [faults, send] = useFaults(["name", "taskId", "expiresInDays"]);
  const end = (row) => run(() => deleteIfSure(`/tokens/${row.id}`, { title: t("tokens.end.title", row), lines: [t("tokens.end.what")], act: t("sessions.end") }, found.again));
  const make = (event) => {
    event.preventDefault();
    if (isFaulty(event.target)) return undefined;
    return run(() => send(async () => {
      setMade(await call("POST", "/tokens", { name: form.name, scopes: form.scopes, taskId: form.taskId ? Number(form.taskId) : null, expiresInDays: form.days ?? 0 }));
      setForm(null);
      found.again();
    }));
  };
  const taskName = (id) => tasks.value?.find((each) => each.id === id)?.slug || (id === null ? t("tokens.task.all") : `#${id}`);
  return html`<section class="panel" aria-labelledby="tokens-title"><header class="panel-head"><h2 id="tokens-title">${t("tokens.title")}</h2>
      ${!form && html`<button class="button" onClick=${() => (setMade(null), setForm({ name: "", scopes: ["read"], days: 90, taskId: "" }))}>${t("tokens.make")}</button>`}</header>
    ${made && html`<div class="panel-body"><div class="note good"><p>${t("tokens.made")}</p><${Copyable} text=${made.token} head=${60} name=${t("tokens.title")} /></div></div>`}
    ${form && html`<form class="form panel-body" onSubmit=${make}><div class="pair">
        <${TextField} label=${t("word.name")} fault=${faults.name} value=${form.name} onChange=${(name) => setForm({ ...form, name })} />
        <${CountField} label=${t("tokens.days")} min="1" max="365" fault=${faults.expiresInDays} value=${form.days} onChange=${(days) => setForm({ ...form, days })} />
        <${Choice} label=${t("tokens.task")} fault=${faults.taskId} value=${form.taskId} onChange=${(taskId) => setForm({ ...form, taskId })}
          options=${[["", t("tokens.task.all")], ...(tasks.value || []).map((each) => [String(each.id), each.slug]), ...(listings.value || []).map((each) => [String(each.id), `#${each.id}`])]} /></div>
      <fieldset class="checks"><legend>${t("tokens.scopes")}</legend>${SCOPES.map((scope) => html`<${Check} key=${scope} label=${t(`tokens.scope.${scope}`)} hint=${t(`tokens.scope.${scope}.hint`)} value=${form.scopes.includes(scope)}
        onChange=${(is) => setForm({ ...form, scopes: is ? [...form.scopes, scope] : form.scopes.filter((each) => each !== scope) })} />`)}</fieldset>
      <div class="acts-row"><button type="button" class="button" onClick=${() => setForm(null)}>${t("cancel")}</button><button class="button primary" disabled=${isBusy}>${t("tokens.make")}</button></div></form>`}
    <${Loaded} from=${found} rows=${1} tall=${44}>${(rows) => (rows.length ? html`<${Table} label=${t("tokens.title")} rows=${rows} keyOf=${(row) => row.id} columns=${[
      { name: t("word.name"), cell: (row) => html`<b>${row.name}</b>` },
      { name: t("tokens.scopes"), cell: (row) => row.scopes.map((each) => t(`tokens.scope.${each}`)).join(", ") },
      { name: t("tokens.task"), cell: (row) => taskName(row.taskId) },
      { name: t("sessions.used"), cell: (row) => (row.usedAt ? span(now.value - secondsOf(row.usedAt)) : t("tokens.never")) },
      { name: t("tokens.ends"), cell: (row) => clock(secondsOf(row.expiresAt), now.value) },
      { name: "", isNumber: true, cell: (row) => html`<button class="button" disabled=${isBusy} aria-label=${t("tokens.end.title", row)} onClick=${() => end(row)}>${t("sessions.end")}</button>` },
    ]} />` : html`<${Empty}>${t("tokens.none")}</${Empty}>`)}</${Loaded}></section>`;
}
