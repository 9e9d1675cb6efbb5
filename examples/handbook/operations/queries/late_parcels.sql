-- late_parcels.sql: the list that Customer Service works through each morning at 06:30.
--
-- A parcel is LATE when its promised day has ended, midnight in the recipient's time zone, without a
-- scan of kind 'delivered' or 'attempted'. A parcel that was redirected counts from its new day. Depots
-- that entered WEATHER are left out: their recipients were told already.
--
-- Run it on the replica only. On the primary it costs the tracker about 70 ms of its p95.
-- Owner: Parcels. Expected: 0.8 % of yesterday's parcels, and no more than 2,600 rows.

SET statement_timeout = '90s';

WITH promised AS (
    SELECT
        s.parcel_id,
        s.depot_code,
        COALESCE(r.new_day, s.promised_day) AS day,
        d.time_zone
    FROM dispatch.stops AS s
    JOIN dispatch.depots AS d USING (depot_code)
    LEFT JOIN parcels.redirections AS r USING (parcel_id)
    WHERE COALESCE(r.new_day, s.promised_day) BETWEEN CURRENT_DATE - 3 AND CURRENT_DATE - 1
),

reached_a_door AS (
    -- Scans are partitioned by month: without this bound all 25 months are read, which takes 11 minutes.
    SELECT parcel_id, MIN(scanned_at) AS scanned_at
    FROM tracking.scans
    WHERE kind IN ('delivered', 'attempted')
      AND scanned_at >= CURRENT_DATE - 4
    GROUP BY parcel_id
)

SELECT
    p.depot_code,
    p.parcel_id,
    p.day AS promised,
    -- Whole days. Customer Service telephones from two days on, and writes before that.
    CURRENT_DATE - p.day AS days_late
FROM promised AS p
LEFT JOIN reached_a_door AS a
    ON a.parcel_id = p.parcel_id
   AND a.scanned_at < ((p.day + 1)::timestamp AT TIME ZONE p.time_zone)
WHERE a.parcel_id IS NULL
  AND NOT EXISTS (
      SELECT 1
      FROM dispatch.weather_days AS w
      WHERE w.depot_code = p.depot_code AND w.day = p.day
  )
ORDER BY days_late DESC, p.depot_code, p.parcel_id;
