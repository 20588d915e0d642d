// A trait to bid on: what the marketplace shows of a collection's traits is proposed, and any other may be written.
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { get, withQuery } from "../../api.js";
import { amount } from "../../format.js";
import { Combobox } from "../../parts/combobox.js";

const TRAITS_MS = 300_000;
const traitsOf = new Map();

/** A collection's traits at the marketplace, read when they are first wanted; [] until then, and without any. */
function useTraits({ slug, venue }, isWanted) {
  const [types, setTypes] = useState([]);
  const of = withQuery("/market/traits", { slug: slug.trim(), venue });
  useEffect(() => {
    if (!isWanted || !slug.trim()) return undefined;
    let isGone = false;
    if (!traitsOf.has(of)) {
      traitsOf.set(of, get(of));
      setTimeout(() => traitsOf.delete(of), TRAITS_MS);
    }
    traitsOf.get(of).then((found) => isGone || setTypes(found.types || []), () => traitsOf.delete(of));
    return () => (isGone = true);
  }, [of, isWanted]);
  return types;
}

const MOST_CHOICES = 60;
export const TRAITS = { traitType: true, traitValue: true };

/** The type or value of a trait, with how many items have it and the cheapest of them. */
export function TraitField({ form, values, value, onChange, ...about }) {
  const [isWanted, setWanted] = useState(false);
  const types = useTraits(values, isWanted);
  const isType = about.name === "traitType";
  const every = isType ? types.map((each) => ({ value: each.type, values: each.values.length })) : types.find((each) => each.type === values.traitType)?.values || [];
  const wanted = value.trim().toLowerCase();
  const isChosen = every.some((each) => each.value === value); // then the others are shown, too: another one may be meant
  const options = every.filter((each) => isChosen || each.value.toLowerCase().includes(wanted)).slice(0, MOST_CHOICES).map((each) => ({ ...each, key: each.value }));
  const facts = (each) => [each.values && t("choice.values", { count: each.values }), (each.count ?? null) !== null && t("choice.items", { count: each.count }), (each.floorSats ?? null) !== null && t("choice.floor", { floor: amount(each.floorSats) })].filter(Boolean);
  return html`<${Combobox} ...${about} value=${value} maxlength="200" options=${options} wants=${setWanted} onChange=${onChange} onAt=${(isAt) => form.setTyping?.(isAt ? about.name : "")}
    draw=${(each) => html`<span class="choice-name"><b><bdi>${each.value}</bdi></b></span><small class="choice-facts">${facts(each).join(" · ")}</small>`} />`;
}
