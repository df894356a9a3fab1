-- What clickstream counts: psql -f schema.sql
CREATE TABLE page_views (
  page varchar(512) NOT NULL,
  minute timestamptz NOT NULL,
  views bigint NOT NULL,
  PRIMARY KEY (page, minute)
);

-- How far each shard is counted.
CREATE TABLE shards (
  shard text PRIMARY KEY,
  position text NOT NULL
);

-- Events that cannot be counted.
CREATE TABLE parked (
  shard text,
  position text,
  error text NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (shard, position)
);

-- As lines for kclxx replay --parked, which gives their shard a new name, and so a row of its own.
CREATE VIEW parked_lines AS
  SELECT json_build_object(
    'shard', shard,
    'sequenceNumber', split_part(position, '/', 1),
    'subSequenceNumber', split_part(position, '/', 2)::bigint,
    'data', translate(encode(data, 'base64'), E'\n', '')) AS line, shard, position
  FROM parked;
