// Named configs: one to begin with, and what the form says kept as one.
import { useState } from "preact/hooks";
import { html } from "../../html.js";
import { call, get } from "../../api.js";
import { useAct, useLoad } from "../../load.js";
import { Dialog } from "../../parts/dialog.js";
import { Choice, TextField } from "../../parts/field.js";
import { wordsOf } from "../../parts/states.js";
import { toast } from "../../parts/toast.js";
import { t } from "../../texts.js";
import { bodyOf, valuesOf } from "./defaults.js";

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
