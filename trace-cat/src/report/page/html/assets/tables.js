// Tables that are sorted by their headers and filtered by a text.

const ROWS_FIRST = 25;

// A column: a title, its value for sorting, and how it is shown. The first one is the row's name.
const text = (title, value) => ({ title, value, show: (row) => value(row) ?? "\u2013", isText: true });
const number = (title, value) => ({ title, value, show: (row) => count(value(row)) });
// A site with the functions of its stack, which is shown when the site is chosen.
const frame = ({ function: name, file, line }) => (file ? `${name} ${file.split("/").pop()}:${line}` : name);
function siteCell(row) {
  if (!(row.stack?.length > 1)) return row.site;
  return make("details", {}, make("summary", {}, row.site), make("ol", { start: 0 }, row.stack.map((called) => make("li", {}, frame(called)))));
}
const processId = { title: "Process", value: (row) => row.pid, show: (row) => String(row.pid) };
const time = (title, value) => ({ title, value, show: (row) => duration(value(row)) });

function table(id, title, hint, rows, columns, command) {
  if (!rows.length) return;
  let [sorted, isAscending, shown, filter] = [null, false, ROWS_FIRST, ""];
  const body = make("tbody");
  const status = make("span", { class: "soft", role: "status" });
  const more = make("button", { type: "button" });
  const haystacks = new Map(rows.map((row) => [row, columns.filter((column) => column.isText).map((column) => column.value(row) ?? "").join(" ").toLowerCase()]));
  const headers = columns.map((column) => {
    const button = make("button", { type: "button" }, column.title);
    const header = make("th", { scope: "col", class: column.isText ? "name" : null }, button);
    button.addEventListener("click", () => {
      isAscending = sorted === column ? !isAscending : Boolean(column.isText);
      sorted = column;
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
      update();
    });
    return header;
  });
  function compare(a, b) {
    const [left, right] = [sorted.value(a), sorted.value(b)];
    if (left === right) return 0;
    // What is not known comes last.
    if (left === null || left === undefined) return 1;
    if (right === null || right === undefined) return -1;
    const order = sorted.isText ? String(left).localeCompare(String(right), "en", { numeric: true }) : left - right;
    return isAscending ? order : -order;
  }
  function update() {
    const chosen = rows.filter((row) => haystacks.get(row).includes(filter));
    if (sorted) chosen.sort(compare);
    body.replaceChildren(...chosen.slice(0, shown).map((row) => make("tr", {}, columns.map((column, index) => {
      const attributes = { class: column.isText ? "name" : null };
      return index === 0 ? make("th", { scope: "row", ...attributes }, column.show(row)) : make("td", attributes, column.show(row));
    }))));
    const hidden = chosen.length - Math.min(shown, chosen.length);
    more.hidden = hidden === 0;
    more.textContent = `Show ${count(hidden)} more`;
    const less = report.left_out[id] ?? 0;
    status.textContent = `${count(chosen.length - hidden)} of ${count(rows.length + less)}${less ? `: this page has the first ${count(rows.length)}, ${command} prints all` : ""}`;
  }
  more.addEventListener("click", () => {
    shown = rows.length;
    update();
  });
  const input = make("input", { type: "search", placeholder: "Filter", "aria-label": `Filter the table: ${title}` });
  input.addEventListener("input", () => {
    filter = input.value.toLowerCase();
    update();
  });
  const grid = make("table", {}, make("thead", {}, make("tr", {}, headers)), body);
  section(id, title, hint, make("div", { class: "tools" }, rows.length > 8 ? input : null, status, more), scrollBox(title, grid));
  update();
}

function mainHolder(object) {
  const [first] = object.blamed ? placesOf(object) : [];
  return first ? `${share(first.sum, object.waited)} ${first.threads}${first.site ? ` from ${first.site}` : ""}` : null;
}

function tables() {
  table("objects", "Objects", "Held by: who held the object for most of the time that others waited for it.", report.objects, [
    text("Object", (row) => objectLabel(row.object)), number("Waits", (row) => row.waits), time("Waited", (row) => row.waited), text("Held by", mainHolder), time("Mean", (row) => row.wait?.mean), time("p50", (row) => row.wait?.p50),
    time("p99", (row) => row.wait?.p99), time("Max", (row) => row.wait?.max), number("Holds", (row) => row.holds), time("Held", (row) => row.held), time("Hold p99", (row) => row.hold?.p99),
    number("Max waiters", (row) => row.max_waiters), number("Calls", (row) => row.calls), text("First used at", (row) => row.site), text("Process and address", (row) => row.object),
  ], "trace-cat report --by object");
  table("threads", "Threads", "Caused: how long others waited for the thread.", report.threads, [
    text("Thread", (row) => threadLabel(row.thread)), time("Lived", (row) => Math.min(row.end ?? span, report.until ?? Infinity) - Math.max(row.begin, report.since ?? 0)), number("Waits", (row) => row.waits), time("Contention", (row) => row.contention),
    time("Idleness", (row) => row.idleness), time("Caused", (row) => row.caused), processId, text("Start routine", (row) => row.start),
  ], "trace-cat report --by thread");
  table("sites", "Sites", "Where calls are. Blamed: how long others waited for what was acquired there. A site with a recorded stack opens.", report.sites, [
    { ...text("Site", (row) => row.site), show: siteCell }, number("Calls", (row) => row.calls), number("Waits", (row) => row.waits), time("Contention", (row) => row.contention), time("Blamed", (row) => row.blamed),
    time("Idleness", (row) => row.idleness), time("Held", (row) => row.held),
  ], "trace-cat report --by site");
  table("pairs", "Pairs", "Who waited for whom, and for what.", report.pairs, [
    text("Waiter", (row) => threadLabel(row.waiter)), text("Holder", (row) => threadLabel(row.holder)), text("Object", (row) => objectLabel(row.object)), number("Waits", (row) => row.waits), time("Waited", (row) => row.waited),
  ], "trace-cat report --by pair");
  table("processes", "Programs", null, report.processes, [
    text("Command", (row) => row.command || row.exe), processId, text("Ended", (row) => row.ended), time("From", (row) => row.begin), time("Until", (row) => row.last_seen),
    number("Threads", (row) => row.threads), number("Records", (row) => row.records), number("Lost", (row) => row.lost),
  ], "trace-cat report -F json");
}
