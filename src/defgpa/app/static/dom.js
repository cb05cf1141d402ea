// Elements made from values. Text is always set as text, never parsed as HTML.

/** Make an element: h("button", {class: "primary", onclick: save}, "Save"). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (
      name in element &&
      !["list", "form", "type", "role"].includes(name) &&
      typeof value !== "string"
    )
      element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an SVG element, with the same manners as h. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

const CONTROLS = "button, input, select, textarea, summary, a[href], [tabindex]";
const listControls = (element) => [...element.querySelectorAll(CONTROLS)];

/** Replace the content of an element; the control that had the focus, or its heir, has it again. */
export function fill(element, ...children) {
  const focused = document.activeElement,
    place = listControls(element).indexOf(focused);
  element.replaceChildren();
  append(element, children);
  if (place >= 0) findHeir(element, focused, place)?.focus({ preventScroll: true });
  return element;
}

/** The control of the same id, or else a control of the same kind and name in the same place. */
function findHeir(element, focused, place) {
  if (focused.isConnected) return focused;
  if (focused.id) return document.getElementById(focused.id);
  const heir = listControls(element)[place];
  const isAlike = ["tagName", "ariaLabel"].every((name) => heir?.[name] === focused[name]);
  return isAlike ? heir : null;
}

/** Four significant digits, a dash for nothing. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1e7 || (rounded !== 0 && Math.abs(rounded) < 1e-4)
    ? rounded.toExponential()
    : String(rounded);
}

/** A labelled control. */
export function field(label, control, hint = "") {
  return h(
    "label",
    { class: "field" },
    h("span", {}, label),
    control,
    hint && h("small", {}, hint),
  );
}

/** A select of [value, text] pairs. */
export function select(options, value, onchange, attributes = {}) {
  const element = h(
    "select",
    { ...attributes, onchange: () => onchange(element.value) },
    options.map(([key, text]) =>
      h("option", { value: key, selected: String(key) === String(value) }, text),
    ),
  );
  return element;
}

/** A checkbox with its label. */
export function checkbox(label, checked, onchange, attributes = {}) {
  const box = h("input", {
    type: "checkbox",
    checked,
    ...attributes,
    onchange: () => onchange(box.checked),
  });
  return h("label", { class: "check" }, box, h("span", {}, label));
}

/** A table; cells that are numbers stand to the right. */
export function table(heads, rows, attributes = {}) {
  const isFigure = (cell) =>
    cell === null || typeof cell === "number" || /^(–|(< )?\d[\d.]*)?$/.test(cell);
  const isNumber = heads.map((_, k) => rows.length > 0 && rows.every((row) => isFigure(row[k])));
  return h(
    "div",
    {
      class: "scroll",
      tabindex: "0",
      role: "group",
      "aria-label": attributes["aria-label"] ?? "Table",
    },
    h(
      "table",
      attributes,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head, k) =>
            h("th", { scope: "col", class: isNumber[k] ? "number" : "" }, head),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            { class: row.class ?? "" },
            row.map((cell, k) =>
              h(
                "td",
                { class: isNumber[k] ? "number" : "" },
                cell instanceof Node || Array.isArray(cell)
                  ? cell
                  : typeof cell === "number"
                    ? number(cell)
                    : (cell ?? "–"),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

/** The value of a colour or length of the style sheet. */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Call a function at most once a frame. */
export function oncePerFrame(work) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      work();
    });
  };
}

/** Colours of groups: told apart by everyone, and by shapes of markers besides. */
export function groupColour(k) {
  return token(`--group-${k % 7}`);
}

/** Show a sentence for a while. */
export function showMessage(text, kind = "note") {
  const box = document.getElementById("messages");
  const message = h(
    "p",
    { class: `message ${kind}` },
    text,
    h("button", { class: "close", "aria-label": "Dismiss", onclick: () => message.remove() }, "×"),
  );
  for (const shown of [...box.children])
    if (shown.textContent === message.textContent) shown.remove();
  box.append(message);
  while (box.children.length > 3) box.firstChild.remove();
  setTimeout(() => message.remove(), kind === "error" ? 15000 : 6000);
}
