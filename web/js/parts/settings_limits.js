// What bounds all tasks: one's own ceilings, and budgets that several tasks share.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { call, get } from "../api.js";
import { Dialog, Empty, Loaded, deleteIfSure, toast, useAct, useLoad, wordsOf } from "./states.js";
import { amount, count } from "../format.js";
import { me, tasks } from "../store.js";
import { WALLETS } from "../wallets.js";
import { CountField, SatsField, TextField, useFaults } from "./field.js";
import { Table, isFaulty } from "./basics.js";

const asked = signal(null);

/** Asks for consent to `change`; resolves to {approvalId, approvalSignature}, or null. Throws a Refusal. */
export async function approve(change) {
  const challenge = await call("POST", "/auth/approval", change);
  const { address } = await get("/auth/play");
  const hasPlayWallet = address !== null && address === me.value.address;
  const signature = await new Promise((resolve) => {
    asked.value = { challenge, hasPlayWallet, resolve };
  });
  asked.value = null;
  return signature && { approvalId: challenge.challengeId, approvalSignature: signature };
}

/** Has a wallet sign with the address of the sign-in, be it the one for items or the one for coins. */
async function signedBy(wallet, message) {
  const it = wallet.find();
  for (const purpose of wallet.hasPurposes ? ["ordinals", "payment"] : ["ordinals"]) {
    const account = await wallet.connect(it, purpose);
    if (account.address === me.value.address) return wallet.sign(it, account, message);
  }
  return null;
}

export function Approvals() {
  const [words, setWords] = useState("");
  const { isBusy, run } = useAct();
  const question = asked.value;
  useEffect(() => setWords(""), [question]);
  if (!question) return null;
  const { challenge, hasPlayWallet, resolve } = question;
  const sign = (how) => run(async () => {
    try {
      const signature = await how();
      if (signature) resolve(signature);
      else setWords(t("approve.other"));
    } catch (failure) {
      setWords(failure.status === undefined ? t("approve.closed") : wordsOf(failure));
    }
  });
  const play = async () => (await call("POST", "/auth/play", { challengeId: challenge.challengeId })).signature;
  const there = WALLETS.filter((wallet) => wallet.find());
  return html`<${Dialog} title=${t("ceilings.approve")} onClose=${() => resolve(null)}><p>${t("ceilings.approve.text")}</p><pre class="to-sign" tabindex="0">${challenge.message}</pre>
    ${words && html`<div class="note bad" role="alert"><p>${words}</p></div>`}
    ${!there.length && !hasPlayWallet && html`<p>${t("ceilings.approve.none")}</p>`}
    <div class="dialog-acts"><button class="button" autofocus onClick=${() => resolve(null)}>${t("cancel")}</button>
      ${hasPlayWallet && html`<button class="button primary" disabled=${isBusy} onClick=${() => sign(play)}>${t("approve.play")}</button>`}
      ${there.map((wallet) => html`<button key=${wallet.id} class="button primary" disabled=${isBusy} onClick=${() => sign(() => signedBy(wallet, challenge.message))}>${wallet.name}</button>`)}</div></${Dialog}>`;
}

export default function Limits() {
  const found = useLoad((abort) => get("/ceilings", { abort }));
  return html`<section class="panel" aria-labelledby="ceilings-title"><header class="panel-head"><h2 id="ceilings-title">${t("ceilings.title")}</h2></header>
      <${Loaded} from=${found} rows=${1} tall=${140}>${(ceilings) => html`<${Ceilings} key=${JSON.stringify(ceilings)} ceilings=${ceilings} set=${found.set} />`}</${Loaded}></section>
    <${Budgets} /><${Approvals} />`;
}

const isLooser = (wanted, former) => former !== null && (wanted === null || wanted > former);

function Ceilings({ ceilings, set }) {
  const [wanted, setWanted] = useState({ maxExposure: ceilings.maxExposure, maxHardcap: ceilings.maxHardcap });
  const { isBusy, run } = useAct();
  const [faults, send] = useFaults(["maxExposure", "maxHardcap"]);
  const isRaise = ["maxExposure", "maxHardcap"].some((name) => isLooser(wanted[name], ceilings[name]));
  const save = (event) => {
    event.preventDefault();
    if (isFaulty(event.target)) return undefined;
    return run(() => send(async () => {
      const consent = isRaise ? await approve(wanted) : {};
      if (!consent) return;
      set(await call("PUT", "/ceilings", { ...wanted, ...consent }));
      toast(t("word.saved"));
    }));
  };
  return html`<form class="form panel-body" onSubmit=${save}><p class="quiet">${t("ceilings.what")}</p><div class="pair">
      <${SatsField} label=${t("ceilings.exposure")} hint=${t("ceilings.exposure.hint", { plan: amount(ceilings.planMaxExposure) })} fault=${faults.maxExposure} value=${wanted.maxExposure} onChange=${(maxExposure) => setWanted({ ...wanted, maxExposure })} />
      <${SatsField} label=${t("ceilings.hardcap")} hint=${t("ceilings.hardcap.hint")} fault=${faults.maxHardcap} value=${wanted.maxHardcap} onChange=${(maxHardcap) => setWanted({ ...wanted, maxHardcap })} /></div>
    <div class="acts-row"><button class="button primary" disabled=${isBusy}>${t(isRaise ? "ceilings.approve" : "word.save")}</button></div></form>`;
}

