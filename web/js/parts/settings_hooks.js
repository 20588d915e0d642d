// Hooks: who is told of what, whether it arrives, and another try.
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call, get } from "../api.js";
import { Empty, Loaded, confirmed, deleteIfSure, showRefusal, toast, useAct, useLoad, wordsOf } from "./states.js";
import { clock, secondsOf } from "../format.js";
import { now } from "../store.js";
import { Copyable, Table, isFaulty } from "./basics.js";
import { Check, Choice, CountField, TextField, useFaults } from "./field.js";

const KINDS = ["webhook", "ntfy", "telegram", "discord", "mail"];
const WITH_SECRET = ["webhook", "ntfy", "telegram"];
const EVENTS = ["fill", "sold", "error", "recovered", "worker_dead", "halted", "quota", "outbid_limited", "listed", "plan_expiring", "daily"];
const USUAL = EVENTS.slice(0, 7);

/** The switch for notifications of this browser; its module is loaded with it, and by the shell once they are on. */
function InThisBrowser() {
  const [notify, setNotify] = useState(null);
  useEffect(() => void import("../notify.js").then(setNotify, () => {}), []);
  const { isBusy, run } = useAct();
  if (!notify) return null;
  const { isWanted, permission, want } = notify;
  const isBlocked = ["none", "denied"].includes(permission.value);
  return html`<section class="panel" aria-labelledby="notify-title"><header class="panel-head"><h2 id="notify-title">${t("notify.title")}</h2>
      ${!isBlocked && html`<button class="button" disabled=${isBusy} onClick=${() => run(() => want(!isWanted.value))}>${t(isWanted.value ? "notify.off" : "notify.on")}</button>`}</header>
    <div class="panel-body"><p class="quiet">${t(isBlocked ? `notify.${permission.value}` : "notify.what")}</p></div></section>`;
}

export default function Hooks() {
  return html`<${Targets} /><${InThisBrowser} />`;
}

function Targets() {
  const found = useLoad((abort) => get("/hooks", { abort }));
  const [form, setForm] = useState(null);
  const [made, setMade] = useState(null);
  const { isBusy, run } = useAct();
  const [faults, send] = useFaults(["url", "secret", "minIntervalSeconds"]);
  const make = (event) => {
    event.preventDefault();
    if (isFaulty(event.target)) return undefined;
    return run(() => send(async () => {
      const { every, ...rest } = form;
      setMade(await call("POST", "/hooks", { ...rest, secret: WITH_SECRET.includes(form.kind) ? form.secret : "", minIntervalSeconds: every ?? 0 }));
      setForm(null);
      found.again();
    }));
  };
  return html`<section class="panel" aria-labelledby="hooks-title"><header class="panel-head"><h2 id="hooks-title">${t("hooks.title")}</h2>
      ${!form && html`<button class="button" onClick=${() => (setMade(null), setForm({ kind: "webhook", url: "", secret: "", events: USUAL, every: 0 }))}>${t("hooks.make")}</button>`}</header>
    ${made?.secret && html`<div class="panel-body"><div class="note good"><p>${t("hooks.made")}</p><${Copyable} text=${made.secret} head=${60} name=${t("hooks.secret")} /></div></div>`}
    ${form && html`<${HookForm} form=${form} setForm=${setForm} faults=${faults} isBusy=${isBusy} onMake=${make} />`}
    <${Loaded} from=${found} rows=${1} tall=${90}>${(rows) => (rows.length ? html`<ul>${rows.map((hook) => html`<${Hook} key=${hook.id} hook=${hook} again=${found.again} />`)}</ul>` : !form && html`<${Empty}>${t("hooks.none")}</${Empty}>`)}</${Loaded}></section>`;
}

function HookForm({ form, setForm, faults, isBusy, onMake }) {
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  return html`<form class="form panel-body" onSubmit=${onMake}><div class="pair">
      <${Choice} label=${t("word.to")} value=${form.kind} onChange=${set("kind")} options=${KINDS.map((each) => [each, t(`hooks.kind.${each}`)])} />
      <${TextField} label=${t("word.address")} hint=${t(`hooks.url.${form.kind}`)} fault=${faults.url} value=${form.url} onChange=${set("url")} />
      ${WITH_SECRET.includes(form.kind) && html`<${TextField} label=${t("hooks.secret")} hint=${t(`hooks.secret.${form.kind}`)} fault=${faults.secret} value=${form.secret} onChange=${set("secret")} />`}
      <${CountField} label=${t("hooks.every")} min="0" max="86400" fault=${faults.minIntervalSeconds} value=${form.every} onChange=${set("every")} /></div>
    <fieldset class="checks"><legend>${t("hooks.events")}</legend>${EVENTS.map((name) => html`<${Check} key=${name} label=${t(`hooks.event.${name}`)} value=${form.events.includes(name)}
      onChange=${(is) => set("events")(is ? [...form.events, name] : form.events.filter((each) => each !== name))} />`)}</fieldset>
    <div class="acts-row"><button type="button" class="button" onClick=${() => setForm(null)}>${t("cancel")}</button><button class="button primary" disabled=${isBusy}>${t("hooks.make")}</button></div></form>`;
}

