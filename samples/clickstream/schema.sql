-- What clickstream counts: psql -f schema.sql
CREATE TABLE page_views (
  page varchar(512) NOT NULL,
  minute timestamptz NOT NULL,
  views bigint NOT NULL,
  PRIMARY KEY (page, minute)
);

-- How far each shard is counted, and which of its processors may write: the last one that raised the epoch.
CREATE TABLE shards (
  shard text PRIMARY KEY,
  epoch bigint NOT NULL,
  position text NOT NULL
);
