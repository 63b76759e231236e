//! Which records of several hosts are in a certain order.

use crate::trace::host_view::HostView;

/// The times of the latest records of the hosts.
#[derive(Debug, Default)]
pub struct HostOrder {
    /// By the number of the host.
    latest: Vec<Option<u64>>,
    /// The latest record of a process whose host is not known.
    latest_unknown: Option<u64>,
}

impl HostOrder {
    /// Notes the next record, and returns whether an earlier one of another host may really be later: the clocks' errors leave
    /// open which of the two was first.
    pub fn is_uncertain(&mut self, host: Option<&HostView>, time: u64) -> bool {
        let Some(host) = host else {
            self.latest_unknown = Some(time);
            return self.latest.iter().any(Option::is_some);
        };
        let others = self.latest.iter().zip(&host.bounds).enumerate().filter(|(other, _)| *other != host.index);
        let is_near = |(latest, bound): (&Option<u64>, &Option<u64>)| match (latest, bound) {
            (None, _) => false,
            (Some(_), None) => true,
            // Of one clock.
            (Some(_), Some(0)) => false,
            (Some(latest), Some(bound)) => time.saturating_sub(*latest) <= *bound,
        };
        let is_uncertain = others.map(|(_, pair)| pair).any(is_near) || self.latest_unknown.is_some();
        if self.latest.len() <= host.index {
            self.latest.resize(host.index + 1, None);
        }
        self.latest[host.index] = Some(time);
        is_uncertain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_certain_beyond_the_bound_of_both_clocks() {
        let host =
            |index: usize, bounds: [Option<u64>; 4]| HostView { index, bounds: bounds.into(), ..HostView::default() };
        let hosts = [
            host(0, [Some(0), Some(10), None, Some(0)]),
            host(1, [Some(10), Some(0), None, Some(10)]),
            host(2, [None, None, Some(0), None]),
            host(3, [Some(0), Some(10), None, Some(0)]),
        ];
        let marks = |records: &[(usize, u64)]| {
            let mut order = HostOrder::default();
            let marks = records.iter().map(|(host, time)| order.is_uncertain(hosts.get(*host), *time));
            marks.collect::<Vec<bool>>()
        };
        assert_eq!(
            marks(&[(0, 100), (0, 101), (1, 110), (1, 111), (1, 112), (0, 122), (0, 123)]),
            [false, false, true, true, false, true, false]
        );
        assert_eq!(marks(&[(0, 100), (1, 111), (0, 122)]), [false, false, false]);
        // Not only the record before counts.
        assert_eq!(marks(&[(0, 100), (1, 105), (1, 109), (1, 111)]), [false, true, true, false]);
        assert_eq!(marks(&[(0, 1), (2, 1_000_000), (0, 9_000_000)]), [false, true, true]);
        assert_eq!(marks(&[(0, 1), (3, 1), (0, 1)]), [false, false, false], "one clock");
        assert_eq!(marks(&[(9, 1), (9, 2), (0, 3), (9, 4)]), [false, false, true, true], "of nobody knows which host");
    }
}
