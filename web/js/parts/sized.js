// Gives its child the width that there is.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";

export function Sized({ children, name }) {
  const box = useRef(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => box.current && setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return html`<div class=${name} ref=${box}>${width > 0 && children(width)}</div>`;
}
