// Draws a field by its kind.
import { html, t } from "../../page.js";
import { numberOf } from "../../amounts.js";
import { get } from "../../api.js";
import { useLoad } from "../../parts/states.js";
import { LISTING_GROUPS, choicesOf, defaultsOf, groupOf, matters } from "../../config_shape.js";
import { amount } from "../../format.js";
import { Check, Choice, CountField, DecimalField, LinesField, PercentField, SatsField, TextField } from "../../parts/field.js";
import { Icon } from "../../parts/basics.js";
import { Steps, stepAfter } from "../../parts/listing_form.js";
import { TRAITS, TraitField } from "./traits.js";
import { valueWords } from "./words.js";

/** A fieldset that is there only when it is switched on; `usual` is what it begins with. */
function Switched({ name, label, hint, mark, fault, value, usual, isOn = value !== null, off = null, onChange, children }) {
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
      <${CountField} label=${t("word.bids")} min="1" max="20" value=${row.count} onChange=${(count) => put({ count })} />`} /></${Switched}>`;
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
function Drop(props) {
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
    <${TextField} label=${t("word.from")} type="time" value=${value?.from} onChange=${(from) => put({ from })} />
    <${TextField} label=${t("word.to")} type="time" value=${value?.to} onChange=${(to) => put({ to })} />
    <${TextField} label=${t("edit.hours.tz")} value=${value?.tz} onChange=${(tz) => put({ tz })} /></div></${Switched}>`;
}

/** Prices over time of an auto-list task. */
const Schedule = (props) => html`<${Switched} ...${props} isOn=${props.value.length > 0} off=${[]} usual=${[stepAfter([])]}>
  <${Steps} value=${props.value} onChange=${props.onChange} /></${Switched}>`;

/** The server's words about the rule, split by the auto-list task's fields: "autolist.priceSats: …; autolist.…". */
function listingFaults(words = "") {
  const found = [...words.matchAll(/autolist\.(\w+):? ([^;]*)/g)];
  return Object.fromEntries(found.map(([, name, what]) => [name, what.charAt(0).toUpperCase() + what.slice(1)]));
}

/** The auto-list task that is made of each fill. */
export function OnFill({ Input, ...props }) {
  const { value, onChange, fault } = props;
  const put = (change) => onChange({ ...value, ...change });
  const listing = { ...defaultsOf("autolist"), ...value?.autolist };
  const faults = listingFaults(fault);
  const form = { values: listing, faults, base: null, set: (change) => put({ autolist: { ...value.autolist, ...change } }) };
  return html`<${Switched} ...${props} fault=${Object.keys(faults).length ? undefined : fault} usual=${{ autolist: { pricePercent: 1.05, minMargin: 0.1 }, start: false, maxOpen: 10 }}>
    ${LISTING_GROUPS.flatMap((group) => groupOf(group, "autolist")).filter((field) => field.name !== "costSats").map((field) => html`<${Input} key=${field.name} field=${field} form=${form} prefix="onFill." />`)}
    <${CountField} label=${t("edit.onFill.maxOpen")} hint=${t("edit.onFill.maxOpen.hint")} min="1" value=${value?.maxOpen} onChange=${(maxOpen) => put({ maxOpen })} />
    <${Check} label=${t("edit.onFill.start")} hint=${t("edit.onFill.start.hint")} value=${value?.start} onChange=${(start) => put({ start })} /></${Switched}>`;
}

/** A budget that several tasks share. */
export function Budget({ value, onChange, ...about }) {
  const budgets = useLoad((abort) => get("/budgets", { abort }));
  const known = budgets.value || [];
  const gone = value !== null && !known.some((each) => each.id === value) ? [[String(value), t("edit.budget.other", { id: value })]] : [];
  const options = [["", t("edit.budget.none")], ...gone, ...known.map((each) => [String(each.id), t("edit.budget.one", { name: each.name, free: each.freeSats === null ? null : amount(each.freeSats) })])];
  return html`<${Choice} ...${about} value=${value === null ? "" : String(value)} options=${options} onChange=${(id) => onChange(id === "" ? null : Number(id))} />`;
}

/** Words of one's own, with commas between. */
export const Tags = ({ value, onChange, ...about }) => html`<${TextField} ...${about} value=${value.join(", ")}
  onChange=${(text) => onChange(text.split(",").map((each) => each.trimStart()).filter((each, i, all) => each || i < all.length - 1))} />`;

/** A tier of the fee rates of now, or a rate. */
export function Fee({ value, onChange, ...about }) {
  const isOwn = typeof value !== "string";
  return html`<${Choice} ...${about} value=${isOwn ? "own" : value} options=${[...choicesOf("feeRate"), ["own", t("edit.feeRate.own")]]}
      onChange=${(tier) => onChange(tier === "own" ? 2 : tier)} />
    ${isOwn && html`<${DecimalField} label=${t("edit.fee.rate")} unit="sat/vB" value=${value} onChange=${onChange} />`}`;
}

const optional = (field) => (field.usual ? { placeholder: field.usual } : {});
const SIMPLE = {
  sats: (field, props) => html`<${SatsField} ...${props} />`,
  count: (field, props) => html`<${CountField} ...${props} min=${field.least ?? 0} max=${field.most ?? undefined} unit=${field.unit} />`,
  fraction: (field, props) => html`<${PercentField} ...${props} />`,
  quantity: (field, props) => html`<${DecimalField} ...${props} />`,
  text: (field, props) => html`<${TextField} ...${props} />`,
  check: (field, props) => html`<${Check} ...${props} />`,
  lines: (field, props) => html`<${LinesField} ...${props} />`,
  choice: (field, props) => html`<${Choice} ...${props} options=${field.choices.map(({ value, label }) => [value, label])} />`,
  levels: (field, props) => html`<${Levels} ...${props} />`,
  between: (field, props) => html`<${Between} ...${props} />`,
  drop: (field, props) => html`<${Drop} ...${props} />`,
  hours: (field, props) => html`<${Hours} ...${props} />`,
  schedule: (field, props) => html`<${Schedule} ...${props} />`,
  budget: (field, props) => html`<${Budget} ...${props} />`,
  tags: (field, props) => html`<${Tags} ...${props} />`,
  fee: (field, props) => html`<${Fee} ...${props} />`,
};

/** A field is drawn where it matters, and where something is wrong with it: else it could not be mended. */
export const isShown = (field, { values, faults }) => matters(field, values) || Boolean(faults[field.name]);

/** One field. `form` is {values, set, faults, base}: what is typed, how to change it, what is wrong, what is stored. */
export function Input({ field, form, prefix = "" }) {
  const { name, kind } = field;
  const { values, set, faults, base } = form;
  if (!isShown(field, form)) return null;
  const isChanged = base && JSON.stringify(values[name]) !== JSON.stringify(base[name]);
  const props = {
    name: prefix + name,
    label: field.label,
    hint: name === "hardcapSats" && values[name] === 0 ? t("edit.no_cap") : field.hint,
    mark: isChanged ? t("edit.was", { value: valueWords(name, base[name], base) }) : undefined,
    fault: faults[name],
    value: values[name],
    values,
    onChange: (value) => set({ [name]: value }),
  };
  if (name in TRAITS && !prefix) return html`<${TraitField} ...${props} form=${form} />`;
  if (kind === "onFill") return html`<${OnFill} ...${props} Input=${Input} />`;
  const { values: _values, ...plain } = props;
  return SIMPLE[kind](field, { ...(kind in WHOLE ? props : plain), ...optional(field) });
}

const WHOLE = { levels: true, between: true };
