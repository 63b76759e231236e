"""Compares tables, as DuckDB, Spark SQL and pyarrow read them, with `trace-cat report -F json` of the same traces.

Usage: compare.py RELEASE WORK, in the project's directory. RELEASE has trace-cat and libthreadt.so; WORK is an empty directory.
"""

import json
import pathlib
import re
import subprocess
import sys

import duckdb
import pyarrow.parquet
from pyspark.sql import SparkSession

RELEASE, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SQL = pathlib.Path("trace-cat/sql")
VIEWS = ("records", "calls", "waits", "holds", "objects", "pairs")
OBJECT_FIGURES = ("calls", "waits", "waited", "timeouts", "handoff", "unknown", "holds", "held")


def trace_cat(*arguments):
    return subprocess.run([RELEASE / "trace-cat", *arguments], check=True, capture_output=True, text=True).stdout


def record(name, *arguments):
    """Records a program that fails or is killed by itself, perhaps."""
    trace = WORK / name
    program = [WORK / "waiters", *arguments]
    subprocess.run([RELEASE / "trace-cat", "run", "--detail", "-d", trace, "--", *program], capture_output=True, check=False)
    return trace


class DuckDb:
    name = "DuckDB"

    def __init__(self):
        self.connection = duckdb.connect()

    def load(self, script, **variables):
        for name, value in variables.items():
            self.connection.execute(f"SET VARIABLE {name} = '{value}'")
        self.connection.execute((SQL / f"duckdb{script}.sql").read_text())

    def rows(self, query):
        return self.connection.execute(query).fetchall()


class Spark:
    name = "Spark"

    def __init__(self):
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "1g")
        self.session = builder.config("spark.sql.warehouse.dir", str(WORK / "warehouse")).getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def load(self, script, **variables):
        for name, value in variables.items():
            self.session.sql(f"SET {name}={value}")
        text = re.sub(r"^ *--.*$", "", (SQL / f"spark{script}.sql").read_text(), flags=re.M)
        for statement in filter(str.strip, text.split(";")):
            self.session.sql(statement)

    def rows(self, query):
        return [tuple(row) for row in self.session.sql(query).collect()]


def assert_same(what, left, right):
    if left != right:
        pairs = [pair for pair in zip(left, right) if pair[0] != pair[1]] if isinstance(left, list) else (left, right)
        sys.exit(f"{what}: {len(left)} and {len(right)}; the first differences: {pairs[:3]}")


def in_order(rows):
    return sorted(rows, key=lambda row: tuple((value is not None, value) for value in row))


def compare_with_report(engine, report):
    """The figures of objects, pairs and sites."""
    objects = [(o["object"], *(o[f] for f in OBJECT_FIGURES)) for o in report["objects"]]
    have = {row[0]: row for row in engine.rows(f"SELECT object, {', '.join(OBJECT_FIGURES)} FROM objects")}
    assert objects, "the program uses no object"
    # What the report does not know is null there.
    known = lambda want, row: tuple(0 if w is None else h for w, h in zip(want, row))
    wanted = [tuple(0 if w is None else w for w in want) for want in objects]
    assert_same(f"objects in {engine.name}", wanted, [known(want, have[want[0]]) for want in objects])
    pairs = [(p["waiter"], p["holder"], p["object"], p["waits"], p["waited"]) for p in report["pairs"]]
    rows = engine.rows("SELECT waiter, holder, object, waits, waited FROM pairs")
    assert_same(f"pairs in {engine.name}", sorted(pairs), sorted(rows))
    # A wait for a condition and the rest of it, for the mutex, are of one call.
    views = {
        "waits": "SELECT site, count(*) FROM waits WHERE NOT is_rest GROUP BY site",
        "contention": "SELECT site, sum(waited) FROM waits WHERE contention GROUP BY site",
        "idleness": "SELECT site, sum(waited) FROM waits WHERE NOT contention GROUP BY site",
        "held": "SELECT site, sum(held) FROM holds GROUP BY site",
        "blamed": "SELECT holder_site, sum(blamed) FROM trace_rows WHERE blamed IS NOT NULL GROUP BY holder_site",
    }
    for figure, view in views.items():
        wanted = sorted((site["site"], site[figure]) for site in report["sites"] if site[figure])
        rows = sorted((site, value) for site, value in engine.rows(view) if site and value)
        assert_same(f"{figure} of sites in {engine.name}", wanted, rows)


def compare_rows(engines, table):
    """All rows of all views in both engines, and the table itself by pyarrow, too."""
    columns = pyarrow.parquet.read_schema(table).names
    read = pyarrow.parquet.ParquetFile(table).read().to_pylist()
    read = in_order(tuple(row[column] for column in columns) for row in read)
    for engine in engines:
        rows = in_order(engine.rows(f"SELECT {', '.join(columns)} FROM trace_rows"))
        assert_same(f"rows in pyarrow and {engine.name}", read, rows)
    for view in VIEWS:
        duck, spark = (in_order(engine.rows(f"SELECT * FROM {view}")) for engine in engines)
        assert_same(f"{view} in both engines", duck, spark)
    return len(read)


def compare_text(engines, trace):
    """Records and calls straight from the text are those of the table."""
    records = "timestamp, lwp, pid, tid, event, event_number, which, a1, a2, a3, a4, a5"
    calls = "pid, lwp, event_number, entry, duration"
    returned = f"SELECT {calls} FROM trace_rows WHERE which = 2 AND entry IS NOT NULL"
    want = [in_order(engines[0].rows(query)) for query in (f"SELECT {records} FROM records", returned)]
    trace_cat("--recover", trace)
    for engine in engines:
        engine.load("-text", trace=f"{trace}/tr.*[0-9a-f].[0-9a-f]*", events="spec/events.tsv")
        assert_same(f"records of the text in {engine.name}", want[0], in_order(engine.rows(f"SELECT {records} FROM records")))
        assert_same(f"calls of the text in {engine.name}", want[1], in_order(engine.rows(f"SELECT {calls} FROM calls")))


def compare_questions(engines, fleet):
    """The questions of docs/fleet.md have the same answers."""
    engines[0].load("", trace=f"{fleet}/**/*.parquet")
    engines[1].load("", trace=fleet)
    questions = re.findall(r"```sql\n(.*?)```", pathlib.Path("docs/fleet.md").read_text(), re.S)
    assert len(questions) == 10, len(questions)
    for question in questions:
        duck, spark = (engine.rows(question) for engine in engines)
        assert_same(question, duck, spark)
        print(f"{len(duck):6} rows: {question.splitlines()[0][:100]}")


def main():
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", WORK / "waiters", "tests/sql/waiters.c"], check=True)
    engines, fleet = (DuckDb(), Spark()), WORK / "fleet"
    for name, arguments in (("returns", []), ("killed", ["killed"]), ("forks", ["forks"])):
        trace, table = record(name, *arguments), WORK / f"{name}.parquet"
        trace_cat("-F", "parquet", "-o", table, trace)
        report = json.loads(trace_cat("report", "-F", "json", trace))
        for engine in engines:
            engine.load("", trace=table)
            compare_with_report(engine, report)
        print(f"{compare_rows(engines, table):6} rows: {name}")
        trace_cat("-F", "parquet", "--partition", "--host", f"host-{name}", "-o", fleet, trace)
        compare_text(engines, trace)
    compare_questions(engines, fleet)


main()
