// A bidding task's config as the server fills it in, and what of it is sent.
import { defaultsOf, fieldOf, shapes } from "../../config_shape.js";

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
