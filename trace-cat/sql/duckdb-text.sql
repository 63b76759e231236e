-- Records and calls straight from record files, for DuckDB; after `trace-cat --recover` if processes were killed.
--
--     SET VARIABLE trace = 'trace/tr.*'; SET VARIABLE events = '/usr/share/threadt/events.tsv';
--     .read /usr/share/threadt/sql/duckdb-text.sql

-- The 64 bits of a value, which is decimal or hexadecimal, as a signed number.
CREATE OR REPLACE MACRO bits_of(text) AS (
    CASE WHEN text::HUGEINT > 9223372036854775807 THEN text::HUGEINT - 18446744073709551616 ELSE text::HUGEINT END)::BIGINT;

CREATE OR REPLACE VIEW events AS
SELECT "#event1" * 100 + event2 AS event_number, any_value(name) AS event
FROM read_csv(getvariable('events'), delim = '\t', header = true) GROUP BY ALL;

CREATE OR REPLACE VIEW records AS
SELECT time1 * 1000000000 + time2 AS timestamp, lwp, pid, bits_of(tid) AS tid, event,
       event1 * 100 + event2 AS event_number, which,
       bits_of(a1) AS a1, bits_of(a2) AS a2, bits_of(a3) AS a3, bits_of(a4) AS a4, bits_of(a5) AS a5,
       row_number() OVER () AS line
FROM read_csv(getvariable('trace'), delim = ':', header = false, quote = '', escape = '', auto_detect = false, columns = {
    'time1': 'BIGINT', 'time2': 'BIGINT', 'lwp': 'INTEGER', 'pid': 'INTEGER', 'tid': 'VARCHAR', 'event1': 'INTEGER',
    'event2': 'INTEGER', 'which': 'INTEGER', 'a1': 'VARCHAR', 'a2': 'VARCHAR', 'a3': 'VARCHAR', 'a4': 'VARCHAR', 'a5': 'VARCHAR'})
LEFT JOIN events ON event_number = event1 * 100 + event2;

-- Records of a thread in one nanosecond are in the order of their lines.
-- Calls with both records. Calls in signal handlers nest, so records of one depth belong together.
CREATE OR REPLACE VIEW calls AS
WITH nested AS (
    SELECT *, sum(CASE which WHEN 1 THEN 1 ELSE -1 END) OVER (thread ORDER BY timestamp, line ROWS UNBOUNDED PRECEDING)
              - CASE which WHEN 1 THEN 1 ELSE 0 END AS depth
    FROM records WHERE which > 0 AND event_number >= 100
    WINDOW thread AS (PARTITION BY pid, lwp, tid, event_number)),
paired AS (
    SELECT *, lag(timestamp) OVER call AS entry, lag(which) OVER call AS before, lag(a1) OVER call AS entry_a1
    FROM nested WINDOW call AS (PARTITION BY pid, lwp, tid, event_number, depth ORDER BY timestamp, line))
SELECT entry, timestamp - entry AS duration, pid, lwp, tid, event, event_number, entry_a1 AS object, a1 AS result, a2
FROM paired WHERE which = 2 AND before = 1;
