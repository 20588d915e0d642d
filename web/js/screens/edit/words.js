// A field's value in words, for what was before and what is changed.
import { isUnread } from "../../amounts.js";
import { amount, count, percent, perToken, quantity } from "../../format.js";
import { t } from "../../texts.js";
import { FIELDS } from "./fields.js";

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
  onFill: (value) => t("edit.onFill.words", { ...value, percent: percent(value.autolist.pricePercent ?? 1.05) }),
  budget: (value) => t("edit.budget.other", { id: value }),
  fee: (value) => (typeof value === "number" ? `${value} sat/vB` : t(`edit.feeRate.${value}`)),
};

/** Words for the value of a field; `config` is what it stands in. */
export function valueWords(name, value, config) {
  const field = FIELDS.get(name);
  if (isUnread(value)) return value.unread;
  if (value === null || value === undefined || value === "") return t(field?.isOptional ? "edit.usual.word" : "edit.none");
  if (field?.isNoneAt0 && value === 0) return t("edit.no_limit");
  if (field?.kind === "choice") return t(`edit.${name}.${value}`);
  return (WORDS[field?.kind] || String)(value, config);
}

/** The changes of a form against what is stored: [[name, label, before, after], ...]. */
export const changeWords = (names, values, base) =>
  names.filter((name) => FIELDS.has(name)).map((name) => [name, t(`edit.${name}`), valueWords(name, base[name], base), valueWords(name, values[name], values)]);

/** The server's sentences name settings and reasons as programs know them: here they get the form's words. */
export function plainWords(text) {
  const named = text.replace(/ ?\([a-z]+(?:_[a-z]+)+\)/g, "").replace(/^failed to /, "could not ");
  const words = named.replace(/\b[a-z]+(?:[A-Z][a-z]+)+\b/g, (name) => (FIELDS.has(name) ? `“${t(`edit.${name}`)}”` : name));
  return words.charAt(0).toUpperCase() + words.slice(1);
}
