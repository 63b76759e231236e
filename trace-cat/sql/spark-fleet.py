"""Sums up the traces of a fleet in Spark: `spark-submit spark-fleet.py FLEET RESULT`.

FLEET is a directory with the tables of many hosts, which `trace-cat -F parquet --partition` made. RESULT gets a directory of
Parquet files for each of:

    locks    each object of each program and build, over all hosts: its waits and holds
    hours    what each program recorded and waited for on each host in each hour
    threads  each thread: when it recorded, how long it waited, and how long it recorded nothing at most

Rows are grouped and written by the executors, by host first and then over all hosts. The driver gets none of them, so its memory
does not depend on how many there are. Times are nanoseconds. The views are those of spark.sql, which lies beside this file.
"""

import pathlib
import re
import sys

from pyspark.sql import SparkSession

TABLES = {
    "locks": """
        SELECT program, build_id, object_kind, object_name, count(DISTINCT host) AS hosts, sum(calls) AS calls,
               sum(waits) AS waits, sum(waited) AS waited, sum(contention) AS contention, sum(idleness) AS idleness,
               max(longest_wait) AS longest_wait, sum(timeouts) AS timeouts, sum(handoff) AS handoff, sum(unknown) AS unknown,
               sum(holds) AS holds, sum(held) AS held, max(longest_hold) AS longest_hold
        FROM objects GROUP BY program, build_id, object_kind, object_name""",
    "hours": """
        SELECT host, timestamp - timestamp % 3600000000000 AS hour, program, build_id,
               count(*) FILTER (WHERE kind = 'record') AS records, count(waited) FILTER (WHERE contention) AS waits,
               coalesce(sum(waited) FILTER (WHERE contention), 0) AS contention,
               max(waited) FILTER (WHERE contention) AS longest_wait, coalesce(sum(held), 0) AS held
        FROM trace_rows GROUP BY host, timestamp - timestamp % 3600000000000, program, build_id""",
    "threads": """
        SELECT host, boot, pid, lwp, any_value(program, true) AS program, min(timestamp) AS first, max(timestamp) AS last,
               count(*) FILTER (WHERE kind = 'record') AS records, coalesce(sum(waited), 0) AS waited,
               max(silence) AS longest_silence
        FROM (SELECT host, boot, pid, lwp, program, timestamp, kind, waited,
                     timestamp - lag(timestamp) OVER (PARTITION BY host, boot, pid, lwp ORDER BY timestamp) AS silence
              FROM trace_rows) AS gaps
        GROUP BY host, boot, pid, lwp""",
}


def main(fleet, result):
    session = SparkSession.builder.appName("threadt fleet").getOrCreate()
    session.sql(f"SET trace={fleet}")
    views = pathlib.Path(__file__).with_name("spark.sql").read_text()
    for statement in re.sub(r"^ *--.*$", "", views, flags=re.M).split(";"):
        if statement.strip():
            session.sql(statement)
    for name, query in TABLES.items():
        session.sql(query).write.parquet(f"{result}/{name}")
    session.stop()


if len(sys.argv) != 3:
    sys.exit("usage: spark-submit spark-fleet.py FLEET RESULT")
main(*sys.argv[1:])
