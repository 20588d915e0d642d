// The state of a task of either kind: a shape, a colour and a word, each enough alone.
import { html, t } from "../page.js";
import { span } from "../format.js";
import { closingOf, now, restraintOf } from "../store.js";

/** "fault", "off", "held", "dry" or "on", and its word. */
export function stateOf(task, kind = "tasks") {
  const left = kind === "tasks" ? closingOf(task.id) : 0;
  if (left) return ["held", t(task.isRunning ? "state.halting" : "state.stopping", { bids: left })];
  if (task.lastErrorCode === "given_up") return ["fault", t("state.dead")];
  if (task.lastError) return ["fault", t("state.fault")];
  if (!task.isRunning) return ["off", t("state.off")];
  const { state } = restraintOf(task.id, kind);
  if (state !== "run") return ["held", t(`state.${state}`)];
  return task.config.dryRun ? ["dry", t("state.dry")] : ["on", t("state.on")];
}

export function State({ task, kind }) {
  const [code, words] = stateOf(task, kind);
  return html`<span class=${`state ${code}`}><i aria-hidden="true" />${words}</span>`;
}

/** A ring that fills until the next cycle is due; without one for a while it says so. */
export function NextCycle({ task }) {
  if (!task.isRunning || !task.lastCycle) return null;
  const loop = task.config.loopSeconds || 30;
  const past = Math.max(0, now.value - task.lastCycle.time);
  // Without a wish of its owner a task looks every 30 s, and less often while nothing moves.
  const isLate = past > 3 * (task.config.loopSeconds || 120);
  const words = isLate ? t("state.late", { age: span(past) }) : t("state.next", { left: span(loop - past) });
  return html`<span class="next-cycle" title=${words}><svg viewBox="0 0 20 20" role="img" aria-label=${words}><circle cx="10" cy="10" r="8" />
    <circle class="past" cx="10" cy="10" r="8" pathLength="1" style=${{ strokeDashoffset: 1 - Math.min(1, past / loop) }} /></svg>
    ${isLate && html`<em>${words}</em>`}</span>`;
}
