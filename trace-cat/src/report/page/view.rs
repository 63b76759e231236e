//! What a report shows of an analysis, sorted: the largest first.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::report::comparison::TraceComparison;
use crate::report::contention::{
    Analysis, ImageEnd, ObjectKind, ObjectState, ProgramState, SiteState, ThreadState, WaitBlocks, WaitGraph,
};
use crate::report::lock_order::LockCycle;
use crate::report::misuse::{Misuse, MisuseKind};
use crate::report::object_names::ObjectNames;
use crate::report::process_info::ProcessInfo;
use crate::report::recorded_process::RecordedProcess;
use crate::report::trace_names::TraceNames;
use crate::symbols::{CodeAddress, CodeFrame, Symbolizer};

/// An analysis, with what is known of its processes.
pub struct ReportView<'a> {
    pub analysis: &'a Analysis,
    pub graph: &'a WaitGraph,
    /// By process ID.
    pub recorded: &'a HashMap<u32, RecordedProcess>,
    pub known: &'a HashMap<u32, ProcessInfo>,
    pub symbols: &'a Symbolizer,
    /// The selected objects: by contention, then by idleness.
    pub objects: Vec<u32>,
    /// The selected threads: by contention, then by idleness.
    pub threads: Vec<u32>,
    /// What changed since another trace.
    pub comparison: Option<TraceComparison>,
    /// The names of all objects as far as symbols give any.
    object_names: ObjectNames,
}

/// How many waits of a thread for an object another one is to blame for, and how long they were.
#[derive(Clone, Copy, Debug)]
pub struct PairRow {
    pub waiter: u32,
    pub holder: u32,
    pub object: u32,
    pub waits: u64,
    pub waited: u64,
}

impl PairRow {
    /// The longest first.
    pub fn rank(&self) -> (Reverse<(u64, u64)>, [u32; 3]) {
        (Reverse((self.waited, self.waits)), [self.waiter, self.holder, self.object])
    }
}

/// The figures of a site, in all processes that have it.
#[derive(Clone, Debug, Default)]
pub struct SiteRow {
    pub place: String,
    /// One of the sites of this name: of those with a recorded stack the one with the longest waits, else the one with the most.
    pub site: u32,
    pub calls: u64,
    pub waits: u64,
    pub wait_blocks: WaitBlocks,
    pub contention: u64,
    pub idleness: u64,
    /// How long objects were held that were acquired here; `None` if that is not known.
    pub held: Option<u64>,
    /// How long others waited for an object that was acquired here.
    pub blamed: u64,
}

