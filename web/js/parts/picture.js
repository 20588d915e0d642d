// A small picture that needs a token to be read: asked for once it is seen; a letter stands in until it is here.
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { get, token } from "../api.js";
import { short } from "../format.js";
import { html } from "../page.js";
import { useSeen } from "../rows.js";

/** Inscriptions at one's addresses, at most 500; null until they are known. */
export const items = signal(null);
const details = signal(new Map());
effect(() => {
  if (token.value) return;
  items.value = null;
  details.value = new Map();
});

const byId = computed(() => new Map((items.value || []).map((item) => [item.id, item])));

/** Reads them; an answer may be five minutes old, with `fresh` 20 s. */
export async function readItems({ fresh = false, abort } = {}) {
  items.value = await get(`/autolist/wallet/ordinals${fresh ? "?refresh=1" : ""}`, { abort });
}

/** What the marketplace tells of one inscription, with its traits: a look-up, so it is asked once. */
export async function readItem(id, abort) {
  if (!details.peek().has(id)) {
    const detail = await get(`/autolist/item/${id}`, { abort });
    details.value = new Map(details.peek()).set(id, detail);
  }
  return details.peek().get(id);
}

export const itemOf = (id) => byId.value.get(id) || null;

/** What people call an inscription: its name where one is known, else the two ends of its id. */
export const nameOf = (id) => itemOf(id)?.name || details.value.get(id)?.name || short(id, 8, 6);

export const readPicture = (id) => (abort) => get(`/autolist/item/${id}/image`, { abort });

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
