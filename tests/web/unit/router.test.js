import assert from "node:assert/strict";
import { test } from "node:test";
import { go, goOn, place, setQuery } from "../../../web/js/router.js";

test("what is filtered stands in the address, and what is not is left out", () => {
  setQuery({ from: "2026-01-01", side: "", slug: null });
  assert.equal(location.hash, "#/?from=2026-01-01");
  assert.deepEqual(place.value, { path: "/", query: { from: "2026-01-01" } });

  setQuery({ from: undefined });
  assert.equal(location.hash, "#/");
});

test("names of runes and hostile ones survive the way through the address", () => {
  const slug = "A•B&c=d#<img src=x>%00";
  setQuery({ slug });
  assert.equal(place.value.query.slug, slug);

  go("/tasks/7", { at: "12:00" });
  assert.equal(location.hash, "#/tasks/7?at=12%3A00");
});

test("an answer that comes late takes nobody away from where they have gone meanwhile", () => {
  place.value = { path: "/wallet", query: {} };
  location.hash = "#/wallet";
  goOn("/tasks/7", "/bids");
  assert.equal(location.hash, "#/wallet");
  goOn("/wallet", "/bids");
  assert.equal(location.hash, "#/bids");
});