impl<'a> ReportView<'a> {
    pub fn new(
        analysis: &'a Analysis,
        graph: &'a WaitGraph,
        recorded: &'a HashMap<u32, RecordedProcess>,
        known: &'a HashMap<u32, ProcessInfo>,
        symbols: &'a Symbolizer,
    ) -> ReportView<'a> {
        let mut view = ReportView {
            analysis,
            graph,
            recorded,
            known,
            symbols,
            objects: Vec::new(),
            threads: Vec::new(),
            comparison: None,
            object_names: ObjectNames::default(),
        };
        let selection = &analysis.selection;
        let is_wanted = |object: &ObjectState| {
            // Of another process's objects, those that selected threads wait for.
            let is_used = selection.wants_process(analysis.processes[object.process as usize].pid);
            (is_used || object.figures.wait.count() > 0)
                && selection.wants_object(object.address, object.kind)
                && (!selection.only_contention || ReportView::has_blame(object))
                && (!selection.has_times() || object.figures.is_used())
        };
        view.objects =
            analysis.objects.numbers().filter(|index| is_wanted(&analysis.objects[*index as usize])).collect();
        view.objects.sort_by_cached_key(|index| {
            let figures = &analysis.objects[*index as usize].figures;
            (Reverse((figures.contention, figures.idleness, figures.calls)), *index)
        });
        let is_wanted = |thread: &ThreadState| {
            let pid = analysis.processes[thread.process as usize].pid;
            let is_wanted =
                selection.wants_process(pid) && (selection.lwps.is_empty() || selection.lwps.contains(&thread.lwp));
            is_wanted && selection.overlaps(thread.begin, view.thread_end(thread))
        };
        let indexes = 0..analysis.threads.len() as u32;
        view.threads = indexes.filter(|index| is_wanted(&analysis.threads[*index as usize])).collect();
        view.threads.sort_by_cached_key(|index| {
            let thread = &analysis.threads[*index as usize];
            (Reverse((thread.contention, thread.idleness)), *index)
        });
        view.object_names.extend(view.names(), analysis.objects.len());
        view
    }

    /// The sites of selected processes, and those that their waits concern: by contention, blame, idleness, and calls. All of them
    /// are looked up in the symbols.
    pub fn sites(&self) -> Vec<SiteRow> {
        let mut rows: HashMap<String, SiteRow> = HashMap::new();
        let sites = &self.analysis.sites.sites;
        // The stack of the longest waits is shown.
        let rank = |site: &SiteState| (site.stack > 0, site.contention + site.idleness, site.calls);
        let is_wanted = |site: &SiteState| {
            self.analysis.selection.wants_process(self.pid(site.process)) || site.waits > 0 || site.blamed > 0
        };
        for (index, site) in (0..).zip(sites).skip(1).filter(|(_, site)| is_wanted(site)) {
            let Some(place) = self.place(index) else { continue };
            let row = rows.entry(place).or_insert_with(|| SiteRow { held: Some(0), ..SiteRow::default() });
            if row.site == 0 || rank(site) > rank(&sites[row.site as usize]) {
                row.site = index;
            }
            row.calls += site.calls;
            row.waits += site.waits;
            row.wait_blocks.merge(&site.wait_blocks);
            row.contention += site.contention;
            row.idleness += site.idleness;
            row.held = row.held.zip(self.held_at(site)).map(|(sum, held)| sum + held);
            row.blamed += site.blamed;
        }
        let rows = rows.into_iter().map(|(place, row)| SiteRow { place, ..row });
        let mut rows: Vec<SiteRow> = rows.collect();
        rows.sort_by(|a, b| {
            let key =
                |row: &SiteRow| (Reverse((row.contention, row.blamed, row.idleness, row.calls)), row.place.clone());
            key(a).cmp(&key(b))
        });
        rows
    }

    /// How long objects were held that were acquired at a site; `None` if holds that began there may have no record.
    fn held_at(&self, site: &SiteState) -> Option<u64> {
        let knowledge = self.analysis.processes[site.process as usize].knowledge;
        // A lock that waits by futex(2) makes no record where it is free.
        let is_of_futex = matches!(site.futex_lock, Some(Some(_)));
        (!knowledge.leaves_calls_out() && !is_of_futex).then_some(site.held)
    }

    /// Who waited for whom, the longest first.
    pub fn pairs(&self) -> Vec<PairRow> {
        let row = |(&(waiter, holder, object), &(waits, waited))| PairRow { waiter, holder, object, waits, waited };
        let mut pairs: Vec<PairRow> = self.analysis.pairs.iter().map(row).collect();
        pairs.sort_by_key(PairRow::rank);
        pairs
    }

    /// Possible deadlocks; `None` where not all calls on locks are recorded, or not all that orders threads, and if they are no part
    /// of the analysis.
    pub fn cycles(&self) -> Option<Vec<&'a LockCycle>> {
        self.analysis.order.as_ref()?;
        let selection = &self.analysis.selection;
        let mut processes = self.analysis.processes.iter().filter(|process| selection.wants_process(process.pid));
        let is_unknown = |process: &ProgramState| process.knowledge.only_blocked || process.knowledge.is_selective;
        if processes.any(is_unknown) {
            return None;
        }
        let is_wanted = |cycle: &&LockCycle| {
            cycle.steps.iter().any(|step| {
                let (thread, object) = (self.thread(step.thread), self.object(step.from));
                selection.wants(self.pid(thread.process), thread.lwp, Some(object.identity()))
            })
        };
        Some(self.analysis.cycles.iter().filter(is_wanted).collect())
    }

    /// Possible deadlocks that have not come about.
    pub fn new_cycles(&self) -> Vec<&'a LockCycle> {
        let has_come_about = |cycle: &LockCycle| {
            self.graph.deadlocks.iter().any(|deadlock| {
                let is_waited_for = |object| deadlock.iter().any(|blocked| blocked.call.wanted() == Some(object));
                cycle.steps.iter().all(|step| is_waited_for(step.to))
            })
        };
        self.cycles().into_iter().flatten().filter(|cycle| !has_come_about(cycle)).collect()
    }

    /// Misuse with how many objects it was of, in the order of kinds, of each kind the most frequent first. What a process does in a line
    /// of the source is one entry, also if several sites are there: the code of the line may stand in several places.
    pub fn misuse(&self) -> Vec<(Misuse, usize)> {
        let is_wanted = |misuse: &&Misuse| {
            let thread = self.thread(misuse.thread);
            let object = misuse.object.map(|object| self.object(object).identity());
            self.analysis.selection.wants(self.pid(thread.process), thread.lwp, object)
        };
        let mut misuse: Vec<(Misuse, HashSet<u32>)> = Vec::new();
        let mut indexes: HashMap<(MisuseKind, u32, String), usize> = HashMap::new();
        for row in self.analysis.misuse.rows.iter().filter(is_wanted) {
            let objects = self.analysis.misuse.objects_of(row);
            let place = self.place(row.site).map(|place| (row.kind, self.thread(row.thread).process, place));
            match place.map(|place| *indexes.entry(place).or_insert(misuse.len())) {
                Some(index) if index < misuse.len() => {
                    let (known, known_objects) = &mut misuse[index];
                    let count = known.count + row.count;
                    let first = if row.time < known.time { *row } else { *known };
                    *known = Misuse { count, ..first };
                    known_objects.extend(objects);
                }
                _ => misuse.push((*row, objects.collect())),
            }
        }
        misuse.sort_by_key(|(misuse, _)| (misuse.kind, Reverse(misuse.count), misuse.time));
        misuse.into_iter().map(|(misuse, objects)| (misuse, objects.len())).collect()
    }

    /// The names of threads, processes and sites.
    pub fn names(&self) -> TraceNames<'a> {
        TraceNames { analysis: self.analysis, recorded: self.recorded, symbols: self.symbols }
    }

    pub fn object(&self, index: u32) -> &'a ObjectState {
        &self.analysis.objects[index as usize]
    }

    pub fn thread(&self, index: u32) -> &'a ThreadState {
        &self.analysis.threads[index as usize]
    }

    /// The place of a program among those that its process has executed. Where no record shows an exec, the program of which there are
    /// records last is the process's last.
    pub fn image(&self, program: &ProgramState) -> u32 {
        let newest =
            self.analysis.process_of_pid.get(&program.pid).map(|index| &self.analysis.processes[*index as usize]);
        let is_newest = newest.is_some_and(|newest| std::ptr::eq(newest, program));
        let recorded = self.recorded.get(&program.pid).filter(|_| is_newest && program.end != ImageEnd::Exec);
        recorded.map_or(program.image, RecordedProcess::last_image)
    }

    /// The command line of a program; empty if it is not known.
    pub fn command(&self, program: &ProgramState) -> &str {
        let known = self.known.get(&program.pid).map_or("", |known| &known.command);
        self.recorded.get(&program.pid).map_or(known, |recorded| recorded.command(self.image(program), known))
    }

    /// The number of the process of an object or a thread.
    pub fn pid(&self, process: u32) -> u32 {
        self.analysis.processes[process as usize].pid
    }

    /// The name of an object in the program's source: see [`object_names`].
    pub fn source_name(&self, index: u32) -> Option<&str> {
        self.object_names.get(self.analysis.objects.first(index))
    }

    /// The name that an object has in common with earlier and later ones at its address.
    pub fn name_of_lives(&self, index: u32) -> Option<&str> {
        self.object_names.without_number(self.analysis.objects.first(index))
    }

    /// Whether the trace has objects of several processes, so that a label has to say of which.
    pub fn has_several_processes(&self) -> bool {
        let mut pids = self.analysis.processes.iter().filter(|process| process.records > 0).map(|process| process.pid);
        let first = pids.next();
        pids.any(|pid| Some(pid) != first)
    }

    /// Kind, name and address of an object for people.
    pub fn object_label(&self, index: u32) -> String {
        self.names().object_label(index, self.source_name(index))
    }

    /// `PID:ADDRESS#N`.
    pub fn object_name(&self, index: u32) -> String {
        self.names().object_name(index)
    }

    /// Function, file and line of a site, or its module and offset; `None` if the site is not known.
    pub fn place(&self, site: u32) -> Option<String> {
        self.names().place(site)
    }

    /// The functions that a site is in, the innermost first: those of its stack if that was recorded.
    pub fn frames(&self, site: u32) -> Vec<CodeFrame> {
        self.names().frames(site)
    }

    /// The names of the frames of a site, the outermost first; only its own if its stack was not recorded.
    pub fn frame_names(&self, site: u32) -> Option<Vec<String>> {
        self.names().frame_names(site)
    }

    /// The name of the function at an address in the code of a process at a time.
    pub fn function_name(&self, process: u32, address: u64, time: u64) -> String {
        self.names().function_name(process, address, time)
    }

    /// Where an address in the code of a process was at a time.
    pub fn code(&self, process: u32, address: u64, time: u64) -> CodeAddress<'a> {
        self.names().code(process, address, time)
    }

    /// The name that a thread was given, or that of its program, or of its start routine.
    pub fn thread_name(&self, index: u32) -> Option<String> {
        self.names().thread_name(index)
    }

    /// The program of a process, and its number: `sort (19953)`.
    pub fn program_label(&self, process: u32) -> String {
        let pid = self.pid(process);
        self.names().program_name(process).map_or_else(|| format!("process {pid}"), |name| format!("{name} ({pid})"))
    }

    /// What a thread has in common with those that do the same work: its name.
    pub fn group_name(&self, index: u32) -> Option<String> {
        let thread = self.thread(index);
        let process = &self.analysis.processes[thread.process as usize];
        let main = || process.is_main(thread.lwp).then(|| "main thread".to_owned());
        self.thread_name(index).or_else(main)
    }

    /// That, or else the LWP.
    pub fn group_label(&self, index: u32) -> String {
        self.group_name(index).unwrap_or_else(|| format!("LWP {}", self.thread(index).lwp))
    }

    /// Until when a thread lived as far as it is known.
    pub fn thread_end(&self, thread: &ThreadState) -> u64 {
        let process = &self.analysis.processes[thread.process as usize];
        if thread.has_ended() { thread.last } else { process.last.max(thread.last) }
    }

    /// How long a thread lived in the selected time, as far as it is known.
    pub fn life(&self, thread: &ThreadState) -> u64 {
        self.analysis.selection.clip(thread.begin, self.thread_end(thread))
    }

    /// The sums of the selected threads: lives, contention and idleness.
    pub fn thread_sums(&self) -> [u64; 3] {
        let mut sums = [0; 3];
        for thread in self.threads.iter().map(|index| self.thread(*index)) {
            let life = self.life(thread);
            for (sum, time) in sums.iter_mut().zip([life, thread.contention, thread.idleness]) {
                *sum += time;
            }
        }
        sums
    }

    /// Whether the records show the holds of an object.
    pub fn has_holds(&self, object: &ObjectState) -> bool {
        let knowledge = self.analysis.processes[object.process as usize].knowledge;
        object.kind.is_lock() && !knowledge.leaves_calls_out()
    }

    /// Whether who held an object while others waited is asked for.
    pub fn has_blame(object: &ObjectState) -> bool {
        object.kind.is_lock() || object.kind == ObjectKind::Futex && object.figures.contention > 0
    }
}

/// Sums in descending order.
pub fn ranked<K: Copy + Ord>(sums: &[(K, u64)]) -> Vec<(K, u64)> {
    let mut ranked = sums.to_vec();
    ranked.sort_unstable_by_key(|(key, sum)| (Reverse(*sum), *key));
    ranked
}
