// Start, stop, brake, clone and delete of one task, each with what it does to its bids.
import { call } from "../../api.js";
import { amount, clock, monthOf, percent, secondsOf } from "../../format.js";
import { quantityOf } from "../../decision.js";
import { mayRun } from "../../parts/brake.js";
import { attempt, confirmed, toast, wordsOf } from "../../parts/states.js";
import { go, goOn } from "../../router.js";
import { leave, momentOf, quietly, readControl, readTask, readTasks, readVenues, setControl, stay, venues } from "../../store.js";
import { t } from "../../page.js";

/** Bids of the task that are on the market, or may be. */
export const openBids = (id) => (momentOf(id).value?.orders || []).filter((order) => order.state !== "closed" && !order.dryRun);

const lastEnd = (bids) => bids.map((order) => secondsOf(order.expiresAt)).reduce((a, b) => Math.max(a, b), 0);
const sumOf = (bids) => bids.reduce((sum, order) => sum + order.price, 0);

/** What ending the task does to its bids: cancelled, or left until they end. */
function fateOfBids(task, isCancelled) {
  const bids = openBids(task.id);
  if (!bids.length) return t("stop.none");
  const values = { bids: bids.length, total: amount(sumOf(bids)), until: clock(lastEnd(bids)) };
  return t(isCancelled ? "stop.cancels" : "stop.leaves", values);
}

function whatIsHalted(task) {
  const bids = openBids(task.id);
  return bids.length ? t("halt.what", { bids: bids.length, total: amount(sumOf(bids)) }) : t("stop.none");
}

export const confirmStop = (task) =>
  confirmed({ title: t("word.stop_name", { name: task.slug }), lines: [() => fateOfBids(task, task.config.cancelOnStop), t("stop.then")], act: t("word.stop") });

export async function stopTask(task) {
  const answer = await attempt(() => call("POST", `/tasks/${task.id}/stop`), { isStop: true });
  quietly(readControl());
  await readTask(task.id).catch(() => {});
  if (answer) toast(answer.openBids ? t("stop.draining", { bids: answer.openBids }) : t("stop.done"));
}

/** Asks only where something stands out in the task's numbers. */
export async function confirmStart(task) {
  const warnings = task.config.dryRun ? [] : await warningsOf(task);
  return !warnings.length || confirmed({ title: t("start.title", { name: task.slug }), lines: warnings, act: t("word.start") });
}

export async function startTask(task) {
  await attempt(() => call("POST", `/tasks/${task.id}/start`));
  await readTask(task.id).catch(() => {});
}

async function warningsOf(task) {
  let plan;
  try {
    [plan] = await Promise.all([call("POST", "/tasks/preview", { taskId: task.id }), venues.value || readVenues()]);
  } catch (refusal) {
    return [t("start.unchecked", { why: wordsOf(refusal, { isRead: true }) })];
  }
  return warningsIn(task.config, plan, venues.value?.find((each) => each.name === task.venue));
}

/** Sentences about a plan that names more than is usual: the cap, the sum, the calls. */
export function warningsIn(config, plan, venue) {
  const found = [];
  const each = quantityOf(config);
  const floor = plan.market?.lowestAsk ?? plan.rawReference;
  if (config.hardcapSats && each && floor && config.hardcapSats / each > Number(floor)) {
    found.push(t("start.hardcap", { cap: amount(config.hardcapSats), share: percent(config.hardcapSats / each / Number(floor)), floor: amount(Number(floor) * each) }));
  }
  const total = plan.rungs.reduce((sum, rung) => sum + (rung.price || 0), 0);
  if (plan.balance !== null && total > plan.balance) found.push(t("start.balance", { total: amount(total), balance: amount(plan.balance), address: plan.fundedAt }));
  const most = venue && monthOf(venue.limits);
  const calls = plan.monthlyCalls ? plan.monthlyCalls.reads + plan.monthlyCalls.writes : 0;
  if (most && calls > 0.05 * most) found.push(t("start.calls", { calls, share: percent(calls / most, 0) }));
  return found;
}

export async function brakeTask(task, state, before) {
  if (state === "halt") {
    if (!(await confirmed({ title: t("halt.title", { name: task.slug }), lines: [() => whatIsHalted(task), t("halt.then")], act: t("brake.halt") }))) return;
  }
  if (state === "run" && !(await mayRun([task], t("run.title", { name: task.slug })))) return;
  const set = (to) => attempt(() => setControl({ scope: "task", taskId: task.id, state: to }).then(() => true));
  if (await set(state)) toast(t(`task.now.${state}`), state === "halt" ? {} : { undo: () => set(before) });
}

export async function cloneTask(task, slug) {
  const made = await call("POST", `/tasks/${task.id}/clone`, { slug });
  quietly(readTasks());
  go(`/tasks/${made.id}`);
}

export async function deleteTask(task) {
  const lines = [() => fateOfBids(task, true), t("delete.then")];
  if (!(await confirmed({ title: t("delete.title", { name: task.slug }), lines, act: t("word.delete"), type: task.slug }))) return;
  leave([task.id]);
  const answer = await attempt(() => call("DELETE", `/tasks/${task.id}`));
  if (!answer) return stay([task.id]);
  goOn(`/tasks/${task.id}`, "/bids");
  quietly(readTasks());
  toast(answer.openBids ? t("delete.draining", { bids: answer.openBids }) : t("delete.done"));
}

