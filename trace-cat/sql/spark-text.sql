-- Records and calls straight from record files, for Spark SQL; after `trace-cat --recover` if processes were killed.
--
--     SET trace = trace/tr.*; SET events = /usr/share/threadt/events.tsv;
--     SOURCE /usr/share/threadt/sql/spark-text.sql;

CREATE OR REPLACE TEMPORARY VIEW event_rows (event1 INT, event2 INT, which INT, event STRING)
USING csv OPTIONS (path '${events}', sep '\t', header 'false', comment '#');

CREATE OR REPLACE TEMPORARY VIEW events AS
SELECT event1 * 100 + event2 AS event_number, any_value(event) AS event FROM event_rows GROUP BY event1, event2;

CREATE OR REPLACE TEMPORARY VIEW record_lines (time1 BIGINT, time2 BIGINT, lwp INT, pid INT, tid STRING, event1 INT, event2 INT,
    which INT, a1 STRING, a2 STRING, a3 STRING, a4 STRING, a5 STRING)
USING csv OPTIONS (path '${trace}', sep ':', header 'false', quote '', escape '');

-- conv to base -10 makes the 64 bits of a value a signed number.
CREATE OR REPLACE TEMPORARY VIEW records AS
SELECT time1 * 1000000000 + time2 AS timestamp, lwp, pid, CAST(conv(substring(tid, 3), 16, -10) AS BIGINT) AS tid, event,
       event1 * 100 + event2 AS event_number, which,
       CAST(CASE WHEN a1 LIKE '0x%' THEN conv(substring(a1, 3), 16, -10) ELSE conv(a1, 10, -10) END AS BIGINT) AS a1,
       CAST(CASE WHEN a2 LIKE '0x%' THEN conv(substring(a2, 3), 16, -10) ELSE conv(a2, 10, -10) END AS BIGINT) AS a2,
       CAST(CASE WHEN a3 LIKE '0x%' THEN conv(substring(a3, 3), 16, -10) ELSE conv(a3, 10, -10) END AS BIGINT) AS a3,
       CAST(CASE WHEN a4 LIKE '0x%' THEN conv(substring(a4, 3), 16, -10) ELSE conv(a4, 10, -10) END AS BIGINT) AS a4,
       CAST(CASE WHEN a5 LIKE '0x%' THEN conv(substring(a5, 3), 16, -10) ELSE conv(a5, 10, -10) END AS BIGINT) AS a5,
       monotonically_increasing_id() AS line
FROM record_lines LEFT JOIN events ON event_number = event1 * 100 + event2;

-- Records of a thread in one nanosecond are in the order of their lines.
-- Calls with both records. Calls in signal handlers nest, so records of one depth belong together.
CREATE OR REPLACE TEMPORARY VIEW calls AS
WITH nested AS (
    SELECT *, sum(CASE which WHEN 1 THEN 1 ELSE -1 END)
              OVER (PARTITION BY pid, lwp, tid, event_number ORDER BY timestamp, line ROWS UNBOUNDED PRECEDING)
              - CASE which WHEN 1 THEN 1 ELSE 0 END AS depth
    FROM records WHERE which > 0 AND event_number >= 100),
paired AS (
    SELECT *, lag(timestamp) OVER (PARTITION BY pid, lwp, tid, event_number, depth ORDER BY timestamp, line) AS entry,
           lag(which) OVER (PARTITION BY pid, lwp, tid, event_number, depth ORDER BY timestamp, line) AS before,
           lag(a1) OVER (PARTITION BY pid, lwp, tid, event_number, depth ORDER BY timestamp, line) AS entry_a1
    FROM nested)
SELECT entry, timestamp - entry AS duration, pid, lwp, tid, event, event_number, entry_a1 AS object, a1 AS result, a2
FROM paired WHERE which = 2 AND before = 1;
