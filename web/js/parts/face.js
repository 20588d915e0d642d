// The name and the picture of a collection or rune, as its marketplace showed them; the slug is always next to them.
import { computed, effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, token } from "../api.js";
import { html } from "../page.js";
import { now, quietly } from "../store.js";
import { Picture } from "./picture.js";

const OLD_S = 300;
const UNKNOWN_S = 30; // a task may be new
const faces = signal([]);
let askedAt = 0;
effect(() => {
  if (token.value) return;
  faces.value = [];
  askedAt = 0;
});

const plain = (slug) => slug.toLowerCase().replaceAll("•", "");
const keyOf = (venue, type, slug) => [venue, type, plain(slug)].join(" ");
const byKey = computed(() => new Map(faces.value.map((face) => [keyOf(face.venue, face.type, face.slug), face])));

/** One question for all that one's tasks are on, again when it is old. */
function want(key) {
  if (now.peek() - askedAt < (byKey.peek().has(key) ? OLD_S : UNKNOWN_S)) return;
  askedAt = now.peek();
  quietly(get("/market/faces").then((found) => (faces.value = found)));
}

export const letterOf = (text) => (text.match(/[\p{L}\p{N}]/u)?.[0] || "?").toUpperCase();

/** `path` is that of a picture, or null: then there is a letter of its name. */
export const Thumb = ({ path, name }) => path
  ? html`<${Picture} read=${(abort) => get(path.replace(/^\/api/, ""), { abort })} of=${path} letter=${letterOf(name)} />`
  : html`<span class="thumb" aria-hidden="true">${letterOf(name)}</span>`;

const letters = (text) => plain(text).replace(/[\s_-]/g, "");

/** {name, picture}, null where they are not known; a name that says the same as the slug is left out. */
function useFace(venue, type, slug) {
  const key = keyOf(venue, type, slug);
  useEffect(() => want(key), [key]);
  const { name = null, picture = null } = byKey.value.get(key) || {};
  return { name: name && letters(name) !== letters(slug) ? name : null, picture };
}

/** Drawn before a slug: in a row a letter where nothing is known, alone (`isAlone`) nothing. */
export function Face({ venue, type = "ordinals", slug, isAlone = false }) {
  const { name, picture } = useFace(venue, type, slug);
  if (isAlone && !name && !picture) return null;
  return html`<span class="face"><${Thumb} path=${picture} name=${name || slug} />${name && html`<span class="face-name"><bdi>${name}</bdi></span>`}</span>`;
}

/** A collection in words: its name, and its slug. */
export function Named({ venue, slug }) {
  const { name } = useFace(venue, "ordinals", slug);
  return html`${name && html`<bdi>${name}</bdi> · `}<bdi>${slug}</bdi>`;
}
