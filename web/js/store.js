// What is known, as signals: one for each task, so that a change draws only what shows it. events.js keeps them fresh.
import { batch, computed, effect, signal } from "@preact/signals";
import { call, clockAheadMs, get } from "./api.js";

/** Profile, wallet, control and marketplaces, as the server tells them; null until they are known. */
export const me = signal(null);
export const wallet = signal(null);
export const control = signal(null);
export const venues = signal(null);

/** Ids of the tasks of both kinds in their order; null until they are known. */
export const taskIds = signal(null);
export const listingIds = signal(null);

/** Fills of today's real bids, newest first; null until they are known. */
export const fillsToday = signal(null);

/** Newest events first, at most 100: all but the cycles that went well. */
export const feed = signal([]);

const MOST_CYCLES = 60;

/** "connecting", "live", "polling" (where tabs cannot share a stream) or "offline". */
export const link = signal("connecting");

/** Server's time in seconds of the last word from it, and of this moment. */
export const heard = signal(0);
export const now = signal(serverSeconds());
setInterval(() => (now.value = serverSeconds()), 1000);

function serverSeconds() {
  return (Date.now() + clockAheadMs.peek()) / 1000;
}

const KINDS = ["task", "listing", "row", "moment", "cycles"];
const stores = Object.fromEntries(KINDS.map((kind) => [kind, new Map()]));
const one = (kind, id) => {
  if (!stores[kind].has(id)) stores[kind].set(id, signal(null));
  return stores[kind].get(id);
};

/** Signals by id: a bidding task, an auto-list task, a bidding task in the numbers of now, its newest decision with its book, its newest cycles. */
export const taskOf = (id) => one("task", id);
export const listingOf = (id) => one("listing", id);
export const rowOf = (id) => one("row", id);
export const momentOf = (id) => one("moment", id);
export const cyclesOf = (id) => one("cycles", id);

/** The newest cycle of a task of either kind: null where there was none, undefined while it is not read. */
export function lastCycleOf(id) {
  const known = cyclesOf(id).value;
  return known ? known.at(-1) ?? null : undefined;
}

/** {first, known}: how many tasks are first, of those whose place is known; null until the rows are known. */
export const places = signal(null);

/** All that is in the lists, as values. */
export const tasks = computed(() => taskIds.value && taskIds.value.map((id) => taskOf(id).value).filter(Boolean));
export const listings = computed(
  () => listingIds.value && listingIds.value.map((id) => listingOf(id).value).filter(Boolean),
);

const byTask = (kind) => computed(() => new Map((control.value?.[kind] || []).map((each) => [each.taskId, each])));
const controlled = { tasks: byTask("tasks"), autolist: byTask("autolist") };

/** What may hold a task back: {state, scope}, the strictest of all scopes. */
export const restraintOf = (id, kind = "tasks") => controlled[kind].value.get(id)?.effective || { state: "run", scope: "global" };

const leftOf = (closing) => (closing ? closing.open + closing.unknown : 0);

/** How many bids of a task a brake still has to cancel. */
export const closingOf = (id) => leftOf(controlled.tasks.value.get(id)?.closing);

let brake = { since: null, most: 0 };

/** The bids of all tasks that brakes have to cancel: {left, most} since the first of them began; null without any. */
export const closing = computed(() => {
  const found = control.value?.closing;
  if (!found) return null;
  brake = { since: found.since, most: Math.max(leftOf(found), brake.since === found.since ? brake.most : 0) };
  return { left: leftOf(found), most: brake.most };
});

export const needsALook = computed(() => [...(tasks.value || []), ...(listings.value || [])].filter((each) => each.lastError));

/** Sets a signal, unless it says the same already. */
export function put(place, value) {
  if (JSON.stringify(place.peek()) !== JSON.stringify(value)) place.value = value;
}

/** Sets signals to what was answered: a task that did not change draws nothing anew. */
export function keep(kind, list, ids) {
  batch(() => {
    for (const each of list) {
      put(one(kind, each.id), each);
    }
    const found = list.map((each) => each.id);
    if (String(ids.peek()) !== String(found) || ids.peek() === null) ids.value = found;
  });
}

