//! The strongly connected components of the lock order.

/// The components with more than one node of a graph of `successors`, each with its nodes in order.
pub fn components(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    // Kosaraju's way, with a stack of nodes and how many of their neighbours have been visited.
    let mut finished = Vec::with_capacity(successors.len());
    let mut visited = vec![false; successors.len()];
    for start in 0..successors.len() {
        visit(successors, start, &mut visited, &mut finished);
    }
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (node, nexts) in successors.iter().enumerate() {
        nexts.iter().for_each(|next| predecessors[*next].push(node));
    }
    visited.fill(false);
    let mut components = Vec::new();
    for &start in finished.iter().rev() {
        let mut component = Vec::new();
        visit(&predecessors, start, &mut visited, &mut component);
        if component.len() > 1 {
            component.sort_unstable();
            components.push(component);
        }
    }
    components.sort_unstable();
    components
}

/// Appends the nodes that can be reached and have not been visited, each after those that are reached through it.
fn visit(successors: &[Vec<usize>], start: usize, visited: &mut [bool], finished: &mut Vec<usize>) {
    let mut stack = Vec::new();
    if !std::mem::replace(&mut visited[start], true) {
        stack.push((start, 0));
    }
    while let Some((node, index)) = stack.last_mut() {
        match successors[*node].get(*index) {
            Some(&next) => {
                *index += 1;
                if !std::mem::replace(&mut visited[next], true) {
                    stack.push((next, 0));
                }
            }
            None => {
                finished.push(*node);
                stack.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_what_reaches_itself() {
        let graph = |edges: &[(usize, usize)]| {
            let mut successors = vec![Vec::new(); 8];
            edges.iter().for_each(|(from, to)| successors[*from].push(*to));
            components(&successors)
        };
        assert_eq!(graph(&[(0, 1), (1, 2), (3, 3), (4, 2)]), Vec::<Vec<usize>>::new());
        assert_eq!(graph(&[(0, 1), (1, 2), (2, 0), (2, 5), (5, 6), (6, 5), (7, 0)]), [vec![0, 1, 2], vec![5, 6]]);
        assert_eq!(graph(&[(3, 1), (1, 7), (7, 3), (7, 1), (1, 0), (0, 7)]), [vec![0, 1, 3, 7]]);
    }
}