const NEW = { name: "", maxOpenSats: null, maxFills: null, spendCapSats: null, spendCapPerDaySats: null };
const BOUNDS = [["maxOpenSats", "open"], ["spendCapSats", "spend"], ["spendCapPerDaySats", "day"]];

function Budgets() {
  const found = useLoad((abort) => get("/budgets", { abort }));
  const [form, setForm] = useState(null);
  const { isBusy, run } = useAct();
  const [faults, send] = useFaults(Object.keys(NEW));
  const make = (event) => {
    event.preventDefault();
    if (isFaulty(event.target)) return undefined;
    const body = Object.fromEntries(Object.entries(form).map(([name, value]) => [name, value ?? 0]));
    return run(() => send(() => call("POST", "/budgets", body).then(() => (setForm(null), found.again()))));
  };
  const end = (row) => run(() => deleteIfSure(`/budgets/${row.id}`, { title: t("budgets.delete.title", row), lines: [t("budgets.delete.what")], act: t("word.delete") }, found.again));
  const used = (is, most) => (most ? t("word.used_of", { used: amount(is), most: amount(most) }) : t("word.no_limit"));
  const named = (id) => tasks.value?.find((each) => each.id === id)?.slug || `#${id}`;
  return html`<section class="panel" aria-labelledby="budgets-title"><header class="panel-head"><h2 id="budgets-title">${t("budgets.title")}</h2>
      ${!form && html`<button class="button" onClick=${() => setForm(NEW)}>${t("budgets.make")}</button>`}</header>
    ${form && html`<form class="form panel-body" onSubmit=${make}><div class="pair"><${TextField} label=${t("word.name")} fault=${faults.name} value=${form.name} onChange=${(name) => setForm({ ...form, name })} />
      ${BOUNDS.map(([field, name]) => html`<${SatsField} key=${field} label=${t(`budgets.${name}`)} hint=${t("budgets.empty")} fault=${faults[field]} value=${form[field]} onChange=${(value) => setForm({ ...form, [field]: value })} />`)}
      <${CountField} label=${t("budgets.fills")} hint=${t("budgets.empty")} min="0" fault=${faults.maxFills} value=${form.maxFills} onChange=${(maxFills) => setForm({ ...form, maxFills })} /></div>
      <div class="acts-row"><button type="button" class="button" onClick=${() => setForm(null)}>${t("cancel")}</button><button class="button primary" disabled=${isBusy}>${t("budgets.make")}</button></div></form>`}
    <${Loaded} from=${found} rows=${1} tall=${44}>${(rows) => (rows.length ? html`<${Table} label=${t("budgets.title")} rows=${rows} keyOf=${(row) => row.id} columns=${[
      { name: t("word.name"), cell: (row) => html`<b>${row.name}</b>` },
      { name: t("word.tasks"), cell: (row) => row.taskIds.map(named).join(", ") || "–" },
      { name: t("budgets.open"), isNumber: true, cell: (row) => used(row.openSats, row.maxOpenSats) },
      { name: t("budgets.spend"), isNumber: true, cell: (row) => used(row.spentSats, row.spendCapSats) },
      { name: t("budgets.day"), isNumber: true, cell: (row) => used(row.spentTodaySats, row.spendCapPerDaySats) },
      { name: t("budgets.fills"), isNumber: true, cell: (row) => (row.maxFills ? t("word.used_of", { used: count(row.fills), most: count(row.maxFills) }) : t("word.no_limit")) },
      { name: "", isNumber: true, cell: (row) => html`<button class="button" disabled=${isBusy} aria-label=${t("budgets.delete.title", row)} onClick=${() => end(row)}>${t("word.delete")}</button>` },
    ]} />` : !form && html`<${Empty}>${t("budgets.none")}</${Empty}>`)}</${Loaded}></section>`;
}
