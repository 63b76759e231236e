//! The shortest cycle of each strongly connected component whose edges can be taken at the same time.

use std::collections::{HashSet, VecDeque};

use super::components::components;
use super::observations::{LockOrder, Observation, OrderEdge, ThreadLife};

/// The longest cycle that is searched for.
const LENGTH_MAX: usize = 1000;
/// How much work the search in a component, and the search in all, may be: comparisons of observations and steps along edges.
const WORK_OF_COMPONENT: usize = 1 << 22;
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
        let mut keys: Vec<(u32, u32)> = self.edges.keys().copied().collect();
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

/// The search in a component. Nodes are numbered from 0 on.
struct CycleSearch<'a> {
    order: &'a LockOrder,
    nodes: Vec<u32>,
    successors: Vec<Vec<(usize, &'a OrderEdge)>>,
    predecessors: Vec<Vec<usize>>,
    life: &'a dyn Fn(u32) -> ThreadLife,
    work_left: usize,
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
        let nodes: Vec<u32> = component.iter().map(|index| all_nodes[*index]).collect();
        let mut successors = vec![Vec::new(); nodes.len()];
        let mut predecessors = vec![Vec::new(); nodes.len()];
        for (from, &node) in component.iter().enumerate() {
            for next in &all_successors[node] {
                let Ok(to) = component.binary_search(next) else { continue };
                let Some(edge) = order.edges.get(&(nodes[from], nodes[to])) else { continue };
                successors[from].push((to, edge));
                predecessors[to].push(from);
            }
        }
        CycleSearch {
            order,
            successors,
            predecessors,
            life,
            work_left: work,
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
        let observations = self.successors.iter().flatten().flat_map(|(_, edge)| &edge.observations);
        let threads: HashSet<u32> = observations.map(|observation| observation.thread).collect();
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
            let (next, edge) = self.successors[node][index];
            let is_end = length == 1;
            let leads_back = match is_end {
                true => next == start,
                false => next > start && self.distances[next] < length && !self.is_on_path[next],
            };
            if !leads_back {
                continue;
            }
            for observation in &edge.observations {
                if !self.may_follow(observation, is_end) {
                    if self.work_left == 0 {
                        return false;
                    }
                    continue;
                }
                self.path.push((node, next, edge, observation));
                self.is_on_path[next] = true;
                if is_end || self.extend(start, next, length - 1) {
                    return true;
                }
                self.is_on_path[next] = false;
                self.path.pop();
            }
        }
        false
    }

    /// Whether an observation may be the path's next one, and also its last one.
    fn may_follow(&mut self, new: &Observation, is_end: bool) -> bool {
        self.work_left = self.work_left.saturating_sub(1 + self.path.len());
        let waits = |waiter: &Observation, holder: &Observation| !waiter.to_is_shared || !holder.from_is_shared;
        let is_blocked_by = self.path.last().is_none_or(|(.., last)| waits(last, new));
        let blocks = !is_end || self.path.first().is_none_or(|(.., first)| waits(new, first));
        if self.work_left == 0 || !is_blocked_by || !blocks {
            return false;
        }
        let work_before = self.order.phases.work();
        let coincides = self
            .path
            .iter()
            .all(|(.., known)| LockOrder::lives_overlap(known, new, self.life) && self.order.may_coincide(known, new));
        self.work_left = self.work_left.saturating_sub(self.order.phases.work() - work_before);
        coincides
    }

    fn cycle(&self) -> LockCycle {
        let object = |node: usize| self.order.object(self.nodes[node]);
        let steps = self.path.iter().map(|&(from, to, edge, observation)| OrderStep {
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
