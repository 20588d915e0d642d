// Rows of even columns; on a phone each row is a small card with its columns' names.
import { html } from "../html.js";
import { t } from "../texts.js";

/** `columns`: [{name, cell(row), isNumber?, isWide?}]; `rows` with a key each by `keyOf`. */
export const Table = ({ label, columns, rows, keyOf, caption }) => html`<div class="table" tabindex="0" role="region" aria-label=${t("table.rows", { label })}><table>
  ${caption && html`<caption>${caption}</caption>`}
  <thead><tr>${columns.map((each) => html`<th key=${each.name} scope="col" class=${each.isNumber ? "number-cell" : ""}>${each.name || html`<span class="sr">${t("table.acts")}</span>`}</th>`)}</tr></thead>
  <tbody>${rows.map((row) => html`<tr key=${keyOf(row)}>${columns.map((each) => html`<td key=${each.name} data-name=${each.name}
    class=${each.isNumber ? "number-cell" : ""}>${each.cell(row)}</td>`)}</tr>`)}</tbody></table></div>`;
