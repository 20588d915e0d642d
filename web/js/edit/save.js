// The end of the form: what a save would change, what stands out, and the buttons.
import { html } from "../html.js";
import { amount } from "../format.js";
import { t } from "../texts.js";
import { frameOf, sumOf } from "./plan_frame.js";
import { changeWords } from "./words.js";

export function Save({ task, draft, base, plan, market, words, isBusy, isBarred, save }) {
  const frame = plan.plan && frameOf(plan.plan, plan.values, market);
  const sum = frame && sumOf(frame);
  const isRunning = task?.isRunning;
  const button = (starts, isFirst) => html`<button type="button" class=${`button ${isFirst ? "primary" : ""}`} disabled=${isBusy || isBarred || (task !== null && !starts && !draft.isDirty)}
    onClick=${() => save(starts)}>${t(isBusy ? "edit.busy" : starts ? (draft.isDirty || !task ? "edit.save_start" : "edit.start") : "edit.save")}</button>`;
  return html`<div class="edit-end">
    ${task && draft.isDirty && html`<div class="changes"><h3>${t("edit.changes", { count: draft.changes.length })}</h3><ul>${changeWords(draft.changes, draft.values, base).map(([name, label, before, after]) => html`<li key=${name}>
      <b>${label}</b> <s>${before}</s> → <span class="num-wrap">${after}</span></li>`)}</ul></div>`}
    ${words && html`<p class="note bad" role="alert">${words}</p>`}
    <div class="edit-bar"><p class="edit-sum" role="status">${sum
      ? html`<b>${amount(sum.total)}</b> ${t("edit.sum", { bids: sum.bids })}${isRunning && html`<span>${t("edit.live", { cancels: plan.plan.cancels.length, placed: sum.placed })}</span>`}`
      : t("edit.sum.none")}</p>
      <div class="edit-acts">${isRunning ? button(false, true) : html`${button(false, false)}${button(true, true)}`}</div></div></div>`;
}
