// The fields of a listing's price, its least price and its way over time.
import { html, t } from "../page.js";
import { numberOf } from "../amounts.js";
import { choicesOf, fieldOf } from "../config_shape.js";
import { hasNoLeast, multiplies } from "../listing_state.js";
import { Check, Choice, CountField, LinesField, PercentField, SatsField, Segments, TextField } from "./field.js";
import { Icon } from "./basics.js";
import "../texts/listing_form.js";

const MOST = 20;
const KINDS = ["percent", "sats"];

export const stepAfter = (steps) => ({ afterHours: numberOf(steps.at(-1)?.afterHours, 0) + 24, pricePercent: 1 });

/** `value` is the config's priceSchedule. */
export function Steps({ value, fault, onChange }) {
  const change = (at, part) => onChange(value.map((step, i) => (i === at ? { ...step, ...part } : step)));
  const turn = (at, price) => onChange(value.map((step, i) => (i === at ? { afterHours: step.afterHours, ...price } : step)));
  const kindOf = (step) => ("priceSats" in step ? "sats" : "percent");
  return html`<ol class="sell-steps">${value.map((step, i) => html`<li key=${i}>
      <${CountField} label=${t("sell.step.after")} unit="h" min="0" value=${step.afterHours} onChange=${(afterHours) => change(i, { afterHours })} />
      <${Choice} label=${t("sell.step.kind")} value=${kindOf(step)} options=${KINDS.map((each) => [each, t(`sell.step.kind.${each}`)])}
        onChange=${(kind) => turn(i, kind === "sats" ? { priceSats: 0 } : { pricePercent: 1 })} />
      ${kindOf(step) === "sats"
        ? html`<${SatsField} key="sats" label=${t("word.price")} value=${step.priceSats || null} onChange=${(priceSats) => change(i, { priceSats: priceSats ?? 0 })} />`
        : html`<${PercentField} key="percent" label=${t("word.price")} value=${step.pricePercent} onChange=${(pricePercent) => change(i, { pricePercent: pricePercent ?? 0 })} />`}
      <button type="button" class="button" aria-label=${t("sell.step.remove", { hours: step.afterHours })} onClick=${() => onChange(value.filter((_, each) => each !== i))}><${Icon} name="trash" /></button></li>`)}</ol>
    ${fault && html`<p class="sell-fault" role="alert">${fault}</p>`}
    ${value.length < MOST && html`<button type="button" class="button" onClick=${() => onChange([...value, stepAfter(value)])}><${Icon} name="plus" />${t("sell.step.add")}</button>`}`;
}

/** The name of a field and what it means; tags and marketplace are of the task, not of its config. */
const about = (name) => fieldOf(name, "autolist") || { label: t(`sell.${name}`), hint: t(`sell.${name}.hint`) };

