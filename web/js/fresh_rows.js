// Rows of bidding tasks: read together while something shows them, and after events only those that the events are about.
import { batch } from "@preact/signals";
import { get } from "./api.js";
import { soon } from "./soon.js";
import { places, put, rowOf, taskOf } from "./store.js";

const SOON_MS = 150;
const PAUSE_MS = 2_000; // between two reads
const MOST = 60; // changed rows that are read by themselves; with more of them all rows are read
const OF_TASK = ["isRunning", "lastCycle", "lastError", "lastErrorCode", "lastErrorParams"];

let shown = 0; // parts that show rows
const older = new Set(); // tasks whose rows are older than their events
let isAllOlder = true;
let readMs = 0;
let hasBegun = false;

export const isShowingRows = () => shown > 0;

/** Has the rows read, and kept fresh until the returned end of it. */
export function watchRows() {
  shown += 1;
  isAllOlder = true;
  if (hasBegun) readSoon(0);
  return () => void (shown -= 1);
}

/** Has all rows read anew, if any are shown. */
export function readAllRows() {
  hasBegun = true;
  isAllOlder = true;
  readSoon(0);
}

/** Has the row of this task read anew. */
export function readRow(id) {
  older.add(id);
  readSoon(SOON_MS);
}

function readSoon(leastMs) {
  if (shown && !document.hidden && (isAllOlder || older.size)) soon("rows", readOlder, Math.max(leastMs, readMs + PAUSE_MS - Date.now()));
}

addEventListener("visibilitychange", () => readSoon(SOON_MS));

async function readOlder() {
  const ids = isAllOlder || older.size > MOST ? null : [...older];
  readMs = Date.now();
  older.clear();
  isAllOlder = false;
  await read(ids).catch(() => (isAllOlder = true));
}

/** Reads rows, and with them how their tasks are. */
async function read(ids) {
  const answer = await get(ids ? `/tasks/rows?ids=${ids}` : "/tasks/rows");
  batch(() => {
    places.value = answer.places;
    for (const row of answer.rows) {
      put(rowOf(row.id), row);
      const task = taskOf(row.id).peek();
      if (task) put(taskOf(row.id), { ...task, ...Object.fromEntries(OF_TASK.map((name) => [name, row[name]])) });
    }
  });
}
