// What is typed and not saved: kept in this tab until it is, so that an ended session or a reload loses nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { call, get } from "../../api.js";
import { tab } from "../../kept.js";
import { Dialog, confirmed, toast, useAct, useLoad, wordsOf } from "../../parts/states.js";
import { holdPlace } from "../../router.js";
import { Choice, TextField } from "../../parts/field.js";
import { bodyOf, changed, valuesOf } from "./words.js";

/** Begins with a preset: its fields, the usual values for all others; a name that is typed already stays. */
export function Presets({ values, set }) {
  const presets = useLoad((abort) => get("/presets", { abort }));
  if (!presets.value?.length) return null;
  const take = (id) => {
    const preset = presets.value.find((each) => String(each.id) === id);
    if (preset) set({ ...valuesOf(null), slug: values.slug, ...preset.config });
  };
  return html`<${Choice} label=${t("edit.preset")} hint=${t("edit.preset.hint")} value="" options=${[["", t("edit.preset.none")], ...presets.value.map((each) => [String(each.id), each.name])]} onChange=${take} />`;
}

/** Keeps what the form says under a name. */
export function KeepPreset({ values }) {
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState("");
  const [fault, setFault] = useState(null);
  const act = useAct();
  const keep = (event) => {
    event.preventDefault();
    act.run(async () => {
      const { slug: _slug, ...config } = bodyOf(values, null);
      try {
        await call("POST", "/presets", { name, config });
        setOpen(false);
        toast(t("edit.preset.kept", { name }));
      } catch (refusal) {
        setFault(wordsOf(refusal));
      }
    });
  };
  return html`<button type="button" class="button" onClick=${() => (setFault(null), setOpen(true))}>${t("edit.preset.keep")}</button>
    ${isOpen && html`<${Dialog} title=${t("edit.preset.title")} onClose=${() => setOpen(false)}><form class="form" onSubmit=${keep}><p>${t("edit.preset.what")}</p>
      <${TextField} label=${t("edit.preset.name")} value=${name} fault=${fault} onChange=${setName} autofocus maxlength="100" />
      <div class="dialog-acts"><button type="button" class="button" onClick=${() => setOpen(false)}>${t("cancel")}</button>
        <button class="button primary" disabled=${act.isBusy || !name.trim()}>${t("edit.preset.do")}</button></div></form></${Dialog}>`}`;
}

function read(key, of) {
  try {
    const kept = JSON.parse(tab.getItem(key));
    return kept?.of === of ? kept.values : null;
  } catch {
    return null;
  }
}

/**
 * Holds the form's values. `key` names the draft, `base` is what is stored, `start` what the form begins with, `of` from
 * where it was opened: a draft of another place is not taken for this one's.
 */
export function useDraft(key, base, start, of) {
  const [kept] = useState(() => read(key, of));
  const [values, setValues] = useState(kept || start);
  const [isRestored, setRestored] = useState(kept !== null && changed(kept, start).length > 0);
  const changes = changed(values, base);
  const isDirty = changes.length > 0;
  const drop = () => tab.removeItem(key);
  /** Keeps values in the tab, and returns them. */
  const keep = (next) => {
    if (changed(next, base).length > 0) tab.setItem(key, JSON.stringify({ of, values: next }));
    else drop();
    return next;
  };
  // At once, not when they are drawn: a session that ends in that moment takes the form away before.
  const set = (change) => setValues((old) => keep({ ...old, ...change }));
  const held = useRef(null);
  useEffect(() => {
    keep(values);
  }, [values]);
  useEffect(() => {
    if (!isDirty) return undefined;
    const onClose = (event) => event.preventDefault();
    addEventListener("beforeunload", onClose);
    held.current = holdPlace(async () => {
      const leaves = await confirmed({ title: t("edit.leave"), lines: [t("edit.leave.what", { count: changes.length })], act: t("edit.leave.do") });
      if (leaves) drop();
      return leaves;
    });
    return () => {
      removeEventListener("beforeunload", onClose);
      held.current();
    };
  }, [isDirty, changes.length]);
  const restart = () => {
    setRestored(false);
    setValues(base);
  };
  /** Lets go of the place: what was typed is saved. */
  const done = () => {
    drop();
    held.current?.();
  };
  return { values, set, changes, isDirty, isRestored, restart, done };
}
