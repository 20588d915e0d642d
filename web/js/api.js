// The one way to the server: the bearer token, answers, refusals in the server's own words, and the stream.
import { signal } from "@preact/signals";
import { device, tab } from "./kept.js";

const KEPT = "token";
const LONGEST_MS = 90_000; // a replay takes up to a minute; what takes longer has no answer any more

/** Bearer token of the session, "" while nobody is signed in. It never stands in an address. */
export const token = signal(tab.getItem(KEPT) || device.getItem(KEPT) || "");

/** Whether the server has ended the session that this page had. */
export const wasEnded = signal(false);

/** Milliseconds by which the server's clock is ahead of this machine's. */
export const clockAheadMs = signal(0);

/** Begins a session; `keep` keeps it on this device, else it ends with the tab. */
export function beginSession(value, keep) {
  forget(token.peek());
  if (keep) tab.removeItem(KEPT); // what a tab has goes before what the device has
  (keep ? device : tab).setItem(KEPT, value);
  wasEnded.value = false;
  token.value = value;
}

/** Ends the session on the server as well as it can be reached, and here in any case. */
export async function endSession() {
  const ended = token.peek();
  try {
    await call("POST", "/auth/logout");
  } finally {
    forget(ended);
    if (token.peek() === ended) token.value = "";
  }
}

/** Another tab may have kept another session meanwhile: that one stays. */
function forget(value) {
  for (const kept of [tab, device]) if (kept.getItem(KEPT) === value) kept.removeItem(KEPT);
}

/** A refusal: `status` (0 when no answer came), the answer's `body`, and `retryAfterS` where the server names it. */
export class Refusal extends Error {
  constructor(status, body, retryAfterS = 0) {
    super(body?.message || body?.error || "");
    this.status = status;
    this.body = body || {};
    this.details = body?.details || [];
    this.retryAfterS = retryAfterS;
  }
}

/**
 * Asks the server; returns its answer. Throws a Refusal; nothing is sent twice. `path` begins behind /api. An answer to a
 * session that is over by then is not given out: it may be another person's page now.
 */
export async function call(method, path, body, { abort } = {}) {
  const asked = token.peek();
  const tooLate = AbortSignal.timeout(LONGEST_MS);
  const response = await answerOf(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: abort ? AbortSignal.any([abort, tooLate]) : tooLate,
  });
  const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
  const answer = await (isJson ? response.json() : response.blob()).catch(unanswered);
  if (asked && token.peek() !== asked) throw new Refusal(401, null);
  return answer;
}

/** Throws what an exchange that broke means: nobody knows what came of it. */
function unanswered(failure) {
  throw failure.name === "AbortError" ? failure : new Refusal(0, null);
}

/** Returns the server's version, such as `0.1.0 (5c2b9fa7)`; it is known to anybody. */
export async function versionOfServer() {
  const { version, commit } = await (await fetch("/healthz")).json();
  return commit ? `${version} (${commit})` : version;
}

const RELOADED_S = 60;

/**
 * Loads the page again once the server answers. Browsers may remember a file of the page that could not be fetched as failed until
 * then, Chromium 150 among them. Without `isAsked`, by a person, at most once a minute: the file may be missing.
 */
export async function reloadOnceThere(isAsked = false) {
  await versionOfServer();
  const nowS = Date.now() / 1000;
  if (!isAsked && nowS - Number(tab.getItem("reloaded")) < RELOADED_S) return;
  tab.setItem("reloaded", nowS);
  location.reload();
}

export const get = (path, options) => call("GET", path, undefined, options);

/** Returns the path with a query of what is given: null, undefined and "" are left out. */
export function withQuery(path, values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

async function answerOf(path, request) {
  const asked = token.peek();
  const headers = { ...request.headers, ...(asked ? { Authorization: `Bearer ${asked}` } : {}) };
  const askedMs = Date.now();
  const response = await fetch(`/api${path}`, { ...request, headers }).catch(unanswered);
  // What the browser kept, as it does pictures, tells the time of when it was kept.
  const isOfNow = response.headers.get("Cache-Control") === "no-store";
  const at = isOfNow && Date.parse(response.headers.get("Date") || "");
  if (at) judgeClock(at, askedMs);
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  if (response.status === 401 && asked && token.peek() === asked) {
    forget(asked);
    wasEnded.value = true;
    token.value = "";
  }
  throw new Refusal(response.status, told, Number(response.headers.get("Retry-After")) || 0);
}

/**
 * Sets the clock right where an answer shows that it is wrong. The answer's Date, in whole seconds, was written at some moment
 * between question and answer: Tornado writes it when it begins with a question, nginx when it has the answer.
 */
function judgeClock(at, askedMs) {
  const [least, most] = [at - Date.now(), at + 1000 - askedMs];
  const ahead = clockAheadMs.peek();
  if (ahead < least || ahead > most) clockAheadMs.value = (least + most) / 2;
}

/** Follows the server's events until the stream ends; `lastId` is the last event known, or "". */
export async function follow(lastId, onEvent, onAlive, abort) {
  const headers = { Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) };
  const response = await answerOf("/events", { headers, signal: abort });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onAlive();
    const frames = (text + value).split("\n\n");
    text = frames.pop();
    for (const frame of frames) onEvent(fieldsOf(frame));
  }
}

function fieldsOf(frame) {
  const fields = { event: "", data: "", id: "" };
  for (const line of frame.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  return fields;
}
