// What a row needs beyond its task is read while the row is on the screen, and not before.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, withQuery } from "./api.js";
import { watch } from "./events.js";
import { monthOf } from "./format.js";
import { bookOf, leaving, momentOf, now, quietly, readSeries, readVenues, seriesOf, taskOf, venues } from "./store.js";

const STAYS_MS = 200;
const told = new WeakMap();
const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) told.get(entry.target)?.(entry.isIntersecting);
  },
  { rootMargin: "120px" },
);

/** Returns [ref, isSeen]; with `once` it stays seen. */
export function useSeen({ once = false } = {}) {
  const box = useRef(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = box.current;
    let timer = 0;
    const see = () => {
      setSeen(true);
      if (once) observer.unobserve(element);
    };
    told.set(element, (isIn) => {
      clearTimeout(timer);
      if (isIn) timer = setTimeout(see, STAYS_MS);
      else setSeen(false);
    });
    observer.observe(element);
    return () => (clearTimeout(timer), observer.unobserve(element));
  }, []);
  return [box, isSeen];
}

const SERIES_S = 120; // how old the past may be that a row shows
const BOOK_S = 60;

/** Returns [ref, isSeen] of the row of a bidding task: its newest cycle and decision, its past, and its rivals come by themselves. */
export function useTaskRow(id) {
  const [box, isSeen] = useSeen();
  useEffect(() => {
    if (!isSeen) return undefined;
    const ends = [watch(id, { moments: true, cycles: 1 }), repeat(() => past(id), SERIES_S), wantRivals(id)];
    return () => ends.forEach((end) => end());
  }, [isSeen, id]);
  return [box, isSeen];
}

/** The same of a listing. */
export function useListingRow(id) {
  const [box, isSeen] = useSeen();
  useEffect(() => (isSeen ? watch(id, { kind: "autolist", cycles: 1 }) : undefined), [isSeen, id]);
  return [box, isSeen];
}

function repeat(act, everyS) {
  act();
  const timer = setInterval(act, everyS * 1000);
  return () => clearInterval(timer);
}

function past(id) {
  const last = seriesOf(id).peek()?.time.at(-1) || 0;
  if (now.peek() - last > SERIES_S && !document.hidden && !leaving.peek().has(id)) quietly(readSeries(id));
}

/**
 * Tasks in view whose decisions do not read the bids of others. Asking for them is a look-up at the marketplace, of which a
 * user has few: one task at a time, three at once and then one every 15 s, and never where a quota counts them.
 */
const wanting = new Set();
let atOnce = 3;
let timer = 0;

function wantRivals(id) {
  wanting.add(id);
  if (!venues.peek()) quietly(readVenues());
  if (!timer) timer = setTimeout(lookAtRivals, 1500);
  return () => wanting.delete(id);
}

async function lookAtRivals() {
  const id = [...wanting].filter(isBlind).sort((a, b) => askedAt(a) - askedAt(b))[0];
  if (id !== undefined && !document.hidden) {
    atOnce -= 1;
    asked.set(id, now.peek());
    const { slug, type, venue, config } = taskOf(id).peek();
    const trait = config.bidType === "trait" ? { traitType: config.traitType, traitValue: config.traitValue } : {};
    await get(withQuery("/market/book", { slug, type, venue, ...trait })).then(
      (book) => (bookOf(id).value = book),
      () => {}, // its turn comes again after the others'
    );
  }
  timer = wanting.size ? setTimeout(lookAtRivals, atOnce > 0 ? 1500 : 15_000) : 0;
}

const asked = new Map();
const askedAt = (id) => asked.get(id) || 0;

function isBlind(id) {
  const venue = venues.peek()?.find((each) => each.name === taskOf(id).peek()?.venue);
  const cycle = momentOf(id).peek()?.cycle;
  return venue && monthOf(venue.limits) === null && cycle?.book.asks && !cycle.book.bids && now.peek() - askedAt(id) > BOOK_S;
}
