"""Runs trace-cat/sql/spark-fleet.py over synthetic fleets, compares its sums with the report's, and prints what a record costs.

Usage: fleet.py RELEASE WORK, in the project's directory. FLEET_HOSTS has the sizes of the fleet, each larger than the one before,
and FLEET_RECORDS how many records the largest has. Each host has tables of the same real traces. The heap of Spark, driver and
executors together, is 1 GiB, and no result may reach the driver.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pyarrow.parquet

RELEASE, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
HOSTS = [int(count) for count in (os.environ.get("FLEET_HOSTS") or "1 10 100").split()]
RECORDS = int(os.environ.get("FLEET_RECORDS") or 20000000)
FIGURES = ("calls", "waits", "waited", "holds", "held", "handoff", "unknown", "timeouts")
SPARK = {
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "1m",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "64",
    "spark.local.dir": str(WORK / "spark"),
    "spark.sql.warehouse.dir": str(WORK / "warehouse"),
}


def trace_cat(*arguments):
    return subprocess.run([RELEASE / "trace-cat", *arguments], check=True, capture_output=True, text=True).stdout


def record_traces():
    """Traces of programs that return, are killed and fork, which have about the records that a host is to have."""
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", WORK / "waiters", "tests/sql/waiters.c"], check=True)
    traces = {}
    for name in ("returns", "killed", "forks"):
        trace = WORK / name
        # A round of the three workers makes some fifty records.
        rounds = max(RECORDS // HOSTS[-1] // 3 // 48, 1)
        program = [WORK / "waiters", name, str(rounds)]
        subprocess.run([RELEASE / "trace-cat", "run", "-d", trace, "--", *program], capture_output=True, check=False)
        traces[trace] = json.loads(trace_cat("report", "-F", "json", trace))
    return traces


def sums_of(reports):
    """The figures by kind of object; those that the report does not know for each object are left out."""
    sums = {}
    for report in reports:
        for row in report["objects"]:
            kind = sums.setdefault(row["kind"], dict.fromkeys(FIGURES, 0))
            for figure in FIGURES:
                kind[figure] = None if None in (kind[figure], row[figure]) else kind[figure] + row[figure]
    return sums


def run_job(fleet, result):
    """Returns the seconds of time and of processor time, and the largest resident memory in MiB: that of the Java machine."""
    settings = [word for name, value in SPARK.items() for word in ("--conf", f"{name}={value}")]
    command = [pathlib.Path(sys.executable).with_name("spark-submit"), "--master", "local[2]", *settings]
    began = time.monotonic()
    command += ["trace-cat/sql/spark-fleet.py", fleet, result]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    messages = job.stderr.read().decode()
    _, status, usage = os.wait4(job.pid, 0)
    if status:
        sys.exit(messages[-4000:])
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def compare(result, hosts, reports):
    """The sums of all hosts are those of the report, times the hosts. Returns how many records there are."""
    wanted = sums_of(reports)
    assert wanted, "the programs use no object"
    locks = pyarrow.parquet.read_table(result / "locks").to_pylist()
    for kind, figures in wanted.items():
        rows = [row for row in locks if row["object_kind"] == kind]
        for figure in (figure for figure in FIGURES if figures[figure] is not None):
            have = sum(row[figure] for row in rows)
            if have != figures[figure] * hosts:
                sys.exit(f"{hosts} hosts: {figure} of {kind}: {have}, but by the report {figures[figure] * hosts}")
    assert all(row["hosts"] == hosts for row in locks if row["object_name"])
    hours = pyarrow.parquet.read_table(result / "hours").to_pylist()
    contention = sum(report["contention"] for report in reports) * hosts
    assert sum(row["contention"] for row in hours) == contention, "contention by host and hour"
    threads = pyarrow.parquet.read_table(result / "threads").to_pylist()
    waited = contention + sum(report["idleness"] for report in reports) * hosts
    assert sum(row["waited"] for row in threads) == waited, "waits by thread"
    records = sum(process["records"] for report in reports for process in report["processes"]) * hosts
    assert {sum(row["records"] for row in table) for table in (hours, threads)} == {records}, "records"
    return records


def main():
    traces, fleet = record_traces(), WORK / "fleet"
    reports, made, last = list(traces.values()), 0, None
    print(f"{'hosts':>6} {'records':>10} {'seconds':>8} {'processor':>10} {'MiB':>5}  microseconds of processor time for each further record")
    for hosts in HOSTS:
        for host in range(made, hosts):
            for trace in traces:
                trace_cat("-F", "parquet", "--partition", "--host", f"host-{host:03}", "-o", fleet, trace)
        made, result = hosts, WORK / "result"
        seconds, processor, memory = run_job(fleet, result)
        records = compare(result, hosts, reports)
        shutil.rmtree(result)
        cost = f"{(processor - last[1]) / (records - last[0]) * 1e6:.2f}" if last else ""
        print(f"{hosts:6} {records:10} {seconds:8.1f} {processor:10.1f} {memory:5}  {cost}", flush=True)
        last = (records, processor)


main()
