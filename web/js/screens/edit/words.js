// A bidding task's config: as the server fills it in, what of it is sent, and each field's value in words.
import { isUnread } from "../../amounts.js";
import { defaultsOf, fieldOf, labelOf, shapes } from "../../config_shape.js";
import { amount, count, perToken, percent, quantity } from "../../format.js";
import { t, withLabels } from "../../page.js";

const WORDS = {
  sats: (value) => amount(value),
  fraction: (value) => percent(value, 3),
  quantity,
  check: (value) => t(value ? "edit.on" : "edit.off"),
  lines: (value) => (value.length ? value.join(", ") : t("word.none")),
  tags: (value) => (value.length ? value.join(", ") : t("word.none")),
  levels: (value, config) => value.map((each) => `${each.count} × ${config.bidMode === "fixed" ? amount(each.at) : percent(each.at, 3)}`).join(", "),
  between: (value, config) => value.map((each) => (isUnread(each) ? each.unread : (config.type === "rune" ? perToken : count)(each))).join(" – "),
  schedule: (value) => (value.length ? value.map(stepWords).join("; ") : t("word.none")),
  drop: (value) => t("edit.drop.words", value),
  hours: (value) => `${value.from} – ${value.to} ${value.tz}`,
  onFill: (value) => t("edit.onFill.words", { ...value, percent: percent(value.autolist.pricePercent ?? defaultsOf("autolist").pricePercent) }),
  budget: (value) => t("edit.budget.other", { id: value }),
};

const stepWords = (step) => t("edit.step", { hours: step.afterHours, price: "priceSats" in step ? amount(step.priceSats) : percent(step.pricePercent) });

/** Words for the value of a field; `config` is what it stands in, `of` its kind. */
export function valueWords(name, value, config, of = "bidding") {
  const field = fieldOf(name, of);
  if (isUnread(value)) return value.unread;
  if (!field) return String(value);
  if (value === null && field.usual) return /\d/.test(field.usual) ? withUnit(field, field.usual) : field.usual;
  if (value === null || value === undefined || value === "") return t("word.none");
  if (field.noLimitAt0 && value === 0) return t("word.no_limit");
  const chosen = field.choices.find((each) => each.value === value);
  if (chosen) return chosen.label;
  return WORDS[field.kind] ? WORDS[field.kind](value, config) : withUnit(field, String(value));
}

const withUnit = ({ unit }, words) => (unit ? `${words} ${unit}` : words);

/** The changes of a form against what is stored: [[name, label, before, after], ...]. */
export const changeWords = (names, values, base) =>
  names.filter((name) => fieldOf(name)).map((name) => [name, labelOf(name), valueWords(name, base[name], base), valueWords(name, values[name], values)]);

/** The server's sentences name settings and reasons as programs know them: here they get the form's words. */
export function plainWords(text) {
  const named = text.replace(/ ?\([a-z]+(?:_[a-z]+)+\)/g, "").replace(/^failed to /, "could not ");
  const words = withLabels(named);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const MODES = ["slug", "type", "bidMode"];
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The form's values of a new task, or of one that is there. */
export const valuesOf = (task) =>
  task ? { ...defaultsOf(), ...task.config, venue: task.venue, tags: task.tags } : defaultsOf();

/** Names of the fields in which two forms' values differ. */
export const changed = (values, base) => Object.keys(base).filter((name) => !isSame(values[name], base[name]));

/** The fields that are sent: of a task what differs from `base`, of a new one (`base` is null) what is no default. */
export function bodyOf(values, base) {
  const names = changed(values, base || valuesOf(null));
  const sent = base ? names.filter((name) => name !== "venue") : [...new Set([...MODES, ...names])];
  // The levels say how many bids there are.
  const wanted = sent.filter((name) => name !== "bidCount" || !values.bidLevels);
  return Object.fromEntries(wanted.map((name) => [name, name === "tags" ? values.tags.map((each) => each.trim()).filter(Boolean) : values[name]]));
}

/** Numbers in an address are those of JSON, whatever the locale. */
const TAKES = { sats: isWhole, count: isWhole, fraction: Number.isFinite, quantity: Number.isFinite };

function isWhole(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

/** What an address of the page names of the fields, such as ?bidPercentHigh=0.8; a number that is none is a fault of its field. */
export function asked(query) {
  const [found, defaults] = [{}, defaultsOf()];
  for (const [name, text] of Object.entries(query)) {
    if (!shapes.value.bidding.has(name)) continue;
    const { kind } = fieldOf(name);
    found[name] = typeof defaults[name] === "string" && kind !== "fee" ? text : read(text);
    const takes = TAKES[kind];
    if (takes && found[name] !== null && !takes(found[name])) found[name] = { unread: text };
    if (found[name] === undefined) delete found[name];
  }
  return found;
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return /^[A-Za-z]+$/.test(text) ? text : undefined;
  }
}
