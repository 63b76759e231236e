// What was recorded, the verdict in a sentence, what is wrong, and what is missing.

const { span, thread_time: lives, contention, idleness } = report;
const waited = report.objects.filter((object) => object.waits > 0);
const locks = waited.filter((object) => object.blamed !== null && object.waited > 0);

function recorded() {
  const start = report.origin ? new Date(Number(report.origin) * 1000) : null;
  const parts = [
    start ? `recorded from ${start.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" })}` : "nothing was recorded",
    span === null ? null : `for ${duration(span)}`,
    report.since === null && report.until === null ? null : `only from ${duration(report.since ?? 0)} to ${duration(report.until ?? span)} after the first record`,
    plural(sum(report.processes, (process) => process.records), "record"),
    plural(report.processes.length, "program"),
    plural(sum(report.processes, (process) => process.threads), "thread"),
  ];
  document.getElementById("recorded").textContent = parts.filter(Boolean).join(" \u00b7 ");
}

function verdict() {
  const element = make("p", { class: "verdict" });
  if (!contention) {
    element.append("No thread waited for a lock.");
  } else {
    element.append(make("strong", {}, `Threads waited ${duration(contention)} for locks`), `, ${share(contention, lives)} of the time that they lived. `);
    const worst = locks[0];
    if (worst) {
      element.append(`${share(worst.waited, contention)} of that was for `, make("strong", {}, objectLabel(worst.object)));
      const [first] = placesOf(worst);
      if (first) {
        element.append(", ", share(first.sum, worst.waited), " of it while ", make("strong", {}, first.threads), " held it");
        if (first.site) element.append(" from ", make("strong", { class: "site" }, first.site));
      }
      element.append(".");
    }
  }
  page.append(element);
}

// Who held an object while others waited, or ended waits for it, and where; the most first.
const placesOf = (object) => (report.places[object.object] ?? []).map(([threads, site, sum]) => ({ threads, site, sum }));

function timeOfThreads() {
  const other = Math.max(0, lives - contention - idleness);
  const parts = [
    ["contention", contention, `contention ${duration(contention)}, ${share(contention, lives)}`, "waiting for locks"],
    ["idleness", idleness, `idleness ${duration(idleness)}, ${share(idleness, lives)}`, "waiting for work or for other threads"],
    ["other", other, `other ${duration(other)}, ${share(other, lives)}`, idleness === null ? "computing, or waiting for something else" : "computing, or waiting for something that is not recorded"],
  ].filter(([, size]) => size !== null);
  const legend = parts.map(([kind, , text, meaning]) => make("li", {}, swatch(kind), `${text}: ${meaning}`));
  const like = report.objects.filter((object) => object.like_lock).sort((one, other) => other.waited - one.waited).slice(0, 3);
  const notes = like.map((object) => make("li", {}, make("strong", {}, objectLabel(object.object)), `: ${plural(object.waits, "wait")}, ${duration(object.waited)}, counted as idleness; its waiters wake each other as those of a lock do`));
  section("time", "Time of all threads", null, bar(lives, parts), make("ul", { class: "legend" }, legend), notes.length ? make("ul", {}, notes) : null);
}

function wrongs() {
  const items = (title, list, item) => (list?.length ? [make("h2", {}, title), make("ul", {}, list.map((entry) => make("li", {}, item(entry))))] : []);
  const call = ({ thread, call, object, mutex, site }) => `${threadLabel(thread)} in ${call}${object ? ` of ${objectLabel(object)}` : ""}${mutex ? `, was woken and waits for ${objectLabel(mutex)}` : ""}${site ? ` at ${site}` : ""}`;
  const chain = (stuck) => `${call(stuck)}: waits for ${threadLabel(stuck.held_by)}; ${stuck.note}`;
  const parts = [
    ...(report.deadlocks ?? []).flatMap(({ threads }) =>
      items(threads.length === 1 ? "Deadlock: a thread waits for itself" : `Deadlock of ${threads.length} threads: each waits for the next, the last for the first`, threads,
        (thread) => `${call(thread)}, holds ${thread.holds.map(objectLabel).join(", ") || "nothing"}`)),
    ...items("Stuck: no running thread can end these waits", (report.stuck ?? []).filter((stuck) => stuck.certain), chain),
    ...items("Stuck, unless a running thread wakes the last one of the chain", (report.stuck ?? []).filter((stuck) => !stuck.certain), chain),
    ...items("Possible deadlocks: objects that were taken in different orders", report.cycles, ({ edges }) =>
      edges.map((edge) => `${objectLabel(edge.from)} (${placeOf(edge.site_from)}), then ${objectLabel(edge.to)} (${placeOf(edge.site_to)}) by ${threadLabel(edge.thread)}`).join("; ")),
    ...items("Misuse", report.misuse, (misuse) => `${misuse.text ?? misuse.kind}: ${objectLabel(misuse.object ?? "")}${misuse.objects > 1 ? ` and ${misuse.objects - 1} more` : ""} ${threadLabel(misuse.thread)} at ${placeOf(misuse.site)}, ${plural(misuse.count, "time")}`),
  ];
  if (parts.length) page.append(make("section", { class: "wrong", "aria-label": "What is wrong" }, parts));
}

