//! Which directories are of one host.
//!
//! They have the same boot IDs and host name, and are for the same PID namespace. Containers of a pod have all that, too. So their
//! trinfos must also agree: a number is that of one process, and there is a PID namespace that both have. What has no trinfo
//! contradicts nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::host_directories::DirectoryFacts;

/// The directories of a host, as far as they are known.
struct DirectoryGroup<'a> {
    first: &'a DirectoryFacts,
    /// Their numbers.
    directories: Vec<usize>,
    /// As those of the directories.
    identities: BTreeMap<u32, (u64, u64)>,
    namespaces: BTreeSet<u64>,
}

/// The numbers of the directories that are of one host. Several boots in one directory are of one host at several times.
pub fn grouped(facts: &[DirectoryFacts]) -> Vec<Vec<usize>> {
    let mut groups: Vec<DirectoryGroup> = Vec::new();
    let mut unknown = Vec::new();
    for (number, directory) in facts.iter().enumerate() {
        if directory.boot_ids.is_empty() {
            unknown.push(number);
            continue;
        }
        match groups.iter_mut().find(|group| group.has_host_of(directory)) {
            Some(group) => group.add(number, directory),
            None => groups.push(DirectoryGroup::of(number, directory)),
        }
    }
    let mut groups: Vec<Vec<usize>> = groups.into_iter().map(|group| group.directories).collect();
    match groups.first_mut() {
        Some(first) => first.extend(unknown),
        None if unknown.is_empty() => {}
        None => groups.push(unknown),
    }
    groups
}

impl<'a> DirectoryGroup<'a> {
    fn of(number: usize, first: &'a DirectoryFacts) -> DirectoryGroup<'a> {
        let (directories, identities, namespaces) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let mut group = DirectoryGroup { first, directories, identities, namespaces };
        group.add(number, first);
        group
    }

    fn add(&mut self, number: usize, directory: &DirectoryFacts) {
        self.directories.push(number);
        self.identities.extend(&directory.identities);
        self.namespaces.extend(directory.namespaces());
    }

    fn has_host_of(&self, directory: &DirectoryFacts) -> bool {
        let first = self.first;
        let is_same = (&first.boot_ids, &first.name, first.namespace)
            == (&directory.boot_ids, &directory.name, directory.namespace);
        let is_another = |(pid, identity)| self.identities.get(pid).is_some_and(|known| known != identity);
        is_same && self.may_share_namespace(directory) && !directory.identities.iter().any(is_another)
    }

    fn may_share_namespace(&self, directory: &DirectoryFacts) -> bool {
        let mut namespaces = directory.namespaces().peekable();
        self.namespaces.is_empty()
            || namespaces.peek().is_none()
            || namespaces.any(|namespace| self.namespaces.contains(&namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of a boot with processes: number, PID namespace, start.
    fn directory(boot: &str, processes: &[(u32, u64, u64)]) -> DirectoryFacts {
        DirectoryFacts {
            boot_ids: BTreeSet::from([boot.to_owned()]),
            identities: processes.iter().map(|&(pid, namespace, start)| (pid, (namespace, start))).collect(),
            ..DirectoryFacts::default()
        }
    }

    #[test]
    fn directories_with_other_processes_of_one_number_or_other_namespaces_are_of_different_hosts() {
        let first = || directory("1f", &[(1, 7, 20), (5, 7, 30)]);
        for (second, is_one_host) in [
            (directory("1f", &[(6, 7, 40)]), true),
            // One process has recorded in both.
            (directory("1f", &[(5, 7, 30), (6, 7, 40)]), true),
            (directory("1f", &[(1, 8, 40)]), false),
            (directory("1f", &[(6, 8, 40)]), false),
            // A container that began later in a namespace whose number is used again.
            (directory("1f", &[(1, 7, 40)]), false),
            (directory("2f", &[(6, 7, 40)]), false),
            // A process has made a PID namespace.
            (directory("1f", &[(6, 7, 40), (2, 8, 50)]), true),
            (directory("1f", &[(6, 7, 40), (1, 8, 50)]), false),
            // Without trinfos, or with such as have no namespace.
            (directory("1f", &[]), true),
            (DirectoryFacts::default(), true),
        ] {
            let processes = second.identities.clone();
            let groups = grouped(&[first(), second]);
            assert_eq!(groups.len() == 1, is_one_host, "{processes:?}: {groups:?}");
        }
    }

    #[test]
    fn each_directory_is_with_those_of_its_namespace() {
        let of = |pid, namespace| directory("1f", &[(pid, namespace, 20 + u64::from(pid))]);
        let inner = || DirectoryFacts { namespace: Some(8), ..of(4, 8) };
        let groups = grouped(&[of(1, 7), of(2, 8), of(3, 7), of(5, 8), inner(), directory("1f", &[]), inner()]);
        assert_eq!(groups, [vec![0, 2, 5], vec![1, 3], vec![4, 6]]);
    }
}
