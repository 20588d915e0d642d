// The price that a config would ask now: asked anew a moment after each change, and once what is used up is free again.
import { useEffect, useRef, useState } from "preact/hooks";
import { hasUnread } from "./amounts.js";
import { call } from "./api.js";

const SETTLES_MS = 500; // each other price is a draft at the marketplace, of which a user may have few a minute

export const askPlan = (body, abort) => call("POST", "/autolist/preview", body, { abort });

/** `body` is that of POST /api/autolist/preview, or null; a number that cannot be read is not asked about. Returns {plan, refusal, isOld}: of the body before while that of now is asked. */
export function usePlan(body) {
  const wanted = body && !hasUnread(body) ? JSON.stringify(body) : null;
  const [state, setState] = useState({ of: null, plan: null, refusal: null });
  const isFirst = useRef(true);
  useEffect(() => {
    if (!wanted) return undefined;
    const abort = new AbortController();
    let timer = 0;
    const ask = async () => {
      try {
        const plan = await askPlan(JSON.parse(wanted), abort.signal);
        if (!abort.signal.aborted) setState({ of: wanted, plan, refusal: null });
      } catch (refusal) {
        if (abort.signal.aborted) return;
        setState((old) => ({ of: wanted, plan: refusal.status === 429 ? old.plan : null, refusal }));
        if (refusal.status === 429) timer = setTimeout(ask, 1000 * (refusal.retryAfterS || 5));
      }
    };
    timer = setTimeout(ask, isFirst.current ? 0 : SETTLES_MS);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [wanted]);
  return { plan: state.plan, refusal: state.of === wanted ? state.refusal : null, isOld: state.of !== wanted || (state.refusal !== null && state.plan !== null) };
}