/** What the server says of a field, where its words name other fields: [what is looked for, the text instead]. */
const FAULTS = [
  [/in fixed mode/, "price"],
  [/is traitFloor/, "trait"],
  [/is purchase/, "cost"],
  [/below minPriceSats/, "least"],
  [/below 1, the reference/, "below"],
  [/afterHours|after the one before/, "hours"],
  [/or null$/, "seconds"],
  [/must be a whole number( from [01] to 2100000000000000)?$|priceSats must be/, "sats"],
  [/pricePercent must be/, "percent"],
];
const said = (words) => {
  if (!words) return undefined;
  const [, name] = FAULTS.find(([pattern]) => pattern.test(words)) || [];
  return name ? t(`sell.fault.${name}`) : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`;
};

/**
 * `values` as listing_config.js has them, `set({name: value})` changes some, `faults` are words by field, `traits` the item's
 * own (null: not known), `venues` the marketplaces that take listings (null: it cannot be changed).
 */
export function ListingForm({ values, set, faults, traits = null, venues = null }) {
  const given = (name) => ({ name, label: about(name).label, fault: said(faults[name]), value: values[name], onChange: (value) => set({ [name]: value }) });
  const pace = about("loopSeconds");
  const props = (name) => ({ ...given(name), hint: about(name).hint });
  return html`<fieldset class="sell-group"><legend>${t("word.price")}</legend>
      <${Segments} label=${about("priceMode").label} value=${values.priceMode} options=${choicesOf("priceMode", "autolist")} onChange=${(priceMode) => set({ priceMode })} />
      <p class="quiet">${t(`sell.priceMode.${values.priceMode}.what`)}</p>
      ${values.priceMode === "fixed" && html`<${SatsField} key="fixed" ...${props("priceSats")} />`}
      ${values.priceMode === "undercut" && html`<${SatsField} key="undercut" ...${props("undercutSats")} />`}
      ${values.priceMode === "percent" && html`<${PercentField} key="percent" ...${props("pricePercent")} />`}
      ${multiplies(values) && html`<${Reference} given=${given} values=${values} set=${set} traits=${traits} />`}</fieldset>
    <fieldset class="sell-group"><legend>${t("sell.least")}</legend>
      <${SatsField} ...${props("minPriceSats")} />
      <div class="pair"><${SatsField} ...${props("costSats")} /><${PercentField} ...${props("minMargin")} /></div>
      ${hasNoLeast(values) && html`<p class="note">${t("sell.least.none")}</p>`}</fieldset>
    <${More} name="time" isFilled=${values.priceSchedule.length} isFaulty=${faults.priceSchedule}>
      <${Steps} value=${values.priceSchedule} fault=${said(faults.priceSchedule)} onChange=${(priceSchedule) => set({ priceSchedule })} /></${More}>
    <${More} name="more" hint=${venues ? "sell.more.hint" : "sell.more.hint.edit"} isFilled=${values.tags.length || values.ignoreAddresses.length || values.loopSeconds !== null}
      isFaulty=${faults.venue || faults.tags || faults.ignoreAddresses || faults.loopSeconds}>
      ${venues?.length > 0 && html`<${Choice} ...${given("venue")} options=${venues.map((venue) => [venue.name, venue.title])} />`}
      <${LinesField} ...${props("tags")} /><${LinesField} ...${props("ignoreAddresses")} />
      <${CountField} ...${props("loopSeconds")} min=${pace.least} max=${pace.most} unit=${pace.unit} placeholder=${pace.usual} /></${More}>
    <${Check} ...${props("dryRun")} />`;
}

/** What the price is a multiple of. A trait is one of the item's own, or written. */
function Reference({ given, values, set, traits }) {
  const own = traits?.map(({ type, value }) => [JSON.stringify([type, value]), t("sell.trait", { type, value })]) || [];
  const chosen = JSON.stringify([values.traitType, values.traitValue]);
  const isOwn = own.some(([each]) => each === chosen);
  return html`<${Choice} ...${given("reference")} hint=${t(`sell.reference.${values.reference}.what`)} options=${choicesOf("reference", "autolist")} />
    ${values.reference === "traitFloor" && html`${own.length > 0 && html`<${Choice} label=${t("sell.trait.own")} value=${isOwn ? chosen : ""}
        options=${[["", t("sell.trait.other")], ...own]} onChange=${(text) => text && set({ traitType: JSON.parse(text)[0], traitValue: JSON.parse(text)[1] })} />`}
      <div class="pair"><${TextField} ...${given("traitType")} /><${TextField} ...${given("traitValue")} /></div>`}
    ${(values.pricePercent < 1 || values.allowBelowReference || values.priceSchedule.some((step) => step.pricePercent < 1)) &&
      html`<${Check} ...${given("allowBelowReference")} hint=${about("allowBelowReference").hint} />`}`;
}

const More = ({ name, hint = `sell.${name}.hint`, isFilled, isFaulty, children }) => html`<details class="sell-more" open=${Boolean(isFilled || isFaulty) || undefined}>
  <summary>${t(`sell.${name}`)}<small>${t(hint)}</small></summary><div class="sell-group">${children}</div></details>`;
