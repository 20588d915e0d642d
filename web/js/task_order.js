// Which bidding tasks are shown, and in which order: by trouble, by the words and choices of the address, by a column.

/** Columns by which a table of tasks is sorted, and whether their largest value comes first. */
export const COLUMNS = { name: false, state: false, floor: true, place: false, bids: true, exposure: true, gain: true };
/** Orders that have no column. */
export const OTHERS = { new: true, fill: true };

const BY_STATE = ["fault", "held", "empty", "on", "dry", "off"];

/** The trouble of a task: "fault", "held", "empty" (it runs and has no bid), or null. `state` is that of parts/state.js. */
export function lookOf(task, row, state) {
  if (state === "fault" || state === "held") return state;
  return state === "on" && row?.said && !row.bids.length ? "empty" : null;
}

/** Sats that may be spent, without bids on paper. */
export const exposureOf = ({ task, row }) => (!row || task.config.dryRun ? 0 : row.exposure);

const VALUES = {
  name: ({ task }) => task.slug,
  state: ({ look, state }) => BY_STATE.indexOf(look || state),
  floor: ({ row }) => row?.floor,
  place: ({ row }) => row?.place,
  bids: ({ row }) => row?.bids.length,
  exposure: exposureOf,
  gain: ({ row }) => row?.gain,
  new: ({ task }) => task.id,
  fill: ({ task }) => task.fills.last,
};

const compared = (one, other) => (typeof one === "string" ? one.localeCompare(other) : one - other);

/** {by, isDown} of a sort in the address: "floor", or "-floor" the other way round. */
export function sortOf(text = "") {
  const by = text.replace(/^-/, "");
  const known = by in VALUES ? by : "state";
  return { by: known, isDown: { ...COLUMNS, ...OTHERS }[known] !== (known === by && text.startsWith("-")) };
}

/** The sort of the address after its head was pressed: its usual way first, then the other. */
export const pressed = (text = "", by) => (sortOf(text).by === by && !text.startsWith("-") ? `-${by}` : by);

/** Entries {task, row, state, look} in the order of `text`; those without a value come last, whichever way it goes. */
export function sorted(entries, text) {
  const { by, isDown } = sortOf(text);
  const value = VALUES[by];
  const isNone = (entry) => (value(entry) ?? null) === null;
  return [...entries].sort((a, b) => {
    if (isNone(a) || isNone(b)) return isNone(a) - isNone(b) || a.task.slug.localeCompare(b.task.slug);
    return (isDown ? -1 : 1) * compared(value(a), value(b)) || exposureOf(b) - exposureOf(a) || a.task.slug.localeCompare(b.task.slug);
  });
}

const plain = (text) => text.toLowerCase().replace(/[•\s_-]/g, "");

/** Entries that fit the query {q, state, type, tag}; the state "look" is any trouble. */
export function found(entries, { q = "", state = "", type = "", tag = "" }) {
  const words = plain(q);
  return entries.filter(({ task, state: is, look }) =>
    (!words || plain([task.slug, task.config.traitType, task.config.traitValue, ...task.tags].join(" ")).includes(words)) &&
    (!state || is === state || look === state || (state === "look" && look !== null)) &&
    (!type || task.type === type) &&
    (!tag || task.tags.includes(tag)));
}
