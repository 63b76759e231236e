"""Records a Python program into a directory, compares what the module reads with what trace-cat prints, and runs what
docs/python.md shows: `python_test.py DIRECTORY PAGE`."""

import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import threadt

PROGRAM = """
import threading, time
lock = threading.Lock()
def work():
    for _ in range(20):
        with lock:
            time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def printed(*arguments):
    return subprocess.run([threadt.trace_cat(), *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def number(text):
    return int(text, 0)


directory, page = sys.argv[1:]
environment_program = os.path.join(os.path.dirname(sys.executable), "trace-cat")
assert threadt.trace_cat() == environment_program, threadt.trace_cat()
# The library is found without a word about where it is.
subprocess.run([threadt.trace_cat(), "run", "-d", directory, "--", sys.executable, "-c", PROGRAM], check=True)

with warnings.catch_warnings():
    warnings.simplefilter("error")
    records = list(threadt.read(directory))
    lines = printed(directory).splitlines()
    assert len(records) == len(lines) > 100, (len(records), len(lines))
    for record, line in zip(records, lines):
        fields = line.split(":")
        assert record.time == int(fields[0]) * 10**9 + int(fields[1]), (record, line)
        assert [record.lwpid, record.pid, record.tid] == [int(fields[2]), int(fields[3]), number(fields[4])], (record, line)
        assert (record.which, *record[7:12]) == tuple(map(number, fields[7:13])), (record, line)
    assert {"thr_create", "thr_begin"} <= {record.event for record in records}
    create = next(record for record in records if record.event == "thr_create" and record.which == 2)
    assert create.arguments["rval"] == 0 and create.arguments["new_tid"] in {record.tid for record in records}, create

    # Options select, and who needs only some leaves no process behind.
    begins = list(threadt.read(directory, options=["-e", "thr_begin"]))
    assert len(begins) == sum(record.event == "thr_begin" for record in records) >= 3
    assert list(itertools.islice(threadt.read(directory), 2)) == records[:2]

    document = threadt.report(directory)
    assert document == json.loads(printed("report", "-F", "json", directory))
    assert document["processes"][0]["pid"] == records[0].pid

    try:
        threadt.report(directory, options=["--no-such-option"])
        raise AssertionError("a wrong option is accepted")
    except threadt.TraceError as error:
        assert "--no-such-option" in str(error)

    for path in [directory + "-none", os.path.join(directory, "none")]:
        try:
            threadt.read(directory, path)
            raise AssertionError("a path that does not exist is accepted")
        except FileNotFoundError as error:
            assert error.filename == path, error

with warnings.catch_warnings(record=True) as caught, tempfile.TemporaryDirectory() as empty:
    warnings.simplefilter("always")
    assert list(threadt.read(empty)) == []
    os.symlink(os.path.abspath(directory), os.path.join(empty, "trace"))
    assert list(threadt.read(empty)) == []
assert [warning.category for warning in caught] == [threadt.TraceWarning] * 2, caught
assert str(caught[1].message).endswith(f"; there is one in {empty}/trace"), caught

if importlib.util.find_spec("pyarrow"):
    table = threadt.read(directory).to_arrow()
    assert table.num_rows == len(records)
    assert table["time"].cast("int64").to_pylist() == [record.time for record in records]
    assert table["event"].to_pylist() == [record.event for record in records]
    assert [value % 2**64 for value in table["a1"].to_pylist()] == [record.a1 % 2**64 for record in records]
if importlib.util.find_spec("pandas"):
    frame = threadt.read(directory).to_pandas()
    assert len(frame) == len(records) and list(frame["event"]) == [record.event for record in records]
    assert list(frame["time"].astype("int64")) == [record.time for record in records]
    assert len(threadt.read(directory, options=["-e", "barrier"]).to_pandas()) == 0

# What the page shows, in one program, where the trace has the name that it has on the page.
blocks = re.findall(r"```python\n(.*?)```", open(page).read(), re.DOTALL)
assert len(blocks) == 3, blocks
script = "\n".join(blocks).replace('"work.trace"', repr(directory))
shown = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout
assert "thr_create" in shown, shown
