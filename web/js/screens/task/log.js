// The end of a task's log, as its worker wrote it.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../../html.js";
import { get } from "../../api.js";
import { useLoad } from "../../load.js";
import { t } from "../../texts.js";
import { Empty, Loaded } from "../../parts/states.js";

const LINES = 200;
const LAST = 20;

const readLog = (id, lines, abort) => get(`/tasks/${id}/log?lines=${lines}`, { abort }).then((answer) => answer.lines);

export function Log({ task }) {
  // A cycle writes lines: they are read again after each.
  const load = useLoad((abort) => readLog(task.id, LINES, abort), [task.id, task.lastCycle?.time], task.id);
  return html`<${Loaded} from=${load} rows=${1} tall=${260}>${(lines) => (lines.length
    ? html`<${Lines} lines=${lines} label=${t("tab.log")} /><div class="panel-body"><button class="button" onClick=${load.again}>${t("log.again")}</button></div>`
    : html`<${Empty}>${t("log.empty")}</${Empty}>`)}</${Loaded}>`;
}

/** The last lines, for a task that was given up. */
export function LogEnd({ id }) {
  const load = useLoad((abort) => readLog(id, LAST, abort), [id]);
  return html`<details open><summary>${t("task.log.end")}</summary><${Loaded} from=${load} rows=${1} tall=${120}>${(lines) => html`<${Lines} lines=${lines.length ? lines : [t("log.empty")]} label=${t("task.log.end")} />`}</${Loaded}></details>`;
}

/** Lines with their end in sight. */
function Lines({ lines, label }) {
  const box = useRef(null);
  useEffect(() => void (box.current.scrollTop = box.current.scrollHeight), [lines]);
  return html`<pre class="log" tabindex="0" role="region" aria-label=${label} ref=${box}>${lines.join("\n")}</pre>`;
}
