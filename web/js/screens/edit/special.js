// Fields with a shape of their own: what is made of a fill, the shared budget, tags, and the fee rate.
import { html } from "../../html.js";
import { get } from "../../api.js";
import { LISTING_GROUPS, choicesOf, defaultsOf, groupOf } from "../../config_shape.js";
import { amount } from "../../format.js";
import { useLoad } from "../../load.js";
import { Check, Choice, CountField, DecimalField, TextField } from "../../parts/field.js";
import { t } from "../../texts.js";
import { Switched } from "./lists.js";

/** The server's words about the rule, split by the auto-list task's fields: "autolist.priceSats: …; autolist.…". */
export function listingFaults(words = "") {
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
