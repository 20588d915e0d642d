// Bids of others where the task's own cycles do not read them: one look at the marketplace, now and then.
import { useEffect, useState } from "preact/hooks";
import { get, withQuery } from "../../api.js";
import { bookOf } from "../../decision.js";
import { monthOf } from "../../format.js";
import { readVenues, venues } from "../../store.js";

const EVERY_MS = 30_000;

/** {book, again}: the marketplace's book while `isWanted`; where calls are counted by the month or day, only when asked for. */
export function useMarketBook(task, isWanted) {
  const [book, setBook] = useState(null);
  const { slug, type, venue, config } = task;
  const traits = config.bidType === "trait" ? { traitType: config.traitType, traitValue: config.traitValue } : {};
  const read = async () => {
    const found = await get(withQuery("/market/book", { slug, type, venue, ...traits }));
    setBook({ ...bookOf(found), ranks: new Map(found.ranks?.map(({ order, rank }) => [order, rank])) });
  };
  const quietly = () => read().catch(() => {});
  useEffect(() => {
    if (!venues.peek()) readVenues().catch(() => {});
  }, []);
  const known = venues.value?.find((each) => each.name === venue);
  const isFree = known && monthOf(known.limits) === null;
  useEffect(() => {
    if (!isWanted || !isFree) return undefined;
    quietly();
    const timer = setInterval(() => document.hidden || quietly(), EVERY_MS);
    return () => clearInterval(timer);
  }, [task.id, isWanted, isFree]);
  return { book: isWanted ? book : null, again: read, isCounted: Boolean(known) && !isFree };
}
