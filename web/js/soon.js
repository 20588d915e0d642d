// What is read a moment from now, once for many wishes.
import { token } from "./api.js";

const AGAIN_MS = 1_000;
const due = new Map();

/** Reads something a moment from now, once for many wishes; what comes while it is read is read after it. */
export function soon(name, read, waitMs = 150) {
  const known = due.get(name);
  if (known) {
    known.again = known.isReading;
    return;
  }
  const entry = { isReading: false, again: false };
  due.set(name, entry);
  setTimeout(async () => {
    entry.isReading = true;
    if (token.peek()) await read().catch(() => {}); // a session that ended meanwhile has nothing to ask
    due.delete(name);
    if (entry.again) soon(name, read, Math.max(waitMs, AGAIN_MS)); // a storm of events is no storm of questions
  }, waitMs);
}
