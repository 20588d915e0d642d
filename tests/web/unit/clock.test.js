import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { clockAheadMs, get } from "../../../web/js/api.js";

const NOON = Date.parse("2026-11-23T12:00:00.300Z");
const answered = { "Cache-Control": "no-store", "Content-Type": "application/json" };

/** A server whose clock is `aheadMs` ahead of this machine's: it writes its Date after `beforeMs`, and answers `afterMs` later. */
function serve(aheadMs, beforeMs, afterMs) {
  globalThis.fetch = async () => {
    mock.timers.tick(beforeMs);
    const date = new Date(Date.now() + aheadMs).toUTCString();
    mock.timers.tick(afterMs);
    return new Response("{}", { headers: { ...answered, Date: date } });
  };
  return get("/any");
}

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["Date"], now: NOON });
  clockAheadMs.value = 0;
});

test("an answer that took long leaves a right clock as it is, whether its Date is of its begin or of its end", async () => {
  for (const [before, after] of [[0, 3_500], [0, 50_000], [10_000, 0], [2_000, 2_000], [0, 20], [20, 0]]) {
    await serve(0, before, after);
    assert.equal(clockAheadMs.value, 0, `${before} + ${after} ms`);
  }
});

test("a wrong clock is set right to the second by a quick answer, and stays so while others are slow", async () => {
  for (const ahead of [300_000, -300_000, 4_000, -1_900]) {
    await serve(ahead, 0, 40);
    const set = clockAheadMs.value;
    assert.ok(Math.abs(set - ahead) <= 540, `${set} for ${ahead}`);
    await serve(ahead, 0, 0);
    await serve(ahead, 0, 9_000);
    await serve(ahead, 9_000, 0);
    assert.ok(Math.abs(clockAheadMs.value - ahead) <= 540, `${clockAheadMs.value} for ${ahead}`);
  }
});

test("where all answers are slow, a wrong clock is set right to half of what they take", async () => {
  for (const [before, after] of [[0, 3_000], [3_000, 0]]) {
    await serve(-300_000, before, after);
    assert.ok(Math.abs(clockAheadMs.value + 300_000) <= 2_000, String(clockAheadMs.value));
  }
});

test("a machine whose own clock was set right meanwhile is believed again", async () => {
  await serve(300_000, 0, 20);
  await serve(0, 0, 20);
  assert.ok(Math.abs(clockAheadMs.value) <= 520, String(clockAheadMs.value));
});
