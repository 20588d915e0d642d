// The head of a task: where it stands, in one line what it is to do, and the buttons that change that.
import { useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { money, percent, unitName } from "../../format.js";
import { Dialog, useAct, wordsOf } from "../../parts/states.js";
import { control, link, momentOf, restraintOf, venues } from "../../store.js";
import { TextField } from "../../parts/field.js";
import { Face } from "../../parts/face.js";
import { Icon } from "../../parts/basics.js";
import { NextCycle, State } from "../../parts/state.js";
import { brakeTask, cloneTask, confirmStart, confirmStop, deleteTask, startTask, stopTask } from "./acts.js";
import { LogEnd } from "./tabs.js";
import { faultOf, plainWords } from "../../texts/reasons.js";

const STATES = ["run", "reduce", "halt"];

export function More({ task, onClose }) {
  const [slug, setSlug] = useState("");
  const [fault, setFault] = useState("");
  const { isBusy, run } = useAct();
  const own = control.value?.tasks.find((each) => each.taskId === task.id)?.state || "run";
  const isOffline = link.value === "offline";
  // The questions that these ask take this dialog's place.
  const instead = (act) => (onClose(), act());
  const clone = (event) => {
    event.preventDefault();
    if (slug.trim() === task.slug) return setFault(t("clone.same"));
    return run(() => cloneTask(task, slug.trim()).then(onClose, (refusal) => setFault(wordsOf(refusal))));
  };
  return html`<${Dialog} title=${t("task.more.title", { name: task.slug })} onClose=${onClose}><div class="more-acts">
    <section><h3>${t("task.brake")}</h3><div class="segments" role="group" aria-label=${t("task.brake")}>${STATES.map((state) => html`<button key=${state} type="button"
      aria-pressed=${own === state} class=${own === state ? "on" : ""} disabled=${isOffline && state !== "halt"} onClick=${() => own !== state && instead(() => brakeTask(task, state, own))}>${t(`brake.${state}`)}</button>`)}</div>
      <small class="quiet">${t("task.brake.what")}</small></section>
    <form onSubmit=${clone}><h3>${t("task.clone")}</h3><${TextField} label=${t("task.clone.slug")} hint=${t("task.clone.hint")} fault=${fault} value=${slug} required onChange=${(value) => (setSlug(value), setFault(""))} />
      <button class="button" disabled=${isBusy || isOffline || !slug.trim()}><${Icon} name="plus" />${t("task.clone.do")}</button></form>
    <section><h3>${t("task.delete")}</h3><small class="quiet">${t("task.delete.what")}</small>
      <button class="button danger" disabled=${isOffline} onClick=${() => instead(() => deleteTask(task))}><${Icon} name="trash" />${t("task.delete")}</button></section></div>
    <div class="dialog-acts"><button class="button" autofocus onClick=${onClose}>${t("close")}</button></div></${Dialog}>`;
}

export function Head({ task }) {
  const [isOpen, setOpen] = useState(false);
  const { isBusy, run } = useAct();
  const [isActing, setActing] = useState(false);
  const isOffline = link.value === "offline";
  const change = async () => {
    const [isAgreed, act] = task.isRunning ? [confirmStop, stopTask] : [confirmStart, startTask];
    if (!(await isAgreed(task))) return;
    setActing(true);
    await act(task).finally(() => setActing(false));
  };
  const label = isActing ? t(task.isRunning ? "task.stopping" : "task.starting") : isBusy && !task.isRunning ? t("task.checking") : t(task.isRunning ? "word.stop" : "word.start");
  return html`<header class="page-head task-head"><a class="button back" href="#/bids" aria-label=${t("word.to_your_bids")}><${Icon} name="back" /></a>
      <div class="task-name"><${Face} venue=${task.venue} type=${task.type} slug=${task.slug} isAlone /><h1>${task.slug}</h1><div class="task-sub"><${State} task=${task} /><${NextCycle} task=${task} /><span class="quiet">${lineOf(task)}</span></div></div>
      <div class="acts"><button class=${`button ${task.isRunning ? "" : "primary"}`} data-key="s" disabled=${isBusy || isOffline} aria-busy=${isActing}
          onClick=${() => run(change)}><${Icon} name=${task.isRunning ? "stop" : "play"} />${label}</button>
        <a class="button" data-key="e" href=${`#/tasks/${task.id}/edit`}><${Icon} name="edit" />${t("word.edit")}</a>
        <button class="button" aria-haspopup="dialog" onClick=${() => setOpen(true)}><${Icon} name="more" />${t("word.more")}</button></div></header>
    <${Trouble} task=${task} /><${Held} task=${task} />
    ${isOpen && html`<${More} task=${task} onClose=${() => setOpen(false)} />`}`;
}

/** A task's config in one line. */
function lineOf({ config, venue }) {
  const parts = [t(config.hardcapSats ? "task.config" : "task.config.no_cap", { rungs: config.bidCount, range: rangeWords(config), cap: `${money(config.hardcapSats)} ${unitName()}` })];
  if (config.bidType === "trait") parts.push(t("task.trait", { type: config.traitType, value: config.traitValue }));
  const known = venues.value?.find((each) => each.name === venue);
  if (known && !known.isDefault) parts.push(t("task.venue", { name: known.title }));
  return parts.join(", ");
}

function rangeWords(config) {
  const levels = config.bidLevels?.map((level) => level.at);
  if (config.bidMode === "fixed") {
    const [low, high] = levels ? [Math.min(...levels), Math.max(...levels)] : [config.bidFixedLow, config.bidFixedHigh];
    return t("task.range.fixed", { low: money(low), high: money(high), unit: unitName() });
  }
  const [low, high] = levels ? [Math.min(...levels), Math.max(...levels)] : [config.bidPercentLow, config.bidPercentHigh];
  return t("task.range.percent", { low: percent(low).replace("%", ""), high: percent(high) });
}

/** What holds the task as a whole; what a single cycle could not do stands among its reasons. */
function Trouble({ task }) {
  const newest = momentOf(task.id).value;
  if (!task.lastError || (task.lastErrorCode !== "given_up" && task.isRunning && newest?.cycle)) return null;
  const words = plainWords(task.lastError);
  const { title, why } = task.lastErrorCode === "other" ? { title: words, why: "" } : faultOf(task);
  return html`<div class="note bad" role="alert"><b>${title}</b>${why && html`<span>${why}</span>`}${words !== title && html`<small class="quiet">${words}</small>`}
    ${task.lastErrorCode === "given_up" && html`<${LogEnd} id=${task.id} />`}</div>`;
}

function Held({ task }) {
  const { isBusy, run } = useAct();
  const { state, scope } = restraintOf(task.id);
  if (state === "run") return null;
  return html`<div class="note task-held"><span>${t("task.held", { state: t(`state.${state}`), by: t(`brake.by.${scope}`) })}</span>
    ${scope === "task" && html`<button class="button" disabled=${isBusy || link.value === "offline"} onClick=${() => run(() => brakeTask(task, "run", state))}>${t("task.brake.lift")}</button>`}</div>`;
}
