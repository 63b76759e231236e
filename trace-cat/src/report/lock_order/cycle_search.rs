//! The shortest cycle of each strongly connected component whose edges can be taken at the same time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::components::components;
use super::observations::{LockOrder, Observation, OrderEdge, ThreadLife};

/// The longest cycle that is searched for.
const LENGTH_MAX: usize = 1000;
/// How much work the search in a component, and the search in all, may be: comparisons of observations and steps along edges.
const WORK_OF_COMPONENT: usize = 1 << 24;
const WORK: usize = 1 << 26;

/// A thread takes a lock while it holds another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStep {
    pub from: u32,
    pub to: u32,
    pub thread: u32,
    pub site_from: u32,
    pub site_to: u32,
    /// How often threads took one inside the other.
    pub count: u64,
}

/// A cycle, each step of which begins with the lock that the one before takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockCycle {
    pub steps: Vec<OrderStep>,
}

impl LockOrder {
    /// A cycle for each component that has one, and how many components were too large to be searched. `life` is that of a thread.
    pub fn cycles(&mut self, life: &dyn Fn(u32) -> ThreadLife) -> (Vec<LockCycle>, u64) {
        self.phases.finish();
        let mut keys: Vec<(u32, u32)> = self.edges.keys().collect();
        keys.sort_unstable();
        let mut nodes: Vec<u32> = keys.iter().flat_map(|(from, to)| [*from, *to]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let index = |node: &u32| nodes.binary_search(node).unwrap_or_default();
        let mut successors = vec![Vec::new(); nodes.len()];
        keys.iter().for_each(|(from, to)| successors[index(from)].push(index(to)));
        let (mut cycles, mut unsearched, mut work_left) = (Vec::new(), 0, WORK);
        for component in components(&successors) {
            let work = WORK_OF_COMPONENT.min(work_left);
            let mut search = CycleSearch::new(self, &nodes, &successors, &component, life, work);
            match search.shortest() {
                Some(cycle) => cycles.push(cycle),
                None => unsearched += u64::from(search.work_left == 0),
            }
            work_left -= work - search.work_left;
        }
        (cycles, unsearched)
    }
}

/// An edge with its observations by what other locks exclude.
#[derive(Clone)]
struct SearchedEdge<'a> {
    edge: &'a OrderEdge,
    groups: Vec<Vec<ObservedThread<'a>>>,
}

/// A thread's observations, in the order of time.
type ObservedThread<'a> = Vec<&'a Observation>;

impl<'a> SearchedEdge<'a> {
    fn new(edge: &'a OrderEdge) -> SearchedEdge<'a> {
        let mut observations: Vec<&Observation> = edge.observations().iter().collect();
        observations.sort_by_key(|observation| (observation.exclusion(), observation.thread, observation.first));
        let is_alike = |one: &&Observation, other: &&Observation| one.exclusion() == other.exclusion();
        let of_threads = |alike: &[&'a Observation]| {
            alike.chunk_by(|one, other| one.thread == other.thread).map(<[&Observation]>::to_vec).collect()
        };
        SearchedEdge { edge, groups: observations.chunk_by(is_alike).map(of_threads).collect() }
    }
}

/// The search in a component. Nodes are numbered from 0 on.
struct CycleSearch<'a> {
    order: &'a LockOrder,
    nodes: Vec<u32>,
    successors: Vec<Vec<(usize, SearchedEdge<'a>)>>,
    predecessors: Vec<Vec<usize>>,
    life: &'a dyn Fn(u32) -> ThreadLife,
    work_left: usize,
    /// How much of it had been spent on phases.
    work_of_phases: usize,
    /// The edges of the path, each with its nodes and the observation that is chosen.
    path: Vec<(usize, usize, &'a OrderEdge, &'a Observation)>,
    is_on_path: Vec<bool>,
    /// How far it is to the first node of the path, by nodes that are not before it.
    distances: Vec<usize>,
}

impl<'a> CycleSearch<'a> {
    fn new(
        order: &'a LockOrder,
        all_nodes: &[u32],
        all_successors: &[Vec<usize>],
        component: &[usize],
        life: &'a dyn Fn(u32) -> ThreadLife,
        work: usize,
    ) -> CycleSearch<'a> {
        let edge = |from: usize, to: usize| order.edges.get((all_nodes[from], all_nodes[to]));
        let observations = |from: usize| {
            let inner = all_successors[from].iter().filter(|to| component.binary_search(to).is_ok());
            inner.filter_map(|to| edge(from, *to)).map(|edge| edge.observations().len()).sum::<usize>()
        };
        // A path begins where there is least to choose from, and what follows is narrowed down to what goes with that.
        let mut component = component.to_vec();
        component.sort_by_cached_key(|&node| (observations(node), node));
        let places: HashMap<usize, usize> = component.iter().enumerate().map(|(place, &node)| (node, place)).collect();
        let nodes: Vec<u32> = component.iter().map(|index| all_nodes[*index]).collect();
        let mut successors = vec![Vec::new(); nodes.len()];
        let mut predecessors = vec![Vec::new(); nodes.len()];
        for (from, &node) in component.iter().enumerate() {
            for next in &all_successors[node] {
                let (Some(&to), Some(edge)) = (places.get(next), edge(node, *next)) else { continue };
                successors[from].push((to, SearchedEdge::new(edge)));
                predecessors[to].push(from);
            }
        }
        CycleSearch {
            order,
            successors,
            predecessors,
            life,
            work_left: work,
            work_of_phases: order.phases.work(),
            path: Vec::new(),
            is_on_path: vec![false; nodes.len()],
            distances: vec![1; nodes.len()],
            nodes,
        }
    }