const MISSING = {
  lost: ({ count: lost }) => (lost === null ? "its newest records may be missing: its buffers were in its own memory" : `${plural(lost, "record")} were lost`),
  ring: ({ until }) => (until === null ? "older records were overwritten by a ring" : `records before ${duration(until)} were overwritten by a ring`),
  changed: () => "what is recorded was changed while it ran (trace-cat set)",
  level: () => "only calls that waited were recorded (THR_TRACE_LEVEL=blocked)",
  events: () => "some calls that may be part of a deadlock were not recorded (THR_TRACE_EVENTS)",
  release: ({ count: missing }) => `${plural(missing, "release")} have no record`,
  acquisition: ({ count: missing }) => `${plural(missing, "acquisition")} have no record`,
  entry: ({ count: missing }) => `${plural(missing, "entry record")} are missing`,
  return: ({ count: missing }) => `${plural(missing, "return record")} are missing, or their calls were left by a jump`,
  holder: ({ count }) => `who holds the locks that ${plural(count, "thread")} waited for at the end`,
  jump: ({ thread, count }) => `whether ${plural(count, "thread")} are in a deadlock: ${threadLabel(thread)} made records within its call, or left it by a jump`,
  owner: ({ thread, count }) => `whether ${plural(count, "thread")} are in a deadlock: the owner that ${threadLabel(thread)} saw may have released the lock without a record`,
  routine: ({ thread }) => `whether ${threadLabel(thread)} runs a routine of pthread_once or waits for one`,
  cancelled: ({ thread }) => `whether ${threadLabel(thread)} is stuck: whom it waits for was cancelled in a wait, and may leave that`,
  left: ({ thread }) => `whether ${threadLabel(thread)} is stuck: whom it waits for made records within its wait, or left it by a jump`,
  robust: ({ thread }) => `whether ${threadLabel(thread)} is stuck: whom it waits for has ended, and the mutex may be robust`,
  unlocked: ({ thread }) => `whether ${threadLabel(thread)} is stuck: other threads may unlock what the one has taken that it waits for`,
  waker: ({ thread }) => `whether ${threadLabel(thread)} is stuck: whom it waits for waits to be woken, and other threads were running`,
  killed: ({ thread }) => `whether ${threadLabel(thread)} is stuck: whom it waits for is another process's, which has no recorded end, and may have been killed`,
  ending: ({ thread }) => `whether ${threadLabel(thread)} is stuck: whom it waits for is ending, and may still run destructors`,
};

function processList(pids) {
  const more = pids.length > 2 ? ` and ${pids.length - 2} more` : "";
  return pids.length ? `process${pids.length === 1 ? "" : "es"} ${pids.slice(0, 2).join(", ")}${more}: ` : "";
}

function missing() {
  // Processes that share a reason share its line: a server may have hundreds.
  const processes = new Map();
  for (const entry of report.incomplete) {
    const reason = MISSING[entry.kind]?.(entry) ?? entry.kind;
    processes.set(reason, (processes.get(reason) ?? new Set()).add(entry.pid));
  }
  const lines = [...processes].map(([reason, pids]) => `${processList([...pids].filter((pid) => pid !== null))}${reason}`);
  lines.push(...report.missing_names);
  if (lines.length) page.append(make("section", { class: "missing" }, make("h2", {}, "What is missing in the records"), make("ul", {}, lines.map((line) => make("li", {}, line)))));
}
