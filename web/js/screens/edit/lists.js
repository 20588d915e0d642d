// Fields that are more than one value: switched on first, then each part with a field of its own.
import { html } from "../../html.js";
import { numberOf } from "../../amounts.js";
import { Check, CountField, DecimalField, PercentField, SatsField, TextField } from "../../parts/field.js";
import { Icon } from "../../parts/icon.js";
import { t } from "../../texts.js";

/** A fieldset that is there only when it is switched on; `usual` is what it begins with. */
export function Switched({ name, label, hint, mark, fault, value, usual, isOn = value !== null, off = null, onChange, children }) {
  return html`<fieldset class="switched"><legend class="sr">${label}</legend>
    <${Check} name=${name} label=${label} hint=${hint} mark=${mark} fault=${fault} value=${isOn} onChange=${(on) => onChange(on ? usual : off)} />
    ${isOn && html`<div class="switched-body">${children}</div>`}</fieldset>`;
}

/** Rows of parts, with buttons to add one and to take one away. */
function Rows({ rows, onChange, another, draw }) {
  const put = (i, change) => onChange(rows.map((row, at) => (at === i ? { ...row, ...change } : row)));
  return html`${rows.map((row, i) => html`<div class="row-of-parts" key=${i}>${draw(row, (change) => put(i, change), i)}
      <button type="button" class="plain" aria-label=${t("edit.row.remove", { number: i + 1 })} onClick=${() => onChange(rows.filter((_, at) => at !== i))}><${Icon} name="trash" /></button></div>`)}
    <button type="button" class="button" onClick=${() => onChange([...rows, another(rows)])}><${Icon} name="plus" />${t("edit.row.add")}</button>`;
}

/** Prices of one's own: {at, count} each; in percent mode a share of the floor, in fixed mode sats. */
export function Levels(props) {
  const { value, values, onChange } = props;
  const isFixed = values.bidMode === "fixed";
  const top = isFixed ? values.bidFixedHigh : values.bidPercentHigh;
  const below = (rows) => {
    const last = numberOf(rows.length ? rows.at(-1).at : top, isFixed ? 1 : 0.01);
    return { at: isFixed ? Math.max(1, Math.round(last * 0.95)) : Math.max(0.01, Math.round(last * 100 - 5) / 100), count: 1 };
  };
  return html`<${Switched} ...${props} usual=${[{ at: top, count: values.bidCount || 1 }]}>
    <${Rows} rows=${value || []} onChange=${(rows) => onChange(rows.length ? rows : null)} another=${below} draw=${(row, put, i) => html`
      <${isFixed ? SatsField : PercentField} label=${t("edit.level.at", { number: i + 1 })} value=${row.at} onChange=${(at) => put({ at })} />
      <${CountField} label=${t("edit.level.count")} min="1" max="20" value=${row.count} onChange=${(count) => put({ count })} />`} /></${Switched}>`;
}

/** Bids only while the floor is between two prices, of an item or a token. */
export function Between(props) {
  const { value, values, onChange } = props;
  const Price = values.type === "rune" ? DecimalField : SatsField;
  const part = (i) => (price) => onChange(value.map((each, at) => (at === i ? price : each)));
  return html`<${Switched} ...${props} usual=${[1, 1_000_000_000]}><div class="pair">
    <${Price} label=${t("edit.between.low")} value=${value?.[0]} onChange=${part(0)} /><${Price} label=${t("edit.between.high")} value=${value?.[1]} onChange=${part(1)} /></div></${Switched}>`;
}

/** A pause when the floor falls. */
export function Drop(props) {
  const { value, onChange } = props;
  const put = (change) => onChange({ ...value, ...change });
  return html`<${Switched} ...${props} usual=${{ percent: 0.1, windowMinutes: 30, forMinutes: 60 }}><div class="triple">
    <${PercentField} label=${t("edit.drop.percent")} value=${value?.percent} onChange=${(percent) => put({ percent })} />
    <${CountField} label=${t("edit.drop.window")} min="1" unit=${t("edit.unit.minutes")} value=${value?.windowMinutes} onChange=${(windowMinutes) => put({ windowMinutes })} />
    <${CountField} label=${t("edit.drop.for")} min="1" unit=${t("edit.unit.minutes")} value=${value?.forMinutes} onChange=${(forMinutes) => put({ forMinutes })} /></div></${Switched}>`;
}

const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** The hours of a day at which there are bids. */
export function Hours(props) {
  const { value, onChange } = props;
  const put = (change) => onChange({ ...value, ...change });
  return html`<${Switched} ...${props} usual=${{ tz: zone(), from: "08:00", to: "22:00" }}><div class="triple">
    <${TextField} label=${t("edit.hours.from")} type="time" value=${value?.from} onChange=${(from) => put({ from })} />
    <${TextField} label=${t("edit.hours.to")} type="time" value=${value?.to} onChange=${(to) => put({ to })} />
    <${TextField} label=${t("edit.hours.tz")} value=${value?.tz} onChange=${(tz) => put({ tz })} /></div></${Switched}>`;
}

/** Prices over time of an auto-list task: each from its hour on, as a multiple or in sats. */
export function Schedule(props) {
  const { value, onChange } = props;
  const later = (rows) => ({ afterHours: numberOf(rows.at(-1)?.afterHours, 0) + 24, pricePercent: 1 });
  return html`<${Switched} ...${props} isOn=${value.length > 0} off=${[]} usual=${[later([])]}>
    <${Rows} rows=${value} onChange=${onChange} another=${later} draw=${(row, put) => html`
      <${CountField} label=${t("edit.step.after")} min="0" unit=${t("edit.unit.hours")} value=${row.afterHours} onChange=${(afterHours) => put({ afterHours })} />
      ${row.priceSats === undefined
        ? html`<${PercentField} label=${t("edit.step.percent")} value=${row.pricePercent} onChange=${(pricePercent) => put({ pricePercent })} />`
        : html`<${SatsField} label=${t("edit.step.sats")} value=${row.priceSats} onChange=${(priceSats) => put({ priceSats })} />`}
      <button type="button" class="chip" onClick=${() => put(row.priceSats === undefined ? { pricePercent: undefined, priceSats: 0 } : { priceSats: undefined, pricePercent: 1 })}>
        ${t(row.priceSats === undefined ? "edit.step.in_sats" : "edit.step.in_percent")}</button>`} /></${Switched}>`;
}
