// Prices over time: from an hour on, a part of the reference or an amount.
import { html } from "../html.js";
import { numberOf } from "../amounts.js";
import { t } from "../texts.js";
import { Choice, CountField, PercentField, SatsField } from "./field.js";
import { Icon } from "./icon.js";

const MOST = 20;
const KINDS = ["percent", "sats"];

/** `value` is the config's priceSchedule. */
export function Steps({ value, fault, onChange }) {
  const change = (at, part) => onChange(value.map((step, i) => (i === at ? { ...step, ...part } : step)));
  const turn = (at, price) => onChange(value.map((step, i) => (i === at ? { afterHours: step.afterHours, ...price } : step)));
  const kindOf = (step) => ("priceSats" in step ? "sats" : "percent");
  const add = () => onChange([...value, { afterHours: numberOf(value.at(-1)?.afterHours, 0) + 24, pricePercent: 1 }]);
  return html`<ol class="sell-steps">${value.map((step, i) => html`<li key=${i}>
      <${CountField} label=${t("sell.step.after")} unit="h" min="0" value=${step.afterHours} onChange=${(afterHours) => change(i, { afterHours })} />
      <${Choice} label=${t("sell.step.kind")} value=${kindOf(step)} options=${KINDS.map((each) => [each, t(`sell.step.kind.${each}`)])}
        onChange=${(kind) => turn(i, kind === "sats" ? { priceSats: 0 } : { pricePercent: 1 })} />
      ${kindOf(step) === "sats"
        ? html`<${SatsField} key="sats" label=${t("sell.step.price")} value=${step.priceSats || null} onChange=${(priceSats) => change(i, { priceSats: priceSats ?? 0 })} />`
        : html`<${PercentField} key="percent" label=${t("sell.step.price")} value=${step.pricePercent} onChange=${(pricePercent) => change(i, { pricePercent: pricePercent ?? 0 })} />`}
      <button type="button" class="button" aria-label=${t("sell.step.remove", { hours: step.afterHours })} onClick=${() => onChange(value.filter((_, each) => each !== i))}><${Icon} name="trash" /></button></li>`)}</ol>
    ${fault && html`<p class="sell-fault" role="alert">${fault}</p>`}
    ${value.length < MOST && html`<button type="button" class="button" onClick=${add}><${Icon} name="plus" />${t("sell.step.add")}</button>`}`;
}
