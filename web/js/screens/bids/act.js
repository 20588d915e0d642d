// One action on many tasks, a hundred at a time, which is what the server takes.
import { call } from "../../api.js";

const MOST_IDS = 100;

/**
 * `wishes` are [{ids, change?}]. Returns {done: [id], undone: [{id, status, body}]}. Throws the Refusal of a request that was
 * not taken at all; what was done before it stays done.
 */
export async function act(action, wishes) {
  const results = [];
  for (const { ids, change } of wishes) {
    for (let from = 0; from < ids.length; from += MOST_IDS) {
      const answer = await call("POST", "/tasks/actions", { action, ids: ids.slice(from, from + MOST_IDS), ...(change && { change }) });
      results.push(...answer.results);
    }
  }
  const isDone = (each) => each.status < 400;
  return { done: results.filter(isDone).map((each) => each.id), undone: results.filter((each) => !isDone(each)) };
}
