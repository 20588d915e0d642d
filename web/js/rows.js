// What a row needs beyond its task is read while the row is on the screen, and not before.
import { useEffect, useRef, useState } from "preact/hooks";
import { watch } from "./events.js";
import { watchRows } from "./fresh_rows.js";

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

/** Has the rows of bidding tasks kept fresh while this is drawn. */
export const useRows = () => useEffect(watchRows, []);

/** Returns [ref, isSeen] of the row of a listing: its newest cycle comes by itself. */
export function useListingRow(id) {
  const [box, isSeen] = useSeen();
  useEffect(() => (isSeen ? watch(id, { kind: "autolist", cycles: 1 }) : undefined), [isSeen, id]);
  return [box, isSeen];
}