    /// The shortest cycle, looked for by length. Each cycle is found from its first node.
    fn shortest(&mut self) -> Option<LockCycle> {
        if (0..self.nodes.len()).any(|start| self.extend(start, start, 2)) {
            return Some(self.cycle());
        }
        let observed = self.successors.iter().flatten().flat_map(|(_, searched)| searched.groups.iter().flatten());
        let threads: HashSet<u32> = observed.filter_map(|thread| Some(thread.first()?.thread)).collect();
        let longest = self.nodes.len().min(threads.len()).min(LENGTH_MAX);
        // The length of the shortest cycle of each node, whatever its observations are.
        let lengths: Vec<usize> = (0..self.nodes.len()).map(|start| self.measure(start)).collect();
        for length in 3..=longest {
            for start in (0..self.nodes.len()).filter(|start| lengths[*start] <= length) {
                self.measure(start);
                if self.extend(start, start, length) {
                    return Some(self.cycle());
                }
                if self.work_left == 0 {
                    return None;
                }
            }
        }
        None
    }

    /// Finds the distances to a node; returns the length of its shortest cycle.
    fn measure(&mut self, start: usize) -> usize {
        self.distances.clear();
        self.distances.resize(self.nodes.len(), usize::MAX);
        let mut queue = VecDeque::from([(start, 0)]);
        let mut shortest = usize::MAX;
        while let Some((node, distance)) = queue.pop_front() {
            for &before in &self.predecessors[node] {
                self.work_left = self.work_left.saturating_sub(1);
                if before == start {
                    shortest = shortest.min(distance + 1);
                } else if before > start && self.distances[before] == usize::MAX {
                    self.distances[before] = distance + 1;
                    queue.push_back((before, distance + 1));
                }
            }
            if self.work_left == 0 {
                break;
            }
        }
        shortest
    }

    /// Extends the path, which leads to a node, by `length` edges back to its first node. Returns whether that is possible.
    fn extend(&mut self, start: usize, node: usize, length: usize) -> bool {
        for index in 0..self.successors[node].len() {
            let next = self.successors[node][index].0;
            let leads_back = match length {
                1 => next == start,
                _ => next > start && self.distances[next] < length && !self.is_on_path[next],
            };
            if !leads_back {
                continue;
            }
            for group in 0..self.successors[node][index].1.groups.len() {
                for thread in 0..self.successors[node][index].1.groups[group].len() {
                    if !self.spend_work() {
                        return false;
                    }
                    let threads = &self.successors[node][index].1.groups[group];
                    // All of the group are excluded by the same locks.
                    if thread == 0 && !threads.iter().flatten().next().is_some_and(|any| self.admits(any, length == 1))
                    {
                        break;
                    }
                    for place in self.range_of(&threads[thread]) {
                        let observation = self.successors[node][index].1.groups[group][thread][place];
                        if !self.spend_work() {
                            return false;
                        }
                        if !self.lives_with_all(observation) {
                            continue;
                        }
                        let edge = self.successors[node][index].1.edge;
                        self.path.push((node, next, edge, observation));
                        self.is_on_path[next] = true;
                        if length == 1 || self.extend(start, next, length - 1) {
                            return true;
                        }
                        self.is_on_path[next] = false;
                        self.path.pop();
                    }
                }
            }
        }
        false
    }

    /// Counts a step, which compares something with all of the path; returns whether there may be more.
    fn spend_work(&mut self) -> bool {
        let of_phases = self.order.phases.work();
        let work = 1 + self.path.len() + of_phases - std::mem::replace(&mut self.work_of_phases, of_phases);
        self.work_left = self.work_left.saturating_sub(work);
        self.work_left > 0
    }

    /// Whether locks admit an observation as the path's next one, and also as its last one.
    fn admits(&self, new: &Observation, is_end: bool) -> bool {
        let waits = |waiter: &Observation, holder: &Observation| !waiter.to_is_shared || !holder.from_is_shared;
        let is_blocked_by = self.path.last().is_none_or(|(.., last)| waits(last, new));
        let blocks = !is_end || self.path.first().is_none_or(|(.., first)| waits(new, first));
        is_blocked_by && blocks && !self.path.iter().any(|(.., known)| self.order.may_be_excluded(known, new))
    }

    /// Those of a thread's observations that no phase keeps apart from the path.
    fn range_of(&self, thread: &[&Observation]) -> Range<usize> {
        let mut range = 0..thread.len();
        let own = thread.first().map(|observation| observation.thread);
        for (.., known) in &self.path {
            if Some(known.thread) == own {
                return 0..0;
            }
            let beside = self.order.range_beside(known, thread);
            range = range.start.max(beside.start)..range.end.min(beside.end);
            if range.is_empty() {
                return 0..0;
            }
        }
        range
    }

    fn lives_with_all(&self, new: &Observation) -> bool {
        self.path.iter().all(|(.., known)| LockOrder::lives_overlap(known, new, self.life))
    }

    fn cycle(&self) -> LockCycle {
        let object = |node: usize| self.order.object(self.nodes[node]);
        let first = (0..self.path.len()).min_by_key(|&step| self.nodes[self.path[step].0]).unwrap_or(0);
        let (before, after) = self.path.split_at(first);
        let steps = after.iter().chain(before).map(|&(from, to, edge, observation)| OrderStep {
            from: object(from),
            to: object(to),
            thread: observation.thread,
            site_from: observation.site_from,
            site_to: observation.site_to,
            count: edge.count,
        });
        LockCycle { steps: steps.collect() }
    }
}
