// Elements are built from text, never from markup: a name such as <script> can only ever be seen.

const SVG = "http://www.w3.org/2000/svg";
// Characters that act instead of being seen: controls, line separators, marks that turn the direction of text.
const ACTING =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const byId = (id) => document.getElementById(id);

/** Text in which every character is seen. */
export function printable(text) {
  return String(text).replace(ACTING, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An element; attributes that are false or null are left out, and those that are functions are listeners. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...nodesOf(children));
  return element;
}

function nodesOf(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : printable(child)));
}

/** A name of an arm, a stream, a round: its direction of writing stays its own. */
export const named = (text, kind = "name") => h("bdi", { class: kind }, text);

/** Names in a sentence: a, b and c. */
export function namedList(names) {
  if (!names.length) return ["nothing"];
  return names.flatMap((name, k) => [k === 0 ? null : k === names.length - 1 ? " and " : ", ", named(name)]);
}

export function replace(element, ...children) {
  element.replaceChildren(...nodesOf(children));
}

/** Show an element, or hide it. */
export function show(element, whether) {
  element.hidden = !whether;
}

/** One child for each item, in order. A child that is there already stays, with all that was typed into it. */
export function keepChildren(parent, items, keyOf, make, update = () => {}) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, k) => {
    const key = String(keyOf(item));
    let child = known.get(key);
    if (!child) {
      child = make(item);
      child.dataset.key = key;
    }
    known.delete(key);
    update(child, item);
    if (parent.children[k] !== child) parent.insertBefore(child, parent.children[k] ?? null);
  });
  for (const child of known.values()) child.remove();
}

/** A table that a screen reader takes for one, however it is laid out. Cells: text or {label, content, class}. */
export function table(heads, rows, { caption = null, kind = "" } = {}) {
  const head = heads.map((text) => h("th", { scope: "col", role: "columnheader" }, text));
  const body = rows.map((cells) =>
    h(
      "tr",
      { role: "row" },
      cells.map((cell, k) => cellOf(cell, heads[k], k === 0)),
    ),
  );
  return h(
    "table",
    { role: "table", class: kind },
    caption && h("caption", {}, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
    h("tbody", { role: "rowgroup" }, body),
  );
}

function cellOf(cell, head, first) {
  const content = cell !== null && typeof cell === "object" && "content" in cell ? cell : { content: cell };
  const attributes = { class: content.kind, "data-label": printable(head) };
  return first
    ? h("th", { scope: "row", role: "rowheader", ...attributes }, content.content)
    : h("td", { role: "cell", ...attributes }, content.content);
}
