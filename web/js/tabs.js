// Tabs of one browser that share a stream: one leads and tells the others; another takes over when it is closed, or
// sleeps while that other one is looked at.

const LOST_MS = 60_000; // so long a leading tab says nothing only when its browser has put it to sleep
const LOOK_MS = 5_000;

/** Without secure origins browsers have no locks. */
export const canShare = () => Boolean(navigator.locks && window.BroadcastChannel);

/**
 * Runs `lead(end, tell)` in one of the tabs with this name at a time, until `end` is aborted; all of them, that one too,
 * `hear` what is told. A tab that comes later is told `standing()` at once. `abort` ends this tab's part.
 */
export function share(name, abort, { lead, hear, standing }) {
  const channel = new BroadcastChannel(name);
  let turn = new AbortController();
  let isLeading = false;
  let heardMs = performance.now();
  const heed = (said) => {
    heardMs = performance.now();
    hear(said);
  };
  const tell = (said) => {
    heed(said);
    if (!abort.aborted) channel.postMessage(said);
  };
  channel.onmessage = ({ data }) => {
    if (!data.asks) heed(data);
    else if (isLeading) channel.postMessage(standing());
  };
  const ask = (how) => {
    turn.abort();
    turn = new AbortController();
    const end = AbortSignal.any([abort, turn.signal]);
    const begin = () => ((isLeading = true), lead(end, tell));
    navigator.locks.request(name, how || { signal: end }, begin).catch(() => {}).then(() => {
      if (end.aborted) return;
      isLeading = false; // another tab has taken over
      ask();
    });
  };
  const look = setInterval(() => {
    if (isLeading || document.hidden || performance.now() - heardMs < LOST_MS) return;
    heed({ link: "connecting" });
    ask({ steal: true });
  }, LOOK_MS);
  abort.addEventListener("abort", () => (clearInterval(look), channel.close()));
  channel.postMessage({ asks: true });
  ask();
}
