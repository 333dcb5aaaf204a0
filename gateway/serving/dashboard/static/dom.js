// Elements, made from texts only: what a request or a worker says is never read as HTML.

/** An element. Attributes: functions are event listeners, null and false are left out, true is an empty value. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** A table with a caption for screen readers. A column is its label, [label, class], or an element of the kind th. */
export function table(caption, columns, rows) {
  const heads = columns.map((column) => {
    if (column instanceof Element) return column;
    const [label, kind] = [column].flat();
    return el("th", { scope: "col", class: kind }, label);
  });
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", { class: "hidden" }, caption), el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows)),
  );
}

/** Terms and their descriptions; those without a description are left out. */
export function descriptions(pairs) {
  const shown = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return el("dl", {}, shown.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));
}

/** A labelled field of a form. */
export function field(label, control) {
  return el("label", {}, el("span", {}, label), control);
}

/** A select with options [value, text]. */
export function select(options, chosen, onchange) {
  return el(
    "select",
    { change: (event) => onchange(event.target.value) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
}

/** A word with a meaning that its colour repeats: allowed, denied, failed, and so on. */
export function badge(word, kind = word) {
  return el("span", { class: `badge ${kind}` }, word);
}
