// What Run cannot bring back yet: a signed bid counts until it expires, cancelled or not, so rungs may lack room under the
// signing limit. The server's preview of each task says so, whatever the brake says.
import { call } from "./api.js";
import { clock, span } from "./format.js";
import { now } from "./store.js";
import { t } from "./page.js";
import { signingRoom } from "./texts/reasons.js";

const MOST_TASKS = 10;
const LONGEST_MS = 3000;

/** A sentence for each task of which rungs would wait for room, with the time when the last of them has it; none without any. */
export async function roomWaits(tasks) {
  const asked = tasks.filter((task) => task.isRunning && !task.config.dryRun).slice(0, MOST_TASKS);
  const found = asked.map(() => null);
  const abort = new AbortController();
  const plans = asked.map((task, i) => call("POST", "/tasks/preview", { taskId: task.id }, { abort: abort.signal }).then((plan) => (found[i] = plan), () => {}));
  await Promise.race([Promise.all(plans), new Promise((resolve) => setTimeout(resolve, LONGEST_MS))]);
  abort.abort();
  return asked.map((task, i) => waitOf(task, found[i])).filter(Boolean);
}

function waitOf(task, plan) {
  const waiting = plan ? plan.rungs.filter((rung) => rung.reason === "signed_limit") : [];
  if (!waiting.length) return null;
  const lefts = waiting.map((rung) => signingRoom(rung.detail)?.left ?? null);
  const left = lefts.includes(null) ? null : Math.max(...lefts);
  const values = { name: task.slug, bids: waiting.length, all: plan.rungs.length };
  return left === null ? t("run.waits", values) : t("run.waits_until", { ...values, at: clock(now.value + left, now.value), left: span(left) });
}
