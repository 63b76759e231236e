-- Views of a table that `trace-cat -F parquet` wrote, for DuckDB. They only filter and group, so that counts and sums are those of
-- `trace-cat report -F json` of the same trace. Times are nanoseconds.
--
--     SET VARIABLE trace = 'fleet/**/*.parquet';     -- a file, or the files of a directory
--     .read /usr/share/threadt/sql/duckdb.sql

CREATE OR REPLACE VIEW trace_rows AS
SELECT * FROM read_parquet(getvariable('trace'), hive_types_autocast = false, union_by_name = true);

-- One row for each record.
CREATE OR REPLACE VIEW records AS
SELECT timestamp, host, boot, program, build_id, pid, lwp, tid, event, event_number, which, a1, a2, a3, a4, a5,
       object, object_kind, object_name, site
FROM trace_rows WHERE kind = 'record';

-- One row for each call: those that returned, and those that did not (open), which lasted at least until last_seen.
CREATE OR REPLACE VIEW calls AS
SELECT entry, timestamp AS last_seen, duration, kind = 'call' AS open, waited, holder, waker,
       host, boot, program, build_id, pid, lwp, tid, event, event_number, object, object_kind, object_name, site
FROM trace_rows
WHERE kind = 'call'
   OR kind = 'record' AND event_number >= 100 AND (which = 2 OR which = 0 AND duration IS NOT NULL);

-- One row for each wait. The rest of a wait for a condition, for the mutex, is a wait for that object, of the same call.
CREATE OR REPLACE VIEW waits AS
SELECT timestamp AS ended, waited, contention, timed_out, open, kind = 'rest' AS is_rest, holder, holder_site, blamed, handoff,
       unknown, waker, waker_site, host, boot, program, build_id, pid, lwp, tid, object, object_kind, object_name, site
FROM trace_rows WHERE waited IS NOT NULL;

-- One row for each hold; site is where the object was acquired.
CREATE OR REPLACE VIEW holds AS
SELECT timestamp AS ended, held, kind = 'hold' AND open AS open, held_site AS site,
       host, boot, program, build_id, pid, lwp, tid, object, object_kind, object_name
FROM trace_rows WHERE held IS NOT NULL;

-- The figures of each object.
CREATE OR REPLACE VIEW objects AS
SELECT host, boot, object, any_value(object_kind) AS object_kind, any_value(object_name) AS object_name, any_value(program) AS program,
       any_value(build_id) AS build_id,
       count(*) FILTER (kind = 'record' AND which < 2) AS calls,
       count(waited) AS waits, coalesce(sum(waited), 0)::BIGINT AS waited,
       coalesce(sum(waited) FILTER (contention), 0)::BIGINT AS contention,
       coalesce(sum(waited) FILTER (NOT contention), 0)::BIGINT AS idleness,
       max(waited) AS longest_wait, count(*) FILTER (timed_out) AS timeouts,
       coalesce(sum(handoff), 0)::BIGINT AS handoff, coalesce(sum(unknown), 0)::BIGINT AS unknown,
       count(held) AS holds, coalesce(sum(held), 0)::BIGINT AS held, max(held) AS longest_hold
FROM trace_rows WHERE object IS NOT NULL GROUP BY host, boot, object;

-- Who waited for whom.
CREATE OR REPLACE VIEW pairs AS
SELECT host, boot, pid, lwp AS waiter, holder, object, any_value(object_name) AS object_name,
       count(*) FILTER (kind <> 'site') AS waits, sum(blamed)::BIGINT AS waited
FROM trace_rows WHERE blamed IS NOT NULL GROUP BY host, boot, pid, lwp, holder, object;
