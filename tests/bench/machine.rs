//! Where it was measured.

use std::fs;

use crate::runner::Runner;

/// A few lines: processor, kernel, load, the peers' versions.
pub fn describe(runner: &Runner) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown");
    let peer = |version: Result<&String, &String>| match version {
        Ok(version) => version.clone(),
        Err(reason) => format!("not measured: {reason}"),
    };
    format!(
        "machine         {processors} CPUs, {}; Linux {}, clock {}; load {load} at the start\nlttng           {}\nuftrace         {}\n",
        model.map_or("unknown", |(_, model)| model),
        kernel.trim(),
        clock.trim(),
        peer(runner.lttng.as_ref().map(|lttng| &lttng.version)),
        peer(runner.uftrace.as_ref().map(|uftrace| &uftrace.version)),
    )
}
