WITH RECURSIVE request(id, depth) AS (
  SELECT id, 0 FROM (SELECT id FROM activities WHERE provider = 'FleetShop_front' ORDER BY duration DESC LIMIT 1)
  UNION ALL
  SELECT activities.id, depth + 1 FROM request JOIN activities ON activities.parent = request.id
)
SELECT depth, provider, name, status, duration / 1000 AS microseconds
FROM request JOIN activities USING (id) ORDER BY depth
