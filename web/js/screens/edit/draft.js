// What is typed and not saved: kept in this tab until it is, so that an ended session or a reload loses nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import { confirmed } from "../../parts/dialog.js";
import { holdPlace } from "../../router.js";
import { t } from "../../texts.js";
import { changed } from "./defaults.js";

function read(key, of) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(key));
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
  const drop = () => sessionStorage.removeItem(key);
  /** Keeps values in the tab, and returns them. */
  const keep = (next) => {
    if (changed(next, base).length > 0) sessionStorage.setItem(key, JSON.stringify({ of, values: next }));
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
