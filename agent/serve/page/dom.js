// Elements of the page. Whatever comes from outside goes in as text, never as markup.

export const $ = (id) => document.getElementById(id);

const fill = (element, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(
    ...children.flat().filter((child) => child !== undefined && child !== null && child !== "" && child !== false),
  );
  return element;
};

// `make("p", {class: "soft"}, "text", element, …)`
export const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

export const button = (text, run, attributes = {}) =>
  make("button", { type: "button", on: { click: run }, ...attributes }, text);

export const show = (element, is_shown) => {
  element.hidden = !is_shown;
};

// One line of what went wrong, where it went wrong; none where there is nothing to say.
export const complain = (element, text) => {
  element.textContent = text ?? "";
  element.hidden = !text;
};

export const option = (value, text = value, selected = false) => make("option", { value, selected }, text);

export const select = (attributes, values, chosen) =>
  make("select", attributes, ...values.map((value) => option(value, value, value === chosen)));
