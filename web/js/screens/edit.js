// A new task, or a change of one: the form, and the plan for it on the market of this moment.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { hasUnread } from "../amounts.js";
import { call, get } from "../api.js";
import { Loaded, Skeleton, confirmed, toast, useAct, useLoad, wordsOf } from "../parts/states.js";
import { readShapes } from "../config_shape.js";
import { Icon } from "../parts/basics.js";
import { goOn, place } from "../router.js";
import { link, me, quietly, readTasks, readVenues, taskOf, venues } from "../store.js";
import "../texts/edit.js";
import { asked, bodyOf, plainWords, valuesOf } from "./edit/words.js";
import { KeepPreset, useDraft } from "./edit/draft.js";
import { Form } from "./edit/form.js";
import { Save, atFields, useMarket, usePlan } from "./edit/plan.js";
import { PlanView, frameOf, sumOf, warningsOf } from "./edit/plan_view.js";

export default function Edit({ id, query }) {
  const task = useLoad((abort) => Promise.all([id === null ? {} : get(`/tasks/${id}`, { abort }), readShapes()]).then(([found]) => found), [id]);
  useEffect(() => {
    if (!venues.peek()) quietly(readVenues());
  }, []);
  return html`<div class="page edit-page"><header class="page-head">${id !== null && html`<a class="plain" href=${`#/tasks/${id}`} aria-label=${t("edit.back")}><${Icon} name="back" /></a>`}
      <h1>${id === null ? t("edit.new") : t("edit.edit", { slug: task.value?.slug || "" })}</h1></header>
    ${me.value
      ? html`<${Loaded} from=${task} rows=${1} tall=${480}>${(value) => html`<${Editor} id=${id} task=${id === null ? null : value} query=${query} />`}</${Loaded}>`
      : html`<${Skeleton} rows=${1} tall=${480} />`}</div>`;
}

