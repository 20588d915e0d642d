// Inscriptions as people paste them, to find one among those that the page has. The server reads what is sent (core/fields.py).

const ID = /(?<![0-9a-z])[0-9a-f]{64}i(?:0|[1-9][0-9]{0,9})(?![0-9a-z])/gi;
const NO_WIDTH = /[\u00ad\u200b-\u200d\u2060\ufeff]/g;

/** The one inscription's id in a text, such as an explorer's address; "" where there is none, or several. */
export function inscriptionIn(text) {
  const ids = new Set(text.replace(NO_WIDTH, "").toLowerCase().match(ID));
  return ids.size === 1 ? [...ids][0] : "";
}
