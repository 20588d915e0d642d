// A field's value in words, for what was before and what is changed.
import { isUnread } from "../../amounts.js";
import { defaultsOf, fieldOf, labelOf, shapes } from "../../config_shape.js";
import { amount, count, percent, perToken, quantity } from "../../format.js";
import { t } from "../../texts.js";

const WORDS = {
  sats: (value) => amount(value),
  fraction: (value) => percent(value, 3),
  quantity,
  check: (value) => t(value ? "edit.on" : "edit.off"),
  lines: (value) => (value.length ? value.join(", ") : t("edit.none")),
  tags: (value) => (value.length ? value.join(", ") : t("edit.none")),
  levels: (value, config) => value.map((each) => `${each.count} × ${config.bidMode === "fixed" ? amount(each.at) : percent(each.at, 3)}`).join(", "),
  between: (value, config) => value.map((each) => (isUnread(each) ? each.unread : (config.type === "rune" ? perToken : count)(each))).join(" – "),
  drop: (value) => t("edit.drop.words", value),
  hours: (value) => `${value.from} – ${value.to} ${value.tz}`,
  onFill: (value) => t("edit.onFill.words", { ...value, percent: percent(value.autolist.pricePercent ?? defaultsOf("autolist").pricePercent) }),
  budget: (value) => t("edit.budget.other", { id: value }),
};

/** Words for the value of a field; `config` is what it stands in. */
export function valueWords(name, value, config) {
  const field = fieldOf(name);
  if (isUnread(value)) return value.unread;
  if (!field) return String(value);
  if (value === null && field.usual) return /\d/.test(field.usual) ? withUnit(field, field.usual) : field.usual;
  if (value === null || value === undefined || value === "") return t("edit.none");
  if (field.noLimitAt0 && value === 0) return t("edit.no_limit");
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
  const words = named.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (name) => (shapes.value?.bidding.has(name) ? `“${labelOf(name)}”` : name));
  return words.charAt(0).toUpperCase() + words.slice(1);
}
