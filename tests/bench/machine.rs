//! The machine that was measured on, and its other load.

use std::time::Instant;
use std::{fs, mem};

use crate::runner::Runner;

/// A summary in some lines: processor, kernel, load, the versions of the other tracers.
pub fn describe(runner: &Runner) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let peer = |version: Result<&String, &String>| match version {
        Ok(version) => version.clone(),
        Err(reason) => format!("not measured: {reason}"),
    };
    format!(
        "machine         {processors} CPUs, {}; Linux {}, clock {}\nlttng           {}\nuftrace         {}\n",
        model.map_or("unknown", |(_, model)| model),
        kernel.trim(),
        clock.trim(),
        peer(runner.lttng.as_ref().map(|lttng| &lttng.version)),
        peer(runner.uftrace.as_ref().map(|uftrace| &uftrace.version)),
    )
}

/// Share of the CPUs from which on others disturb what is measured.
const DISTURBING: f64 = 0.05;

/// A point in time, and the CPU seconds of the machine and of our own processes until then.
pub struct Watch {
    since: Instant,
    all: f64,
    own: f64,
}

impl Watch {
    /// Now.
    pub fn start() -> Watch {
        Watch { since: Instant::now(), all: worked(&fs::read_to_string("/proc/stat").unwrap_or_default()), own: own() }
    }

    /// A line about how much CPU time other programs had since then. Our processes must have been waited for.
    pub fn summary(&self) -> String {
        let now = Watch::start();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let had = now.since.duration_since(self.since).as_secs_f64() * cpus as f64;
        let others = ((now.all - self.all) - (now.own - self.own)).max(0.0) / had;
        let advice = if others > DISTURBING { ": measure again when the machine is idle" } else { "" };
        format!(
            "Other programs and the kernel's own threads had {:.0} % of the CPUs meanwhile{advice}.\n",
            others * 100.0
        )
    }
}

/// Seconds that all CPUs together have worked, or were kept from it by the hypervisor, from `/proc/stat`.
fn worked(stat: &str) -> f64 {
    let mut times = stat.lines().next().unwrap_or_default().split_whitespace().skip(1).map(str::parse);
    let mut next = || times.next().and_then(Result::ok).unwrap_or(0.0);
    let [user, nice, system, _idle, _waiting, interrupts, soft, stolen]: [f64; 8] = std::array::from_fn(|_| next());
    // The unit is 1/100 s on every x86-64.
    (user + nice + system + interrupts + soft + stolen) / 100.0
}

/// Seconds that we and those that we waited for have worked.
fn own() -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let used = |who| {
        // SAFETY: an all-zero rusage is a value; the call writes to it only.
        let usage = unsafe {
            let mut usage: libc::rusage = mem::zeroed();
            libc::getrusage(who, &mut usage);
            usage
        };
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    };
    used(libc::RUSAGE_SELF) + used(libc::RUSAGE_CHILDREN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_all_but_idleness() {
        assert_eq!(worked("cpu  100 20 300 5000 600 7 8 65 0 0\ncpu0 1 1 1 1\n"), 5.0);
        assert_eq!(worked(""), 0.0);
    }
}
