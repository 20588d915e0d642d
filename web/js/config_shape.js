// The fields of a task's config as the server declares them: type, bounds, default, words, and when they matter.
import { signal } from "@preact/signals";
import { get } from "./api.js";
import { define, t } from "./page.js";
import "./texts/edit_fields.js";

/** Fields by name, of both kinds of configs: {bidding, autolist}; null until they are known. */
export const shapes = signal(null);

/** Reads the declarations, once: they change with the server's version only. */
export async function readShapes() {
  if (!shapes.peek()) take(await get("/shapes"));
  return shapes.peek();
}

/** Takes the server's answer. */
export function take({ bidding, autolist }) {
  const byName = (fields) => new Map(fields.map((field) => [field.name, field]));
  shapes.value = { bidding: byName([...bidding, ...beside()]), autolist: byName(autolist) };
  for (const { name, label } of [...autolist, ...shapes.value.bidding.values()]) define({ [`field.of.${name}`]: label });
}

/** Fields that belong to the task and not to its config. */
const beside = () => [
  { name: "venue", kind: "text", group: "what", label: t("edit.venue"), hint: t("edit.venue.hint"), default: "", choices: [], when: {} },
  { name: "tags", kind: "tags", group: "more", label: t("word.tags"), hint: t("edit.tags.hint"), default: [], choices: [], when: {} },
];

export const fieldOf = (name, of = "bidding") => shapes.value[of].get(name);
export const labelOf = (name) => fieldOf(name)?.label ?? name;
export const choicesOf = (name, of = "bidding") => fieldOf(name, of).choices.map(({ value, label }) => [value, label]);

/** The values where nothing is given; a text that has to be given begins empty. */
export const defaultsOf = (of = "bidding") => Object.fromEntries([...shapes.value[of].values()].map((field) => [field.name, field.isRequired ? "" : field.default]));

/** Whether a field means anything in these values. */
export const matters = (field, values) => Object.entries(field.when).every(([name, wanted]) => wanted.includes(values[name]));

/** The fields of a group in their order; one that another of them makes matter comes behind it. */
export function groupOf(group, of = "bidding") {
  const fields = [...shapes.value[of].values()].filter((field) => field.group === group);
  const names = new Set(fields.map((field) => field.name));
  const depth = (field) => Object.keys(field.when).filter((name) => names.has(name)).length;
  return fields.map((field) => [depth(field), field]).sort(([one], [other]) => one - other).map(([, field]) => field);
}

/** Groups whose fields have a place of their own in the form, and the others, in the order in which they are drawn. */
export const OWN_GROUPS = ["what", "range"];
export const MAIN_GROUPS = ["size", "main"];
export const MORE_GROUPS = ["outbid", "ladder", "trait", "vwap", "guards", "moves", "fill", "more"];
export const LISTING_GROUPS = ["price", "least", "time", "more"];
