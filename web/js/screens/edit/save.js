// The end of the form: what a save would change, and the buttons.
import { html } from "../../html.js";
import { amount } from "../../format.js";
import { t } from "../../texts.js";
import { frameOf, sumOf } from "./plan_frame.js";
import { changeWords } from "./words.js";

/** `words`: why the last save was refused, or null; `save(starts)` saves, and starts the task where it shall. */
export function Save({ task, draft, base, plan, market, words, faulty, isBusy, isBarred, save }) {
  const sum = plan.plan && sumOf(frameOf(plan.plan, plan.values, market));
  const isRunning = task?.isRunning;
  const isChanged = task && draft.isDirty;
  const button = (starts, isFirst) => html`<button type="button" class=${`button ${isFirst ? "primary" : ""}`} onClick=${() => save(starts)}
    disabled=${isBusy || isBarred || (task !== null && !starts && !draft.isDirty)}>${t(isBusy ? "edit.busy" : starts ? (draft.isDirty || !task ? "edit.save_start" : "edit.start") : "edit.save")}</button>`;
  return html`${(isChanged || words) && html`<div class="edit-end">
      ${isChanged && html`<div class="changes"><h2>${t("edit.changes", { count: draft.changes.length })}</h2><ul>${changeWords(draft.changes, draft.values, base).map(([name, label, before, after]) => html`<li key=${name}>
        <b>${label}</b> <s>${before}</s> → ${after}</li>`)}</ul></div>`}
      ${words && html`<p class="note bad" role="alert">${words}</p>`}</div>`}
    <div class="edit-bar"><p class="edit-sum" role="status">${faulty ? t("edit.sum.faulty", { count: faulty }) : sum
      ? html`<b>${amount(sum.total)}</b> ${t("edit.sum", { bids: sum.bids })}${isRunning && html`<span>${t("edit.live", { cancels: plan.plan.cancels.length, placed: sum.placed })}</span>`}`
      : t("edit.sum.none")}</p>
      <div class="edit-acts">${isRunning ? button(false, true) : html`${button(false, false)}${button(true, true)}`}</div></div>`;
}
