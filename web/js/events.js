// Keeps the store fresh: one stream for all tabs of a browser, read anew after a gap, and tried again when it breaks.
import { batch, effect } from "@preact/signals";
import { Refusal, follow, get, token } from "./api.js";
import * as store from "./store.js";
import { canShare, share } from "./tabs.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const SILENT_MS = 25_000; // the server says a word every ten seconds
const POLL_MS = 5_000;
const AGAIN_MS = 1_000;
// All but cycles, of which there are so many that nothing else would be left.
const TOLD = "fill,sold,listed,outbid_limited,error,recovered,halted,control,quota,plan_expiring,worker_dead,daily,task,order,listing,wallet";

/** What something on the screen shows closely: these tasks' decisions are read as they come. */
const watched = new Set();

/** Has a task's decisions read while a part shows them, the last `cycles` of them; returns the end of it. */
export function watch(id, { kind = "tasks", moments = false, cycles = 60 } = {}) {
  const wish = { id, kind, moments, cycles };
  watched.add(wish);
  refresh(wish);
  return () => watched.delete(wish);
}

function refresh(wish) {
  const { id, kind, moments, cycles } = wish;
  const isWatched = () => [...watched].some((each) => each.id === id);
  const unlessGone = (read) => async () => isWatched() && !store.leaving.peek().has(id) && read();
  soon(`${cycles} cycles of ${id}`, unlessGone(() => store.readCycles(id, kind, cycles)));
  if (moments && kind === "tasks") soon(`moment of ${id}`, unlessGone(() => store.readMoment(id)));
}

/** Parts may want every event: returns the end of it. */
const listeners = new Set();
export function onEvent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Reads something a moment from now, once for many wishes; what comes while it is read is read after it. */
const due = new Map();
function soon(name, read, waitMs = 150) {
  const known = due.get(name);
  if (known) {
    known.again = known.isReading;
    return;
  }
  const entry = { isReading: false, again: false };
  due.set(name, entry);
  setTimeout(async () => {
    entry.isReading = true;
    if (token.peek()) await read().catch(() => {}); // a session that ended meanwhile has nothing to ask
    due.delete(name);
    if (entry.again) soon(name, read, Math.max(waitMs, AGAIN_MS)); // a storm of events is no storm of questions
  }, waitMs);
}

function take(event) {
  const told = JSON.parse(event.data);
  if (store.feed.peek().some((each) => each.id === told.id)) return;
  const isListing = store.listingIds.peek()?.includes(told.task);
  batch(() => {
    alive();
    if (event.event !== "cycle" || told.data.error) store.feed.value = [told, ...store.feed.peek()].slice(0, 100);
    const place = isListing ? store.listingOf(told.task) : store.taskOf(told.task);
    if (event.event === "cycle" && place.peek()) {
      const time = Date.parse(told.at) / 1000;
      const { action, error } = told.data;
      place.value = { ...place.peek(), lastCycle: { time, action }, lastError: error };
    }
  });
  for (const listener of listeners) listener(told);
  if (event.event === "cycle") {
    if (told.data.error) soon("lists", readLists);
    for (const wish of watched) if (wish.id === told.task) refresh(wish);
  } else if (["task", "fill", "sold", "listed", "listing", "worker_dead", "error", "recovered"].includes(event.event)) {
    soon("lists", readLists);
  }
  if (["control", "halted"].includes(event.event)) soon("control", store.readControl);
  if (["fill", "sold", "order", "wallet"].includes(event.event)) soon("money", readMoney, 1_000);
}

const CLOSING_MS = 1_000;

/** While bids have to be cancelled, how many are left is read again and again. */
function followBrakes() {
  let timer = null;
  return effect(() => {
    clearTimeout(timer);
    if (store.closing.value && token.value) timer = setTimeout(() => store.quietly(store.readControl()), CLOSING_MS);
  });
}

const readLists = () => Promise.all([store.readTasks(), store.readListings(), store.readControl()]);
const readMoney = () => Promise.all([store.readProfile(), store.readWallet()]);
const alive = () => (store.heard.value = store.now.peek());

let ending = null;

/** Follows from now on with the session's token; with none it ends. */
export function followAlways() {
  followBrakes();
  effect(() => {
    ending?.abort();
    ending = null;
    if (!token.value) return;
    const { signal } = (ending = new AbortController());
    store.link.value = "connecting";
    queueMicrotask(() => signal.aborted || begin(signal));
  });
}

async function begin(abort) {
  store.quietly(readAllOnce(abort));
  store.quietly(fillFeed());
  if (!canShare()) return poll(abort);
  // Tabs of different sessions do not share: each session has a stream of its own.
  const name = `bidkeeper-${await digest(token.peek())}`;
  if (abort.aborted) return undefined;
  const known = { lastId: "" };
  const hear = (said) => {
    if (said.lastId) known.lastId = said.lastId;
    if (said.alive) alive();
    if (said.link) store.link.value = said.link;
    if (said.event) take(said.event);
    if (said.readAll) store.quietly(store.readAll());
  };
  const standing = () => ({ link: store.link.peek(), lastId: known.lastId });
  share(name, abort, { lead: (end, tell) => stream(end, tell, known), hear, standing });
  return undefined;
}

/** Streams on from the last event that any tab was told, `known.lastId`. */
async function stream(abort, tell, known) {
  let wait = FIRST_WAIT_MS;
  while (!abort.aborted) {
    const quiet = new AbortController();
    const end = AbortSignal.any([abort, quiet.signal]);
    let alarm = setTimeout(() => quiet.abort(), SILENT_MS);
    const live = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => quiet.abort(), SILENT_MS);
      if (store.link.peek() !== "live" || !known.lastId) tell({ readAll: true });
      tell({ link: "live", alive: true });
      wait = FIRST_WAIT_MS;
    };
    try {
      await follow(known.lastId, (event) => {
        const isReset = event.event === "reset";
        tell({ lastId: event.id, readAll: isReset, event: isReset || !event.data ? null : event });
      }, live, end);
    } catch (refusal) {
      if (refusal instanceof Refusal && refusal.retryAfterS) wait = Math.max(wait, refusal.retryAfterS * 1000);
    }
    clearTimeout(alarm);
    if (abort.aborted) return;
    tell({ link: "offline" });
    await pause(wait * (0.75 + Math.random() / 2), abort);
    wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  }
}

/** Without secure origins browsers have no locks: each tab looks by itself. */
async function poll(abort) {
  while (!abort.aborted) {
    try {
      await readAllOnce(abort);
      store.link.value = "polling";
      store.quietly(fillFeed());
      watched.forEach(refresh);
    } catch {
      store.link.value = "offline";
    }
    await pause(POLL_MS, abort);
  }
}

async function readAllOnce(abort) {
  await store.readAll();
  if (!abort.aborted) alive();
}

async function fillFeed() {
  const { events } = await get(`/events?wait=0&limit=100&events=${TOLD}`);
  const known = new Set(store.feed.peek().map((each) => each.id));
  const all = [...store.feed.peek(), ...events.filter((each) => !known.has(each.id))];
  store.feed.value = all.sort((one, other) => other.id - one.id).slice(0, 100);
}

const pause = (ms, abort) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    abort.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
  });

async function digest(text) {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(bytes).slice(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
