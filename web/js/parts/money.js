// Amounts: in the chosen unit, in even columns.
import { html } from "../html.js";
import { NONE, amount, money, unit, unitName } from "../format.js";

/** An amount; `named` says its unit, which stands once for each card or column. */
export function Money({ value, named = false }) {
  const text = money(value);
  if (unit.value !== "btc" || text === NONE) return html`<span class="num">${text}${named && html` <u>${unitName()}</u>`}</span>`;
  // Eight decimals, so that a column lines up; what says nothing is dim.
  const [, digits, zeros] = /^(.*?)(\.?0*)$/.exec(text);
  return html`<span class="num">${digits}<span class="dim">${zeros}</span>${named && html` <u>BTC</u>`}</span>`;
}

export const UnitSwitch = ({ label }) => html`<button class="chip" aria-label=${label}
  onClick=${() => (unit.value = unit.value === "btc" ? "sats" : "btc")}>${unitName()}</button>`;

export { amount };
