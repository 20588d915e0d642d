// All of a task's settings in words. While a moment of the past is looked at: those of then, and which differ from now.
import { html } from "../../html.js";
import { MAIN_GROUPS, MORE_GROUPS, OWN_GROUPS, groupOf, matters, readShapes } from "../../config_shape.js";
import { clock, secondsOf } from "../../format.js";
import { useLoad } from "../../load.js";
import { Loaded } from "../../parts/states.js";
import { now } from "../../store.js";
import { t } from "../../texts.js";
import { valueWords } from "../edit/words.js";
import "../../texts/edit.js";

/** Groups of the form that are one section here, and the others. */
const SECTIONS = [[...OWN_GROUPS, ...MAIN_GROUPS], ...MORE_GROUPS.map((group) => [group])];
const HEADED = new Set(["slug", "type", "venue", "tags"]); // stand at the head of the page

export function Settings({ task, moment, isPast }) {
  const shapes = useLoad(readShapes);
  return html`<div class="panel-body settings"><${Loaded} from=${shapes} rows=${1} tall=${320}>${() => html`<${Known} task=${task} then=${isPast && moment?.cycle ? moment.cycle : null} />`}</${Loaded}></div>`;
}

function Known({ task, then }) {
  const config = then ? then.config : task.config;
  const shown = (field) => !HEADED.has(field.name) && config[field.name] !== undefined && matters(field, config);
  const words = (name, of) => (of[name] === undefined ? t("edit.none") : valueWords(name, of[name], of));
  const sections = SECTIONS.map((groups) => [groups[0], groups.flatMap((group) => groupOf(group)).filter(shown)]).filter(([, fields]) => fields.length);
  return html`<p class="quiet">${then ? t("set.then", { time: clock(secondsOf(then.time), now.peek()) }) : t("set.now")}</p>
    <div class="settings-groups">${sections.map(([group, fields]) => html`<section key=${group}><h3>${t(group === "what" ? "edit.range" : `edit.group.${group}`)}</h3><dl class="facts">${fields.map(({ name, label }) => {
      const told = words(name, config);
      const today = then ? words(name, task.config) : told;
      return html`<dt key=${name}>${label}</dt><dd class=${told === today ? "" : "changed"}>${told}${told !== today && html` <span class="quiet">${t("set.today", { value: today })}</span>`}</dd>`;
    })}</dl></section>`)}</div>`;
}
