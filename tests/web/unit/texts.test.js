import assert from "node:assert/strict";
import { test } from "node:test";
import { define, plural, t } from "../../../web/js/page.js";
import { faultOf } from "../../../web/js/texts/reasons.js";

test("a text is words, or a function of values", () => {
  define({ "test.plain": "Words", "test.of": ({ count }) => `${count} ${plural(count, { one: "bid", other: "bids" })}` });
  assert.equal(t("test.plain"), "Words");
  assert.equal(t("test.of", { count: 1 }), "1 bid");
  assert.equal(t("test.of", { count: 2 }), "2 bids");
  assert.throws(() => t("test.none"), /no text test\.none/);
});

test("a fault without a code is told in the server's words, made fit for people", () => {
  assert.deepEqual(faultOf({ lastError: "failed to do it", lastErrorCode: null }), { title: "Could not do it", why: "" });
  assert.notEqual(faultOf({ lastError: "x", lastErrorCode: "signer_away" }).title, "x");
});
