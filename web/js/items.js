// What lies at one's addresses, by the marketplace's word: read once, and anew on demand.
import { computed, effect, signal } from "@preact/signals";
import { get, token } from "./api.js";
import { short } from "./format.js";

/** Inscriptions at one's addresses, at most 500; null until they are known. */
export const items = signal(null);
effect(() => {
  if (!token.value) items.value = null;
});

const byId = computed(() => new Map((items.value || []).map((item) => [item.id, item])));

/** Reads them; an answer may be five minutes old, with `fresh` 20 s. */
export async function readItems({ fresh = false, abort } = {}) {
  items.value = await get(`/autolist/wallet/ordinals${fresh ? "?refresh=1" : ""}`, { abort });
}

export const itemOf = (id) => byId.value.get(id) || null;

/** What people call an inscription: its name where one is known, else the two ends of its id. */
export const nameOf = (id) => itemOf(id)?.name || short(id, 8, 6);

export const readPicture = (id) => (abort) => get(`/autolist/item/${id}/image`, { abort });