function Editor({ id, task, query }) {
  const [base] = useState(() => valuesOf(task));
  const [of] = useState(() => JSON.stringify(query));
  const draft = useDraft(`draft ${me.value.address} ${id ?? "new"}`, base, { ...base, ...asked(query) }, of);
  const { values, set } = draft;
  const known = task && base;
  const market = useMarket(values, set);
  const [typing, setTyping] = useState(""); // the field that has the focus
  const body = values.slug.trim() ? { ...bodyOf(values, known), ...(id === null ? {} : { taskId: id }) } : null;
  // A name that is being typed is looked up first: its letters are not planned for one by one.
  const isKnown = task?.slug === values.slug || market.floor !== null || (market.refusal !== null && market.refusal.status !== 404 && !(market.refusal.status === 400 && typing === "slug"));
  const isFilled = id !== null || market.floor === null || values.hardcapSats !== 0 || values.bidMode === "fixed" || values.quantityMode === "sats";
  const unread = Object.keys(body || {}).filter((name) => hasUnread(body[name]));
  const plan = usePlan(isKnown && isFilled && !unread.length ? body : null, values);
  const [refused, setRefused] = useState({ faults: {}, words: null, of: "" });
  const act = useAct();
  const key = body && JSON.stringify(body);
  const venue = venues.value?.find((each) => (values.venue ? each.name === values.venue : each.isDefault)) || null;
  useHardcap({ id, values, set, market });

  const faultsOfUnread = Object.fromEntries(unread.map((name) => [name, t("edit.unread")]));
  const refuse = (refusal) => {
    const faults = refusal ? atFields(refusal) || (refusal.status === 409 ? { slug: t("word.twin") } : null) : faultsOfUnread;
    setRefused({ faults: faults || {}, words: faults ? t("edit.see_fields", { count: Object.keys(faults).length }) : wordsOf(refusal), of: key });
    requestAnimationFrame(() => document.querySelector(".edit-form [aria-invalid=true], .edit-form .fault")?.focus?.());
  };

  /** Saves, and starts where `starts`; asks first where a figure stands out. */
  const save = (starts) =>
    act.run(async () => {
      if (unread.length) return refuse(null);
      try {
        const fresh = await plan.ask(body);
        const frame = frameOf(fresh, values, market);
        const warnings = warningsOf(fresh, frame, values, venue);
        const effect = t("edit.effect", { cancels: fresh.cancels.length, placed: sumOf(frame).placed });
        const isLive = starts || task?.isRunning;
        if (isLive && warnings.length && !(await confirmed({ title: t(starts ? "edit.start.sure" : "edit.save.sure"), lines: [...warnings, effect], act: t(starts ? "edit.save_start" : "word.save"), isDanger: false }))) return;
      } catch (refusal) {
        if (refusal.name === "AbortError") return;
        if (atFields(refusal) || refusal.status === 0 || refusal.status === 401) return refuse(refusal);
        if (!(await confirmed({ title: t("edit.blind"), lines: [wordsOf(refusal, { isRead: true }), t("edit.blind.what")], act: t("edit.blind.do"), isDanger: false }))) return;
      }
      await send(starts);
    });

  const send = async (starts) => {
    const { path } = place.peek();
    let saved;
    try {
      saved = task ? await call("PUT", `/tasks/${id}`, bodyOf(values, known)) : await call("POST", "/tasks", bodyOf(values, null));
    } catch (refusal) {
      return refuse(refusal);
    }
    draft.done();
    taskOf(saved.id).value = saved;
    quietly(readTasks());
    if (starts) {
      try {
        taskOf(saved.id).value = await call("POST", `/tasks/${saved.id}/start`);
        toast(t("edit.started", { slug: saved.slug }));
      } catch (refusal) {
        toast(t("edit.not_started", { words: wordsOf(refusal) }), { isBad: true });
      }
    } else toast(t("edit.saved", { slug: saved.slug }));
    goOn(path, `/tasks/${saved.id}`);
  };

  // What the server found wrong counts until the form says something else.
  const found = { ...plan.faults, ...faultsOfUnread };
  if (market.refusal?.status === 404) found.slug ??= market.refusal.message;
  delete found[typing]; // half a name is not wrong yet
  const faults = { ...found, ...(refused.of === key ? refused.faults : {}) };
  for (const name of Object.keys(faults)) if (name !== "onFill") faults[name] = plainWords(faults[name]);
  const twin = id === null && plan.key === key && plan.plan?.taskId ? plan.plan.taskId : null;
  const form = { values, set, faults, base: task ? base : null, setTyping };
  const isWide = useWide();
  const shown = html`<${PlanView} plan=${plan} market=${market} values=${values} venue=${venue} isOld=${plan.key !== key} isFaulty=${Object.keys(faults).length > 0} isNamed=${isKnown || typing !== "slug"} />`;
  return html`<div class="edit"><div class="edit-left">
    <${Form} form=${form} draft=${draft} market=${market} plan=${plan} twin=${twin} isNew=${!task} between=${!isWide && shown}>
      <${Save} task=${task} draft=${draft} base=${base} plan=${plan} market=${market} words=${refused.of === key ? refused.words : null} faulty=${Object.keys(faults).length}
        isBusy=${act.isBusy} isBarred=${!body || twin !== null || link.value === "offline" || (task !== null && !draft.isDirty && task.isRunning)} save=${save} /></${Form}>
    <div class="edit-more"><${KeepPreset} values=${values} />${draft.isDirty && html`<button class="button" onClick=${draft.restart}>${t("edit.restart")}</button>`}</div></div>
    ${isWide && shown}</div>`;
}

/** Whether the plan has room beside the form; else it stands within it, below what it hangs on most. */
function useWide() {
  const [query] = useState(() => matchMedia("(min-width: 1181px)"));
  const [isWide, setWide] = useState(query.matches);
  useEffect(() => {
    const change = () => setWide(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  return isWide;
}

/** A new task's hard cap begins at the floor of now, where nobody wrote one: no bid above what the cheapest costs. */
function useHardcap({ id, values, set, market }) {
  const given = useRef(0);
  const isFree = id === null && values.type === "ordinals" && values.bidMode === "percent" && [0, given.current].includes(values.hardcapSats);
  useEffect(() => {
    if (!isFree || market.floor === null) return;
    given.current = market.floor;
    set({ hardcapSats: market.floor });
  }, [market.floor, isFree]);
}
