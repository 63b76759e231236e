// Elements of the page. Whatever comes from the trace goes in as text, never as markup.

const SVG = document.getElementById("svg").namespaceURI;
const report = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("main");

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A section with a heading, and a sentence that says what it shows.
function section(id, title, hint, ...children) {
  const heading = make("h2", { id }, title);
  const element = make("section", { "aria-labelledby": id }, heading, hint ? make("p", { class: "soft" }, hint) : null, children);
  page.append(element);
  return element;
}

// A box that scrolls by itself; the keyboard reaches it.
const scrollBox = (label, child) => make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, child);

// A bar of parts: [class, size, text].
function bar(total, parts, slim) {
  const element = make("div", { class: slim ? "bar slim" : "bar", role: "img", "aria-label": parts.map(([, , text]) => text).join(", ") });
  for (const [kind, size, text] of parts) {
    if (size > 0) {
      const part = make("span", { class: kind, title: text });
      part.style.width = `${(100 * size) / total}%`;
      element.append(part);
    }
  }
  return element;
}

const swatch = (kind) => make("span", { class: `swatch ${kind}`, "aria-hidden": "true" });

// Numbers as people read them: 8.57 ms, 12.3 %.
function duration(nanoseconds) {
  if (nanoseconds === null || nanoseconds === undefined) return "\u2013";
  if (nanoseconds < 1000) return `${Math.round(nanoseconds)} ns`;
  for (const [unit, name] of [[1e3, "\u00b5s"], [1e6, "ms"], [1e9, "s"]]) {
    for (const digits of [2, 1, 0]) {
      // Steps are integers, so that halves are exact, as the text page has them.
      const number = Math.round(nanoseconds / (unit / 10 ** digits));
      if (number < 1000 || (unit === 1e9 && digits === 0)) return `${(number / 10 ** digits).toFixed(digits)} ${name}`;
    }
  }
}

const count = (number) => (number === null || number === undefined ? "\u2013" : number.toLocaleString("en"));
const share = (part, total) => (total > 0 ? `${((100 * part) / total).toFixed(1)} %` : "\u2013");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const sum = (list, value) => list.reduce((total, item) => total + (value(item) ?? 0), 0);
// The beginning and the end of a text that is too long: paths differ in their ends.
const clip = (text, length) => (text.length > length ? `${text.slice(0, Math.ceil(length / 3))}\u2026${text.slice(-Math.floor((2 * length) / 3) + 1)}` : text);

// Names of what the report refers to.
const objects = new Map(report.objects.map((object) => [object.object, object]));
const threadGroup = (lwp) => report.names[lwp] ?? `LWP ${lwp}`;
const threadLabel = (lwp) => (report.names[lwp] ? `${report.names[lwp]}/${lwp}` : `LWP ${lwp}`);
const placeOf = (site) => site ?? "a site that is not recorded";
function objectLabel(name) {
  const object = objects.get(name);
  if (!object) return name;
  const label = object.name?.startsWith(object.kind) ? object.name : `${object.kind} ${object.name ?? name}`;
  return object.lives ? `${label}, ${object.lives} lives` : label;
}