function Hook({ hook, again }) {
  const [isOpen, setOpen] = useState(false);
  const { isBusy, run } = useAct();
  const tryIt = () => run(() => call("POST", `/hooks/${hook.id}/test`).then(() => (toast(t("hooks.tried")), setOpen(true)), showRefusal));
  const end = () => run(() => deleteIfSure(`/hooks/${hook.id}`, { title: t("hooks.delete.title"), lines: [hook.url, t("hooks.delete.what")], act: t("word.delete") }, again));
  const [state, words] = hook.waitsForCode ? ["held", "hooks.awaits"] : hook.isFailing ? ["fault", "hooks.failing"] : hook.sentAt ? ["on", "hooks.good"] : ["off", "hooks.new"];
  return html`<li class="hook"><div class="hook-head"><div><b>${t(`hooks.kind.${hook.kind}`)}</b> <code>${hook.url}</code>
      <p class="quiet">${hook.events.map((each) => t(`hooks.event.${each}`)).join(", ")}</p></div>
    <span class=${`state ${state}`}><i aria-hidden="true" />${t(words)}</span></div>
    <p class="tags">${["waiting", "dead", "lost"].map((name) => hook[name] > 0 && html`<span key=${name} class=${`tag ${name === "waiting" ? "wait" : "fault"}`}>${t(`hooks.${name}`, { count: hook[name] })}</span>`)}</p>
    ${hook.waitsForCode && html`<${Code} hook=${hook} again=${again} />`}
    <div class="acts-row">${!hook.waitsForCode && html`<button class="button" disabled=${isBusy} onClick=${tryIt}>${t("hooks.try")}</button>`}
      <button class="button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${t("hooks.deliveries")}</button>
      <button class="button" disabled=${isBusy} onClick=${end}>${t("word.delete")}</button></div>
    ${isOpen && html`<${Deliveries} id=${hook.id} />`}</li>`;
}

function Code({ hook, again }) {
  const [code, setCode] = useState("");
  const [fault, setFault] = useState("");
  const { isBusy, run } = useAct();
  const confirm = (event) => {
    event.preventDefault();
    const wrong = (refusal) => (refusal.status === 400 ? setFault(wordsOf(refusal)) : showRefusal(refusal));
    return run(() => call("POST", `/hooks/${hook.id}/confirm`, { code }).then(() => (toast(t("hooks.confirmed")), again()), wrong));
  };
  const anew = () => run(() => call("POST", `/hooks/${hook.id}/code`).then(() => toast(t("hooks.code.sent")), showRefusal));
  return html`<form class="hook-code" onSubmit=${confirm}><${TextField} label=${t("hooks.code")} hint=${t("hooks.code.hint")} fault=${fault} value=${code}
      onChange=${(text) => (setFault(""), setCode(text))} maxlength="20" required />
    <div class="acts-row"><button class="button primary" disabled=${isBusy}>${t("hooks.confirm")}</button>
      <button type="button" class="button" disabled=${isBusy} onClick=${anew}>${t("hooks.code.anew")}</button></div></form>`;
}

function Deliveries({ id }) {
  const found = useLoad((abort) => get(`/hooks/${id}/deliveries?limit=20`, { abort }));
  const { isBusy, run } = useAct();
  const send = (row) => run(() => call("POST", `/hooks/${id}/deliveries/${row.id}/redeliver`).then(found.again, showRefusal));
  return html`<${Loaded} from=${found} rows=${2} tall=${40}>${({ deliveries }) => (deliveries.length ? html`<${Table} label=${t("hooks.deliveries")} rows=${deliveries} keyOf=${(row) => row.id} columns=${[
    { name: t("word.since"), cell: (row) => clock(secondsOf(row.createdAt), now.value) },
    { name: t("hooks.events"), cell: (row) => t(row.eventId === null ? `hooks.delivery.${row.event}` : `hooks.event.${row.event}`) },
    { name: t("hooks.title"), cell: (row) => html`<span class=${row.state === "dead" ? "bad-text" : row.state === "sent" ? "good-text" : ""}>${t(`hooks.delivery.${row.state}`, row)}${row.error && html`<br /><small class="quiet">${row.error}</small>`}</span>` },
    { name: "", isNumber: true, cell: (row) => row.state !== "waiting" && row.eventId !== null && html`<button class="button" disabled=${isBusy} onClick=${() => send(row)}>${t("hooks.again")}</button>` },
  ]} />` : html`<${Empty}>${t("hooks.deliveries.none")}</${Empty}>`)}</${Loaded}>`;
}
