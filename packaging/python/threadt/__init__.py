"""Reads what libthreadt recorded, by calling trace-cat.

    import threadt

    for record in threadt.read("/tmp/t", options=["-e", "mutex"]):
        print(record.time, record.event, record.arguments)

    for entry in threadt.report("/tmp/t")["objects"]:
        print(entry["object"], entry["waited"])
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

__all__ = ["Record", "Records", "TraceError", "TraceWarning", "read", "report", "trace_cat"]

PathLike = Union[str, "os.PathLike[str]"]

# Records of one batch of a table: so many are Python objects at a time.
_BATCH = 1 << 16
_ARGUMENTS = ("a1", "a2", "a3", "a4", "a5")
# trace-cat's exit statuses: some of the trace is damaged; a report has a deadlock.
_DAMAGED = 1
_FINDING = 3


class TraceError(Exception):
    """trace-cat failed. The text is what it wrote to its standard error."""


class TraceWarning(UserWarning):
    """trace-cat reported damage, or something that is worth knowing. What could be read was read."""


class Record(NamedTuple):
    """A record, as thread_trace(5) describes it."""

    #: Nanoseconds since the Epoch.
    time: int
    lwpid: int
    pid: int
    #: What pthread_self() returned.
    tid: int
    category: str
    event: str
    #: 0 for the only record of a call, 1 for the first of two, 2 for the second.
    which: int
    a1: int
    a2: int
    a3: int
    a4: int
    a5: int
    #: What a1 to a5 are, "-" for what the event leaves empty.
    columns: Tuple[str, ...]
    #: The program's own name of the object or event.
    name: Optional[str]

    @property
    def arguments(self) -> Dict[str, int]:
        """a1 to a5 by what they are, without those that the event leaves empty."""
        values = self[7:12]
        return {column: value for column, value in zip(self.columns, values) if column != "-"}


def trace_cat() -> str:
    """The path of trace-cat: THREADT_TRACE_CAT, or the one that was installed with this module, or the first in PATH."""
    named = os.environ.get("THREADT_TRACE_CAT")
    if named:
        return named
    # As pip installed it: into an environment, or for a user.
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    for directory in schemes:
        program = Path(directory) / "trace-cat"
        if os.access(program, os.X_OK):
            return str(program)
    program = shutil.which("trace-cat")
    if program is None:
        raise TraceError(f"trace-cat is neither in {schemes[0]} nor in PATH; THREADT_TRACE_CAT names it")
    return program


def read(*paths: PathLike, options: Sequence[str] = ()) -> "Records":
    """The records of directories or files, in the order of time.

    ``options`` are those of trace-cat that select records, such as ``["-e", "mutex:cond", "--since", "+1s"]``.
    A path that does not exist raises FileNotFoundError. What has no trace, or cannot be read, is a TraceWarning.
    """
    return Records(paths, options)


def report(*paths: PathLike, options: Sequence[str] = ()) -> Dict[str, Any]:
    """What trace-cat report says, as the objects of its JSON document (see trace-cat-report(1))."""
    command = [trace_cat(), "report", "-F", "json", *options, "--", *map(os.fspath, paths)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _check(result.returncode, result.stderr, (0, _DAMAGED, _FINDING), bool(result.stdout))
    return json.loads(result.stdout)


class Records:
    """The records of a trace. Each iteration reads the trace anew."""

    def __init__(self, paths: Sequence[PathLike], options: Sequence[str]) -> None:
        self._paths = [os.fspath(path) for path in paths]
        for path in self._paths:
            # A misspelled name would be a trace without records.
            os.stat(path)
        self._options = list(options)

    def __iter__(self) -> Iterator[Record]:
        command = [trace_cat(), "-F", "csv", *self._options, "--", *self._paths]
        # Messages go to a file, so that a full pipe of them holds nobody up.
        with tempfile.TemporaryFile() as messages:
            with subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages
            ) as process:
                try:
                    rows = csv.reader(io.TextIOWrapper(process.stdout, "utf-8", errors="replace", newline=""))
                    next(rows, None)
                    for row in rows:
                        yield _record(row)
                except GeneratorExit:
                    # Nobody wants the rest; a closed pipe ends trace-cat.
                    process.stdout.close()
                    raise
                status = process.wait()
            messages.seek(0)
            _check(status, messages.read(), (0, _DAMAGED), True)

    def _batches(self) -> Iterator[List[Record]]:
        batch: List[Record] = []
        for record in self:
            batch.append(record)
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``. a1 to a5 are the 64 bits as signed numbers."""
        import pyarrow

        word = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        schema = pyarrow.schema(
            [("time", pyarrow.timestamp("ns")), ("lwpid", pyarrow.int32()), ("pid", pyarrow.int32())]
            + [("tid", pyarrow.int64()), ("category", word), ("event", word), ("which", pyarrow.int8())]
            + [(argument, pyarrow.int64()) for argument in _ARGUMENTS]
            + [("name", pyarrow.string())]
        )

        def batch(records: List[Record]) -> Any:
            columns = _columns(records)
            arrays = [pyarrow.array(columns[field.name], type=_plain(field.type)) for field in schema]
            arrays = [array.cast(field.type) for array, field in zip(arrays, schema)]
            return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

        def _plain(kind: Any) -> Any:
            return kind.value_type if pyarrow.types.is_dictionary(kind) else kind

        table = pyarrow.Table.from_batches([batch(records) for records in self._batches()], schema=schema)
        return table.unify_dictionaries()

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with the columns of :meth:`to_arrow`."""
        import pandas

        frames = [pandas.DataFrame(_columns(records)) for records in self._batches()]
        frame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame(_columns([]))
        kinds: Dict[str, str] = dict.fromkeys(_ARGUMENTS, "int64")
        kinds.update(lwpid="int32", pid="int32", tid="int64", which="int8", category="category", event="category")
        frame = frame.astype(kinds)
        frame["time"] = pandas.to_datetime(frame["time"], unit="ns")
        return frame


def _columns(records: List[Record]) -> Dict[str, List[Any]]:
    fields = [field for field in Record._fields if field != "columns"]
    columns = {field: [getattr(record, field) for record in records] for field in fields}
    for argument in ("tid", *_ARGUMENTS):
        columns[argument] = [_signed(value) for value in columns[argument]]
    return columns


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _record(row: List[str]) -> Record:
    seconds, nanoseconds = row[0].split(".")
    numbers = [int(text, 0) for text in row[6:12]]
    return Record(
        int(seconds) * 1_000_000_000 + int(nanoseconds),
        int(row[1]),
        int(row[2]),
        int(row[3], 16),
        row[4],
        row[5],
        *numbers,
        tuple(row[12].split()),
        row[13] or None,
    )


def _check(status: int, messages: bytes, accepted: Tuple[int, ...], has_output: bool) -> None:
    text = messages.decode(errors="replace").strip()
    if status not in accepted or not has_output:
        raise TraceError(text or f"trace-cat ended with status {status}")
    if text:
        warnings.warn(text, TraceWarning, stacklevel=3)
