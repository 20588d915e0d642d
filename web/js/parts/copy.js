// A long text with its two ends, and a button that copies all of it.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { short } from "../format.js";
import { t } from "../texts.js";
import { Icon } from "./icon.js";

export function Copyable({ text, head = 10, tail = 8, name = "" }) {
  const [isCopied, setCopied] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const box = useRef(null);
  useEffect(() => void (isWhole && getSelection().selectAllChildren(box.current)), [isWhole]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return setWhole(true); // over plain HTTP browsers lend no clipboard: all of it is shown and selected
    }
    setCopied(true);
    return setTimeout(() => setCopied(false), 2000);
  };
  return html`<span class="copyable"><code ref=${box} title=${text}>${isWhole ? text : short(text, head, tail)}</code>
    <button class="plain" aria-label=${`${t("copy")} ${name}`.trim()} onClick=${copy}><${Icon} name="copy" />${isCopied && html`<em role="status">${t("copied")}</em>`}</button></span>`;
}
