// Keeps the store fresh: one stream for all tabs of a browser, read anew after a gap, and tried again when it breaks.
import { batch, effect } from "@preact/signals";
import { Refusal, follow, get, token } from "./api.js";
import { isShowingRows, readAllRows, readRow } from "./fresh_rows.js";
import { soon } from "./soon.js";
import * as store from "./store.js";
import { canShare, share } from "./tabs.js";

const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [500, 15_000];
const SILENT_MS = 25_000; // the server says a word every ten seconds
const POLL_MS = 5_000;
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

/** Reads everything anew, the rows that are shown, too. */
function readAll() {
  hasBegun = true;
  readAllRows();
  return store.readAll();
}

/** Parts may want every event: returns the end of it. */
const listeners = new Set();
export function onEvent(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function take(event) {
  const told = JSON.parse(event.data);
  if (store.feed.peek().some((each) => each.id === told.id)) return;
  const isListing = store.listingIds.peek()?.includes(told.task);
  let isNewError = false;
  batch(() => {
    alive();
    if (event.event !== "cycle" || told.data.error) store.feed.value = [told, ...store.feed.peek()].slice(0, 100);
    const place = isListing ? store.listingOf(told.task) : store.taskOf(told.task);
    if (event.event === "cycle" && place.peek()) {
      const time = Date.parse(told.at) / 1000;
      const { action, error } = told.data;
      isNewError = Boolean(error) && error !== place.peek().lastError;
      place.value = { ...place.peek(), lastCycle: { time, action }, lastError: error };
    }
  });
  for (const listener of listeners) listener(told);
  if (told.task !== null && !isListing) {
    readRow(told.task);
  }
  if (event.event === "cycle") {
    if (isNewError && (isListing || !isShowingRows())) soon("lists", readLists); // a row tells it, too
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

let hasBegun = false; // to read what every screen needs
const BEGIN_MS = 500; // so long the stream has time to begin: what is read after that misses no event

async function begin(abort) {
  hasBegun = false;
  store.quietly(fillFeed());
  if (!canShare()) return poll(abort);
  // Tabs of different sessions do not share: each session has a stream of its own.
  const name = `bidkeeper-${await digest(token.peek())}`;
  if (abort.aborted) return undefined;
  const known = { lastId: "" };
  const readOnce = () => hasBegun || abort.aborted || store.quietly(readAllOnce(abort));
  setTimeout(readOnce, BEGIN_MS);
  const hear = (said) => {
    if (said.lastId) known.lastId = said.lastId;
    if (said.alive) alive();
    if (said.link) store.link.value = said.link;
    if (said.event) take(said.event);
    if (said.readAll) store.quietly(readAll());
    else if (said.link === "live") readOnce();
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
  await readAll();
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
