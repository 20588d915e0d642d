// What a screen asks for when it is opened: its answer, or why there is none, and a way to ask again.
import { useEffect, useRef, useState } from "preact/hooks";
import { leaving } from "./store.js";

/**
 * Runs `read(abort)` now and whenever one of `wants` changes. Returns {value, refusal, isLoading, again, set}. What is read
 * of the task with the id `task` stays as it is while that is being deleted: it may be gone before the page knows.
 */
export function useLoad(read, wants = [], task = null) {
  const [state, setState] = useState({ value: null, refusal: null, isLoading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const isLeaving = leaving.value.has(task);
  useEffect(() => {
    if (isLeaving) return undefined;
    const abort = new AbortController();
    setState((old) => ({ ...old, refusal: null, isLoading: true }));
    latest.current(abort.signal).then(
      (value) => abort.signal.aborted || setState({ value, refusal: null, isLoading: false }),
      (refusal) => abort.signal.aborted || setState((old) => ({ ...old, refusal, isLoading: false })),
    );
    return () => abort.abort();
  }, [...wants, turn, isLeaving]);
  return { ...state, again: () => setTurn((old) => old + 1), set: (value) => setState({ value, refusal: null, isLoading: false }) };
}

/** One act at a time: {isBusy, run}; a second click while one is under way does nothing. */
export function useAct() {
  const [isBusy, setBusy] = useState(false);
  const under = useRef(false);
  const run = async (act) => {
    if (under.current) return undefined;
    under.current = true;
    setBusy(true);
    try {
      return await act();
    } finally {
      under.current = false;
      setBusy(false);
    }
  };
  return { isBusy, run };
}
