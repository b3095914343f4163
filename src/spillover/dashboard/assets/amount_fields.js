// How much of each arm was done: a field for each, empty where nothing was.

import { h, named, replace } from "./dom.js";
import { typed } from "./words.js";

let boxes = 0;

/** Fill `box`; returns {amounts(), choose(names), fill(amounts)}. `choose` marks what was decided, and empties fields. */
export function amountFields(box, arms, legend) {
  const id = `amounts-${(boxes += 1)}`;
  const inputs = arms.map((arm, k) =>
    h("input", { id: `${id}-${k}`, inputmode: "decimal", autocomplete: "off", class: "value-input" }),
  );
  const marks = arms.map(() => h("span", { class: "mark chosen" }));
  const rows = arms.map((arm, k) =>
    h("div", { class: "field short" }, h("label", { for: `${id}-${k}` }, named(arm), " ", marks[k]), inputs[k]),
  );
  const many = arms.length > 12;
  replace(
    box,
    h(
      "fieldset",
      { class: "picker" },
      h("legend", {}, legend),
      h("div", { class: many ? "picker-rows many" : "fields", tabindex: many ? "0" : null }, rows),
    ),
  );
  return {
    amounts: () =>
      Object.fromEntries(
        arms.map((arm, k) => [arm, typed(inputs[k].value)]).filter(([, amount]) => amount !== null),
      ),
    choose: (names) =>
      arms.forEach((arm, k) => {
        inputs[k].value = "";
        replace(marks[k], names.includes(arm) && "decided");
      }),
    fill: (amounts) =>
      arms.forEach((arm, k) => {
        inputs[k].value = amounts[arm] ?? "";
      }),
  };
}
