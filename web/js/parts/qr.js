// An address as squares for a phone's camera; the encoder is fetched when somebody wants to see one.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { t } from "../texts.js";

export function QrCode({ text }) {
  const [rows, setRows] = useState(null);
  useEffect(() => {
    let isGone = false;
    import("/web/vendor/qr.mjs").then((module) => isGone || setRows(module.encodeQR(text, "raw", { ecc: "medium", border: 3 })), () => {});
    return () => (isGone = true);
  }, [text]);
  if (!rows) return html`<div class="qr" aria-busy="true" />`;
  const path = rows.map((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : "")).join("")).join("");
  return html`<svg class="qr" viewBox=${`0 0 ${rows.length} ${rows.length}`} role="img" aria-label=${t("qr.of", { text })} shape-rendering="crispEdges">
    <rect width=${rows.length} height=${rows.length} /><path d=${path} /></svg>`;
}
