// Whether an element is on the screen, or nearly: one observer for all.
import { useEffect, useRef, useState } from "preact/hooks";

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
    told.set(element, (isIn) => {
      if (once && !isIn) return;
      setSeen(isIn);
      if (once) observer.unobserve(element);
    });
    observer.observe(element);
    return () => observer.unobserve(element);
  }, []);
  return [box, isSeen];
}
