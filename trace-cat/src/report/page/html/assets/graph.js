// Who waits for whom: flows from waiting threads through objects to the threads that held them, as wide as the time waited.

const FLOWS_MAX = 24;
const NODES_MAX = 12;

// If there are many threads, those of one name are one node. Nodes beyond the largest are put together.
function flows() {
  const pairs = report.pairs.filter((pair) => pair.waited > 0);
  const threads = new Set(pairs.flatMap((pair) => [pair.waiter, pair.holder]));
  const thread = threads.size > NODES_MAX ? threadGroup : threadLabel;
  const column = (name) => {
    const times = new Map();
    for (const pair of pairs) times.set(name(pair), (times.get(name(pair)) ?? 0) + pair.waited);
    const largest = [...times].sort((a, b) => b[1] - a[1]).slice(0, NODES_MAX).map(([key]) => key);
    return (pair) => (largest.includes(name(pair)) ? name(pair) : "others");
  };
  const names = [column((pair) => thread(pair.waiter)), column((pair) => objectLabel(pair.object)), column((pair) => thread(pair.holder))];
  const merged = new Map();
  for (const pair of pairs) {
    const stops = names.map((name) => name(pair));
    const key = JSON.stringify(stops);
    const flow = merged.get(key) ?? { stops, waited: 0, waits: 0 };
    flow.waited += pair.waited;
    flow.waits += pair.waits;
    merged.set(key, flow);
  }
  return [...merged.values()].sort((a, b) => b.waited - a.waited);
}

function graph() {
  const all = flows();
  if (!all.length) return;
  const shown = all.slice(0, FLOWS_MAX);
  const total = sum(shown, (flow) => flow.waited);
  const [width, top, bar, gap] = [Math.max(700, Math.min(1160, page.clientWidth - 4)), 30, 12, 16];
  const classes = ["node-waiter", "node-object", "node-holder"];
  const columns = [0, 1, 2].map((index) => {
    const nodes = new Map();
    for (const flow of shown) {
      const name = flow.stops[index];
      nodes.set(name, (nodes.get(name) ?? 0) + flow.waited);
    }
    return new Map([...nodes].sort((a, b) => b[1] - a[1]));
  });
  const most = Math.max(...columns.map((nodes) => nodes.size));
  const scale = Math.max(140, most * 22) / total;
  const thickness = (time) => Math.max(1.5, time * scale);
  const label = Math.floor(width * 0.24);
  const x = [label, Math.floor(width / 2 - bar / 2), width - label - bar];
  let height = 0;
  const picture = draw("svg", { width, role: "img", "aria-label": `Who waited for whom: ${shown.slice(0, 8).map(({ stops, waited: time }) => `${stops[0]} for ${stops[1]} held by ${stops[2]} ${duration(time)}`).join("; ")}. All are in the table of pairs.` });
  const ends = columns.map(() => new Map());
  const labels = [];
  columns.forEach((nodes, index) => {
    let y = top;
    for (const [name, time] of nodes) {
      const size = Math.max(4, sum(shown.filter((flow) => flow.stops[index] === name), (flow) => thickness(flow.waited)));
      ends[index].set(name, [y, y]);
      const title = draw("title", {}, `${name}: ${duration(time)}`);
      labels.push(draw("rect", { x: x[index], y, width: bar, height: size, class: classes[index] }, title));
      const text = [{ x: label - 8, "text-anchor": "end" }, { x: x[1] + bar / 2, "text-anchor": "middle" }, { x: x[2] + bar + 8 }][index];
      const room = Math.floor((index === 1 ? width * 0.3 : label - 12) / 6.6) - 10;
      const line = index === 1 ? y - 4 : y + Math.min(size / 2 + 4, 14);
      labels.push(draw("text", { ...text, y: line }, `${clip(name, room)} \u00b7 ${duration(time)}`, draw("title", {}, `${name}: ${duration(time)}`)));
      y += Math.max(size, 14) + gap;
    }
    height = Math.max(height, y);
  });
  for (const { stops, waited: time, waits } of shown) {
    const size = thickness(time);
    for (const step of [0, 1]) {
      const [from, to] = [ends[step].get(stops[step]), ends[step + 1].get(stops[step + 1])];
      const [y1, y2] = [from[1] + size / 2, to[0] + size / 2];
      from[1] += size;
      to[0] += size;
      const [x1, x2] = [x[step] + bar, x[step + 1]];
      const middle = (x1 + x2) / 2;
      picture.append(draw("path", { d: `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "stroke-width": size, class: "flow" }, draw("title", {}, `${stops[0]} waited ${duration(time)} in ${plural(waits, "wait")} for ${stops[1]}, held by ${stops[2]}`)));
    }
  }
  ["waiting", "for", "held by"].forEach((title, index) => {
    picture.append(draw("text", { x: [label + bar, x[1] + bar / 2, x[2]][index], y: 12, "text-anchor": ["end", "middle", "start"][index], class: "soft" }, title));
  });
  picture.append(...labels);
  picture.setAttribute("height", height);
  const less = all.length - shown.length;
  section("graph", "Who waits for whom", `From the threads that waited, through the lock, to those that held it meanwhile. The wider, the longer.${less > 0 ? ` ${plural(less, "smaller flow")} not drawn: see the table of pairs.` : ""}`, scrollBox("Who waits for whom", picture));
}
