// A small picture that needs a token to be read: asked for once it is seen; a letter stands in until it is here.
import { useEffect, useState } from "preact/hooks";
import { html } from "../html.js";
import { useSeen } from "./seen.js";

/** `read(abort)` answers a Blob; `of` says whose picture it is, and a change of it reads anew. */
export function Picture({ read, of, letter = "?", words = "" }) {
  const [box, isSeen] = useSeen({ once: true });
  const [source, setSource] = useState("");
  useEffect(() => {
    if (!isSeen) return undefined;
    const abort = new AbortController();
    let made = "";
    read(abort.signal).then(
      (blob) => {
        if (abort.signal.aborted || !(blob instanceof Blob)) return;
        made = URL.createObjectURL(blob);
        setSource(made);
      },
      () => {}, // the letter stays
    );
    return () => {
      abort.abort();
      setSource("");
      if (made) URL.revokeObjectURL(made);
    };
  }, [isSeen, of]);
  return html`<span class="thumb" ref=${box}>${source
    ? html`<img class="thumb" src=${source} alt=${words} width="44" height="44" onError=${() => setSource("")} />`
    : html`<span aria-hidden="true">${letter}</span>`}</span>`;
}
