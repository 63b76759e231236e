// The objects that cost most: who held each while others waited, and how long the waits were.

const CARDS_MAX = 9;

function holding(object) {
  const total = object.waited;
  const named = placesOf(object).map(({ threads, site, sum: time }, index) => [`holder-${index + 1}`, time, threads, site]);
  // Holders elsewhere make up the difference.
  const rest = Math.max(0, total - sum(named, ([, time]) => time) - object.handoff - object.unknown);
  const parts = [
    ...named,
    ["holders", rest, "held by others, or from other places", null],
    ["handoff", object.handoff, "handoff: released, and not yet taken", null],
    ["unknown", object.unknown, "unknown: nobody is known to have held it", null],
  ].filter(([, time]) => time * 2000 > total);
  const rows = parts.map(([kind, time, who, site]) =>
    make("li", {}, swatch(kind), make("span", { class: "share" }, share(time, total)),
      make("span", { class: "who" }, kind.startsWith("holder-") ? `held by ${who}` : who, site ? [" from ", make("span", { class: "site" }, site)] : [])));
  return [bar(total, parts.map(([kind, time, who]) => [kind, time, `${share(time, total)} ${who}`]), true), make("ul", { class: "holding" }, rows)];
}

function wakers(object) {
  const total = object.waits;
  const rows = placesOf(object).map(({ threads, site, sum: times }) =>
    make("li", {}, make("span", { class: "share" }, share(times, total)), make("span", { class: "who" }, `ended by ${threads}`, site ? [" at ", make("span", { class: "site" }, site)] : [])));
  return [make("ul", { class: "holding" }, rows)];
}

// Bars by powers of two of the duration.
function histogram(object) {
  const bins = report.histograms[object.object];
  if (!bins?.length) return null;
  const [first, last] = [bins[0][0], bins[bins.length - 1][0]];
  const columns = Math.max(last - first + 1, 8);
  const [width, height, base] = [330, 92, 70];
  const step = width / columns;
  const most = Math.max(...bins.map(([, waits]) => waits));
  const text = bins.map(([power, waits]) => `${count(waits)} of ${duration(2 ** power)} to ${duration(2 ** (power + 1))}`).join(", ");
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Waits by duration: ${text}` });
  picture.append(draw("rect", { x: 0, y: base, width, height: 1, class: "fill-axis" }));
  for (const [power, waits] of bins) {
    const size = Math.max(2, (base - 12) * (waits / most));
    const label = `${plural(waits, "wait")} of ${duration(2 ** power)} to ${duration(2 ** (power + 1))}`;
    picture.append(draw("rect", { x: (power - first) * step + 1, y: base - size, width: Math.max(1, step - 2), height: size, class: object.blamed ? "fill-waits" : "fill-idle" }, draw("title", {}, label)));
  }
  const every = Math.ceil(columns / 5);
  for (let column = 0; column * step < width - 45; column += every) {
    picture.append(draw("text", { x: column * step + 1, y: height - 6, class: "soft" }, duration(2 ** (first + column))));
  }
  return picture;
}

function objectCards() {
  const shown = waited.slice(0, CARDS_MAX);
  if (!shown.length) return;
  const cards = shown.map((object) => {
    const { wait } = object;
    const named = object.site && object.name?.includes(object.site);
    const site = make("p", { class: "soft" }, object.name ? object.object : [], object.name && object.site && !named ? " \u00b7 " : [], object.site && !named ? ["first used at ", make("span", { class: "site" }, object.site)] : []);
    const figures = `${duration(object.waited)} in ${plural(object.waits, "wait")} \u00b7 mean ${duration(wait.mean)} \u00b7 p99 ${duration(wait.p99)} \u00b7 max ${duration(wait.max)}`;
    const held = object.held === null ? null : make("p", { class: "soft" }, `held for ${duration(object.held)} in ${plural(object.holds, "hold")}`);
    return make("article", { class: "card" }, make("h3", {}, objectLabel(object.object)), make("p", {}, figures), held, site, object.blamed ? holding(object) : wakers(object), histogram(object));
  });
  section("costly", "What threads waited for most", "Locks first (contention), then conditions, semaphores and the like (idleness). The bars at the bottom count waits by how long they were.", make("div", { class: "cards" }, cards));
}
