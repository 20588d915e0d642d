// An auto-list task's config as a form has it: an amount that is not written is null there, and what that means is said here.
import { defaultsOf, fieldOf, matters } from "./config_shape.js";

const NONE_IS_ZERO = ["priceSats", "minPriceSats", "minMargin"];

/** The form's values of a stored config, or of a new one. */
export function valuesOf(config = defaultsOf("autolist"), tags = []) {
  const values = { ...Object.fromEntries(Object.keys(defaultsOf("autolist")).map((name) => [name, config[name]])), tags };
  for (const name of NONE_IS_ZERO) values[name] ||= null;
  return values;
}

const sent = (values, name) => (NONE_IS_ZERO.includes(name) ? values[name] ?? 0 : values[name]);

/** The body of a new task. A cost that is not written is left out: then it is that of the purchase, where one is known. */
export function bodyOf(values) {
  const names = Object.keys(values).filter((name) => name !== "costSats" || values.costSats !== null);
  return Object.fromEntries(names.map((name) => [name, sent(values, name)]));
}

/** What of the values differs from what is stored. */
export function changeOf(values, base) {
  const names = Object.keys(values).filter((name) => JSON.stringify(values[name]) !== JSON.stringify(base[name]));
  return Object.fromEntries(names.map((name) => [name, sent(values, name)]));
}

/** Whether the price is, or will be, a multiple of the reference. */
export const multiplies = (values) => values.priceMode === "percent" || values.priceSchedule.some((step) => "pricePercent" in step);

/** Fields that the form shows for these values: others cannot show what is wrong with them. */
export const drawnFields = (values) => Object.keys(values).filter((field) => isDrawn(field, values));

function isDrawn(name, values) {
  if (name.startsWith("trait")) return multiplies(values) && values.reference === "traitFloor";
  if (name === "reference") return multiplies(values);
  const field = fieldOf(name, "autolist");
  return name === "allowBelowReference" || !field || matters(field, values);
}

/** Whether the price could follow the market down without a limit. */
export const hasNoLeast = (values) => values.priceMode !== "fixed" && !values.minPriceSats && values.costSats === null;

/** What was refused, by field: what belongs to none of `names` is under "". */
export function faultsOf(details, names) {
  const found = {};
  for (const detail of details) {
    const [, name, words] = /^([A-Za-z]+): (.*)$/s.exec(detail) || [null, "", detail];
    const at = names.includes(name) ? name : "";
    const said = at ? words : detail;
    found[at] = found[at] ? `${found[at]}. ${said}` : said;
  }
  return found;
}
