// The row of a bidding task, drawn anew when that task changes and not when another does.
import { html } from "./html.js";
import { useTaskRow } from "./rows.js";
import { standingOf } from "./standing.js";
import { bookOf, lastCycleOf, momentOf, now, seriesOf, taskOf } from "./store.js";
import { TaskCells } from "./parts/task_row.js";

/** `Lead` draws what stands before the name, such as a box to choose it. */
export function TaskRow({ id, Lead }) {
  const [box, isSeen] = useTaskRow(id);
  const task = taskOf(id).value;
  const standing = task && standingOf(task, momentOf(id).value, bookOf(id).value, now.peek());
  return html`<li class=${`task-row ${task?.isRunning ? "" : "is-off"}`} data-row ref=${box}>${task && html`<${TaskCells} task=${task} standing=${standing}
    cycle=${lastCycleOf(id)} series=${seriesOf(id).value} isSeen=${isSeen} lead=${Lead && html`<${Lead} id=${id} />`} />`}</li>`;
}
