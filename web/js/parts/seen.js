// Whether an element is on the screen, or nearly: one observer for all. What only rushes by is not seen.
import { useEffect, useRef, useState } from "preact/hooks";

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
