// A word at the foot of the page that goes by itself; for six seconds it may offer a way back.
import { signal } from "@preact/signals";
import { html } from "../html.js";
import { t } from "../texts.js";

const shown = signal(null);
const STAYS_MS = 6000;
let timer = 0;

/** Says something; `undo` is what the button does, if there is one. */
export function toast(words, { undo, isBad = false } = {}) {
  clearTimeout(timer);
  shown.value = { words, undo, isBad };
  timer = setTimeout(() => (shown.value = null), isBad ? 2 * STAYS_MS : STAYS_MS);
}

export function Toast() {
  const said = shown.value;
  const end = () => (shown.value = null);
  return html`<div class="toasts" role="status" aria-live="polite">${said && html`<div class=${`toast ${said.isBad ? "bad" : ""}`}>
    <span>${said.words}</span>
    ${said.undo && html`<button class="button" onClick=${() => (end(), said.undo())}>${t("undo")}</button>`}
    <button class="plain" aria-label=${t("close")} onClick=${end}>×</button></div>`}</div>`;
}
