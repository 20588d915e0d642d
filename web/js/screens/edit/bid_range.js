// From the lowest to the highest bid: as shares of the floor, or in sats that stay.
import { html } from "../../html.js";
import { numberOf } from "../../amounts.js";
import { choicesOf, labelOf } from "../../config_shape.js";
import { amount, percent } from "../../format.js";
import { PercentField, SatsField, Segments } from "../../parts/field.js";
import { Range } from "../../parts/range.js";
import { t } from "../../texts.js";
import { valueWords } from "./words.js";

const ENDS = { percent: ["bidPercentLow", "bidPercentHigh"], fixed: ["bidFixedLow", "bidFixedHigh"] };

/** `reference` is the price of an item or token that the range hangs on, or null. */
export function BidRange({ form, reference }) {
  const { values, set, faults, base } = form;
  const isFixed = values.bidMode === "fixed";
  const [low, high] = ENDS[values.bidMode];
  const isInSats = values.type === "rune" && values.quantityMode === "sats";
  const per = values.type === "rune" && !isInSats ? numberOf(values.quantity) || 1 : 1;
  const whole = reference === null || isInSats ? null : Number(reference) * per;
  const inWords = (value) => {
    if (numberOf(value) === null || whole === null) return isFixed ? "" : t("edit.range.share");
    return isFixed ? t("edit.range.of", { share: percent(value / whole) }) : t("edit.range.is", { amount: amount(Math.round(whole * value)) });
  };
  const most = isFixed ? Math.max(numberOf(values[high], 0), Math.round((whole || numberOf(values[high]) || 1) * 1.1)) : Math.max(1.1, numberOf(values[high], 0));
  const step = isFixed ? Math.max(1, 10 ** Math.floor(Math.log10(most / 200))) : 0.01;
  const Price = isFixed ? SatsField : PercentField;
  const field = (name, i) => html`<${Price} name=${name} label=${labelOf(name)} hint=${inWords(values[name])} fault=${faults[name]} value=${values[name]} onChange=${(value) => set({ [name]: value })}
    mark=${base && base[name] !== values[name] ? t("edit.was", { value: valueWords(name, base[name], base) }) : undefined} key=${name + i} />`;
  const round = (value) => (isFixed ? Math.round(value) : Math.round(value * 100) / 100);
  return html`<${Segments} label=${labelOf("bidMode")} value=${values.bidMode} options=${choicesOf("bidMode")}
      onChange=${(bidMode) => set(modeOf(bidMode, values, whole))} />
    <${Range} low=${numberOf(values[low], 0)} high=${numberOf(values[high], 0)} min=${0} max=${most} step=${step} names=${[labelOf(low), labelOf(high)]}
      say=${(value) => `${valueWords(low, value, values)} ${inWords(value)}`} onChange=${(from, to) => set({ [low]: round(from), [high]: round(to) })} />
    <div class="pair keep">${field(low, 0)}${field(high, 1)}</div>`;
}

/** The other way to say a range begins with the same prices, where the floor is known. */
function modeOf(bidMode, values, whole) {
  if (bidMode === values.bidMode || !whole) return { bidMode };
  const fixed = (part) => (numberOf(part) === null ? null : Math.round(whole * part));
  if (bidMode === "fixed") return { bidMode, bidLevels: null, quantityMode: "quantity", bidFixedLow: fixed(values.bidPercentLow), bidFixedHigh: fixed(values.bidPercentHigh) };
  const share = (sats) => (numberOf(sats) === null ? null : Math.max(0.01, Math.round((100 * sats) / whole) / 100));
  return { bidMode, bidLevels: null, bidPercentLow: share(values.bidFixedLow), bidPercentHigh: share(values.bidFixedHigh) };
}
