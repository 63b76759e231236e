// The critical path of each process: a strip for each thread, and what of the path it depends on.

const ROWS_MAX = 10;
const [OTHER, UNKNOWN] = [-1, -2];

function criticalPaths() {
  const paths = report.critical_path.filter((path) => path.length > 0 && (path.by_thread.length > 1 || path.by_object?.length)).slice(0, report.paths.length);
  if (!paths.length) return;
  section("path", "Critical path", "What the length of the run depends on: followed from its end backwards, at each wait to the thread that ended it. Whatever else becomes faster, the run becomes no shorter.",
    paths.map((path) => onePath(path, paths.length > 1)));
}

function onePath(path, isOneOfSeveral) {
  const held = path.by_object ?? [];
  const named = held.slice(0, 3);
  const kind = (object) => {
    const index = named.findIndex((entry) => entry.object === object);
    return index < 0 ? "holders" : `holder-${index + 1}`;
  };
  const row = (color, time, prefix, ...what) => make("li", {}, swatch(color), make("span", { class: "share" }, prefix, share(time, path.length)), make("span", { class: "who" }, what));
  const rows = named.map(({ object, time, holds, sites }) => row(kind(object), time, "",
    `holding ${objectLabel(object)} in ${plural(holds, "hold")}`, sites?.[0]?.site ? [", most from ", make("span", { class: "site" }, sites[0].site)] : [], ": shorter holds can gain at most this"));
  const others = held.slice(3);
  if (others.length) rows.push(row("holders", Math.min(path.holding, sum(others, ({ time }) => time)), "\u2264 ", `holding ${plural(others.length, "other object")}`));
  if (path.other !== null) rows.push(row("running", path.other, "", "neither holding nor waiting"));
  if (path.unknown > 0) rows.push(row("unknown", path.unknown, "", "unknown: no thread of it is known to have ended the wait"));
  const title = isOneOfSeveral ? make("h3", {}, `Process ${path.pid}`) : null;
  return [title, strips(path, kind), make("ul", { class: "holding" }, rows)];
}

function strips(path, kind) {
  const strip = report.paths.find(({ pid, image }) => pid === path.pid && image === path.image);
  if (!strip?.segments.length) return null;
  const { segments, objects: names } = strip;
  const [begin, end] = [segments[0][0], segments[segments.length - 1][1]];
  const lwps = path.by_thread.slice(0, ROWS_MAX).map(({ thread }) => thread);
  const more = segments.some(([, , lwp]) => !lwps.includes(lwp));
  const width = Math.max(640, Math.min(1160, page.clientWidth - 4));
  const [left, top, row] = [Math.floor(width * 0.2), 8, 24];
  const rowCount = lwps.length + (more ? 1 : 0);
  const height = top + rowCount * row + 24;
  const x = (time) => left + ((width - left - 12) * (time - begin)) / Math.max(1, end - begin);
  const picture = draw("svg", { width, height, role: "img", "aria-label": `Critical path by thread: ${path.by_thread.slice(0, ROWS_MAX).map(({ thread, time }) => `${threadLabel(thread)} ${share(time, path.length)}`).join(", ")}` });
  for (let index = 0; index < rowCount; index += 1) {
    const y = top + index * row;
    const lwp = lwps[index];
    picture.append(draw("rect", { x: left, y: y + row - 4, width: width - left - 12, height: 1, class: "fill-axis" }));
    const entry = path.by_thread[index];
    const label = lwp === undefined ? "other threads" : `${clip(threadLabel(lwp), Math.floor(left / 6.6) - 8)} ${share(entry.time, path.length)}`;
    picture.append(draw("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, label, draw("title", {}, lwp === undefined ? label : threadLabel(lwp))));
  }
  for (const [from, until, lwp, what] of segments) {
    const index = lwps.indexOf(lwp);
    const y = top + (index < 0 ? lwps.length : index) * row;
    const [color, text] = what === OTHER ? ["running", "neither holding nor waiting"] : what === UNKNOWN ? ["unknown", "unknown"] : [kind(names[what]), `holding ${objectLabel(names[what])}`];
    const rect = { x: x(from), y: y + 2, width: Math.max(0.6, x(until) - x(from)), height: row - 6, class: `fill-${color}` };
    picture.append(draw("rect", rect, draw("title", {}, `${threadLabel(lwp)}, ${duration(from)} to ${duration(until)}: ${text}`)));
  }
  const ticks = 5;
  for (let tick = 0; tick <= ticks; tick += 1) {
    const time = begin + ((end - begin) * tick) / ticks;
    const anchor = tick === 0 ? "start" : tick === ticks ? "end" : "middle";
    picture.append(draw("text", { x: x(time), y: height - 6, "text-anchor": anchor, class: "soft" }, duration(time)));
  }
  return scrollBox("Critical path by thread", picture);
}
