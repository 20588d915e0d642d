// The head of a task: where it stands, in one line what it is to do, and the buttons that change that.
import { useState } from "preact/hooks";
import { html } from "../../html.js";
import { money, percent, unitName } from "../../format.js";
import { useAct } from "../../load.js";
import { link, momentOf, restraintOf, venues } from "../../store.js";
import { t } from "../../texts.js";
import { faultOf, plainWords } from "../../texts/reasons.js";
import { Icon } from "../../parts/icon.js";
import { NextCycle, State } from "../../parts/state.js";
import { brakeTask, confirmStart, confirmStop, startTask, stopTask } from "./acts.js";
import { LogEnd } from "./log.js";
import { More } from "./more.js";

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
  const label = isActing ? t(task.isRunning ? "task.stopping" : "task.starting") : isBusy && !task.isRunning ? t("task.checking") : t(task.isRunning ? "task.stop" : "task.start");
  return html`<header class="page-head task-head"><a class="button back" href="#/bids" aria-label=${t("task.back")}><${Icon} name="back" /></a>
      <div class="task-name"><h1>${task.slug}</h1><div class="task-sub"><${State} task=${task} /><${NextCycle} task=${task} /><span class="quiet">${lineOf(task)}</span></div></div>
      <div class="acts"><button class=${`button ${task.isRunning ? "" : "primary"}`} data-key="s" disabled=${isBusy || isOffline} aria-busy=${isActing}
          onClick=${() => run(change)}><${Icon} name=${task.isRunning ? "stop" : "play"} />${label}</button>
        <a class="button" data-key="e" href=${`#/tasks/${task.id}/edit`}><${Icon} name="edit" />${t("task.edit")}</a>
        <button class="button" aria-haspopup="dialog" onClick=${() => setOpen(true)}><${Icon} name="more" />${t("task.more")}</button></div></header>
    <${Trouble} task=${task} /><${Held} task=${task} />
    ${isOpen && html`<${More} task=${task} onClose=${() => setOpen(false)} />`}`;
}

/** A task's config in one line. */
export function lineOf({ config, venue }) {
  const parts = [t(config.hardcapSats ? "task.config" : "task.config.no_cap", { rungs: config.bidCount, range: rangeWords(config), cap: `${money(config.hardcapSats)} ${unitName()}` })];
  if (config.bidType === "trait") parts.push(t("task.trait", { type: config.traitType, value: config.traitValue }));
  const known = venues.value?.find((each) => each.name === venue);
  if (known && !known.isDefault) parts.push(t("task.venue", { name: known.title }));
  return parts.join(", ");
}

export function rangeWords(config) {
  const levels = config.bidLevels?.map((level) => level.at);
  if (config.bidMode === "fixed") {
    const [low, high] = levels ? [Math.min(...levels), Math.max(...levels)] : [config.bidFixedLow, config.bidFixedHigh];
    return t("task.range.fixed", { low: money(low), high: money(high), unit: unitName() });
  }
  const [low, high] = levels ? [Math.min(...levels), Math.max(...levels)] : [config.bidPercentLow, config.bidPercentHigh];
  return t("task.range.percent", { low: percent(low).replace(" %", ""), high: percent(high) });
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