const asked = new Map();
const kept = new Map();

/** Asks, and sets what is answered unless a later question was answered first. */
async function read(path, set) {
  const turn = (asked.get(path) || 0) + 1;
  asked.set(path, turn);
  const answer = await get(path);
  if (turn > (kept.get(path) || 0)) {
    kept.set(path, turn);
    set(answer);
  }
  return answer;
}

export const readProfile = () => read("/auth/me", (answer) => (me.value = answer));
export const readWallet = () => read("/wallet", (answer) => (wallet.value = answer));
export const readControl = () => read("/control", (answer) => (control.value = answer));
export const readVenues = () => read("/venues", (answer) => (venues.value = answer));
export const readTasks = () => read("/tasks", (answer) => keep("task", answer, taskIds));
export const readListings = () => read("/autolist", (answer) => keep("listing", answer, listingIds));

/** Ids of tasks of either kind that are being deleted, or were: nothing more is asked of them. */
export const leaving = signal(new Set());
export const leave = (ids) => (leaving.value = new Set([...leaving.peek(), ...ids]));

/** For those that could not be deleted. */
export const stay = (ids) => (leaving.value = new Set([...leaving.peek()].filter((id) => !ids.includes(id))));

/** Takes deleted tasks out of the list before it is read again: nothing asks for them any more. */
export function dropTasks(ids) {
  if (taskIds.peek()) taskIds.value = taskIds.peek().filter((id) => !ids.includes(id));
}

export async function readTask(id) {
  taskOf(id).value = await get(`/tasks/${id}`);
}

export async function readListing(id) {
  listingOf(id).value = await get(`/autolist/${id}`);
}

/** Reads what a task decided last, on which book: from its journal, which costs no call to the marketplace. */
export async function readMoment(id) {
  momentOf(id).value = await get(`/tasks/${id}/at?time=${new Date(serverSeconds() * 1000 - 500).toISOString()}`);
}

/** Reads the last cycles; older ones that are known stay, as many as anything shows. */
export async function readCycles(id, kind = "tasks", limit = MOST_CYCLES) {
  const read = (await get(`/${kind}/${id}/cycles?limit=${limit}`)).reverse();
  const known = (cyclesOf(id).peek() || []).filter((each) => read.length && each.time < read[0].time);
  cyclesOf(id).value = [...known, ...read].slice(-MOST_CYCLES);
}

/** Reads which bids were filled since midnight of this place, at most 500 of them. */
export async function readFillsToday() {
  const midnight = new Date(serverSeconds() * 1000).setHours(0, 0, 0, 0);
  const { fills } = await get(`/fills?side=buy&limit=500&from=${new Date(midnight).toISOString()}`);
  fillsToday.value = fills.filter((each) => !each.dryRun);
}

/** Reads everything that every screen needs; what only some show may fail by itself. */
export async function readAll() {
  await Promise.all([readProfile(), readTasks(), readListings(), readControl()]);
  quietly(readWallet());
}

/** Sets what holds back: scope "user" or "task" with its id; reads what is then in force. */
export async function setControl(body) {
  try {
    await call("PUT", "/control", body);
  } finally {
    quietly(readControl()); // it may be in force, whether or not it was answered
  }
}

/** For what the next event or look will tell again. */
export function quietly(promise) {
  promise.catch(() => {});
}

effect(() => {
  const troubled = needsALook.value.length;
  document.title = troubled ? `● ${troubled} need${troubled === 1 ? "s" : ""} a look · Bidkeeper` : "Bidkeeper";
});

/** Forgets everything, when somebody signs out. */
export function forgetAll() {
  batch(() => {
    for (const each of [me, wallet, control, taskIds, listingIds, venues, fillsToday, places]) each.value = null;
    for (const each of Object.values(stores)) each.clear();
    feed.value = [];
  });
}
