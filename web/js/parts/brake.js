// Run, reduce or halt all of one's tasks: on every screen, by mouse and by arrows.
import { useRef } from "preact/hooks";
import { html, t } from "../page.js";
import { amount } from "../format.js";
import { confirmed, toast, useAct, wordsOf } from "./states.js";
import { closing, control, link, me, readProfile, setControl, tasks } from "../store.js";

const STATES = ["run", "reduce", "halt"];
const LONGEST_LOOK_MS = 1000; // who wants to halt does not wait for a number

/** What halting takes off the market: as the ledger has it now, else as it was last known. */
async function atStake() {
  await Promise.race([readProfile().catch(() => {}), new Promise((resolve) => setTimeout(resolve, LONGEST_LOOK_MS))]);
  const { stats } = me.value || {};
  return stats ? t("brake.halt.what", { bids: stats.openBids, total: amount(stats.exposure) }) : t("brake.halt.unknown");
}

/** Asks first where rungs would stay without a bid, and says until when. */
export async function mayRun(them, title) {
  const waits = await import("../run_room.js").then(({ roomWaits }) => roomWaits(them)).catch(() => []); // no look bars Run
  return !waits.length || confirmed({ title, lines: [...waits, t("run.why")], act: t("brake.run"), isDanger: false });
}

/** Asks first where bids would go; opened by the key, too. */
export async function brakeTo(to, before = control.value?.user.state || "run") {
  if (to === before) return;
  if (to === "halt" && !(await confirmed({ title: t("brake.halt.title"), lines: [await atStake(), t("brake.halt.then")], act: t("brake.halt.do") }))) return;
  if (to === "run" && !(await mayRun(tasks.value || [], t("run.title.all")))) return;
  try {
    await setControl({ scope: "user", state: to });
    const bids = (tasks.value || []).filter((task) => task.isRunning && !task.config.dryRun).reduce((sum, task) => sum + task.config.bidCount, 0);
    toast(t(`brake.is.${to}`, { bids }), { undo: () => brakeTo(before, to) });
  } catch (refusal) {
    const isInForce = refusal.body?.error === "In force, not yet stored";
    toast(isInForce ? `${t("brake.unstored")} ${refusal.body.message}` : `${t("brake.refused")} ${wordsOf(refusal)}`, { isBad: true });
  }
}

export function Brake() {
  const box = useRef(null);
  const { isBusy, run } = useAct();
  const own = control.value?.user.state || "run";
  const inForce = control.value?.effective || { state: "run", scope: "global" };
  const isOffline = link.value === "offline";
  const onKey = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...box.current.querySelectorAll("[role=radio]:not(:disabled)")];
    buttons.at((buttons.indexOf(document.activeElement) + step) % buttons.length)?.focus();
  };
  const first = isOffline ? "halt" : own; // the one that Tab leads to
  return html`<div class="brake-box"><div class="brake" role="radiogroup" aria-label=${t("brake")} ref=${box} onKeyDown=${onKey}>
    ${STATES.map((state) => html`<button key=${state} role="radio" aria-checked=${own === state} tabindex=${first === state ? 0 : -1}
      class=${`${state} ${own === state ? "on" : ""}`} disabled=${isBusy || (isOffline && state !== "halt")} onClick=${() => run(() => brakeTo(state))}>
      <i aria-hidden="true" />${t(`brake.${state}`)}</button>`)}</div>
    <span class="brake-by" role="status">${closing.value && t("brake.closing", closing.value)}</span>
    ${inForce.scope === "global" && inForce.state !== "run" && html`<span class="brake-by">${t(`brake.${inForce.state}`)}: ${t("brake.by.global")}</span>`}</div>`;
}
