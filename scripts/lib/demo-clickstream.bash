# shellcheck shell=bash disable=SC2154,SC2034 # scripts/demo and steps.bash set and read these variables
# Sourced by scripts/demo --clickstream, once Kinesis and DynamoDB run and the stream is made: samples/clickstream
# under two real daemons, of which one is killed, and a shard that is split; then the sums in the database against
# those of what was put.

export LC_ALL=C # for sort, as for awk
pages=6
events=$work/events   # what is put, a line each

query() { psql -XqAt -F $'\t' -v ON_ERROR_STOP=1 -c "$1" 2>>"$work/psql.log"; }
counted() { query 'SELECT coalesce(sum(views), 0) FROM page_views'; }

# The pages and their views, written over by the next ones on a terminal. Without a terminal: a line every ten seconds.
table_height=0
show() { # show [TEXT]: the number of views, and this
    local n rows page views bar
    n=$(counted) && rows=$(query 'SELECT page, sum(views) FROM page_views GROUP BY 1 ORDER BY 1') || return
    if [[ ! -t 1 ]]; then
        progress "$n page views counted${1:+, $1}"
        return
    fi
    ((table_height == 0)) || printf '\e[%dA' "$table_height"
    printf '\e[J      %s page views counted%s\n' "$n" "${1:+, $1}"
    table_height=1
    while IFS=$'\t' read -r page views; do
        [[ -n $page ]] || continue
        printf -v bar '%*s' "$((n ? views * 40 / n : 0))" ''
        printf '      %-10s %8d %s\n' "$page" "$views" "${bar// /▇}"
        table_height=$((table_height + 1))
    done <<<"$rows"
}

# await SECONDS WHAT CONDITION …: shows the views until the condition holds.
await() {
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    table_height=0 last_progress=-100
    until "$@"; do
        alive "$daemon" || fail "the daemon ended while $what" "$work/one.log"
        ((SECONDS < deadline)) || fail "not within the time allowed: $what" "$work/one.log"
        show "$((SECONDS - step_start)) s"
        sleep 0.3
    done
    last_progress=-100
    show "$((SECONDS - step_start)) s"
}

start_worker() { # start_worker NAME: its process id is then in $pid
    KCLXX_PROPERTY_workerId=$1 start "$work/$1.log" env -C "$work" ./kclxx daemon run \
        "$root/properties/local.properties" --heap 256m
}

step "Start PostgreSQL, on a socket of its own"
database_directory=$(mktemp -d /tmp/kclxx-demo-pg.XXXXXX) # the path of a socket is short, and its user must get there
start "$work/postgres.log" "$lib/run-postgres" "$database_directory"
database=$pid
for variable in "${!PG@}"; do unset "$variable"; done # the caller's
export PGHOST=$database_directory PGUSER=postgres PGDATABASE=postgres
database_answers() { query '' || ! alive "$database"; }
if ! wait_until 60 database_answers || ! alive "$database"; then fail "PostgreSQL did not start" "$work/postgres.log"; fi
psql -Xq -v ON_ERROR_STOP=1 -f "$root/samples/clickstream/schema.sql" >>"$work/psql.log" 2>&1 ||
    fail "the tables could not be made" "$work/psql.log"
say "$(query 'SELECT version()' | cut -d , -f 1)"

step "Start a worker"
export KCLXX_PROPERTY_executableName=./clickstream
# The second worker gets shards soon, although there is little to do.
export KCLXX_PROPERTY_varianceBalancingFrequency=1 KCLXX_PROPERTY_dampeningPercentage=100 \
    KCLXX_PROPERTY_reBalanceThresholdPercentage=1
start_worker one
daemon=$pid

step "Put page views, 500 a second; one of 400 is malformed"
awk -v pages="$pages" -v now="$(date +%s)" 'BEGIN {
    srand(1)
    split("/ /blog /docs /download /help /pricing", page, " ")
    for (n = 1; n <= 100000; n++) {
        at = sprintf("%d%03d", now - 300 + int(rand() * 300), int(rand() * 1000))
        if (n % 400 == 0) at = "\"event " n "\""
        printf "{\"page\":\"%s\",\"at\":%s,\"user\":\"u%d\"}\n", page[1 + int(rand() * rand() * pages)], at, int(rand() * 1000)
    }
}' >"$events"
start "$work/put.log" "$kclxx" local put "$stream" --data "$events" --rate 500
put=$pid
# The first worker has all shards, so it assigns them; a second one that is killed does not.
all_shards_counted() { (($(query 'SELECT count(*) FROM shards') == shards)); }
await 60 "the worker counts page views of all shards" all_shards_counted

step "Start a second worker; it takes a shard over"
start_worker two
second=$pid
shards_of() { kclxx_local leases "$stream" --tsv | awk -F '\t' -v owner="$1" '$4 == owner { print "\x27" $1 "\x27" }' | paste -sd ,; }
positions() { query "SELECT * FROM shards WHERE shard IN ($1) ORDER BY 1"; }
is_shared() { # the second worker has counted
    local before
    taken=$(shards_of two) && [[ -n $taken ]] && before=$(positions "$taken") && sleep 1 && [[ $(positions "$taken") != "$before" ]]
}
await 90 "the second worker takes a shard over" is_shared

step "Kill the second worker with SIGKILL, with its children"
taken=$(shards_of two)
[[ -n $taken ]] || fail "the second worker has lost its shards before it was killed" "$work/two.log"
number=$(wc -w <<<"${taken//,/ }")
kill -KILL -- "-$second"
wait "$second" 2>/dev/null || true
left_at=$(positions "$taken")
are_taken_back() { ! grep -qxFf <(echo "$left_at") <(positions "$taken"); }
await 90 "the first worker takes over what the second one had" are_taken_back
say "the first worker has taken over the $number of $shards shards that it had"

step "Split shard 0"
kclxx_local split "$stream" 0 >>"$work/local.log" || fail "the shard could not be split" "$work/local.log"
children_counted() { (($(query 'SELECT count(*) FROM shards') == shards + 2)); }
await 90 "page views of both child shards are counted" children_counted

step "End the load, and wait until all of it is counted"
kill -INT "$put"
status=0
wait "$put" || status=$?
((status == 0)) || fail "the page views could not be put" "$work/put.log"
records=$(grep -oE '[0-9]+ records' "$work/put.log" | tail -n 1 | cut -d ' ' -f 1)
[[ -n $records ]] || fail "the number of page views that were put is not known" "$work/put.log"
# The lines of the file in turn, so the first ones.
head -n "$records" "$events" >"$work/put"
(($(wc -l <"$work/put") == records)) || fail "more page views were put than there are lines" "$work/put.log"
grep '"at":"' "$work/put" | sort >"$work/malformed" || true
good=$((records - $(wc -l <"$work/malformed")))
parked() { query "SELECT convert_from(data, 'UTF8') FROM parked" | sort; }
all_done() { (($(counted) >= good)) && (($(parked | wc -l) >= records - good)); }
await 120 "$good page views are counted" all_done
processing=$((SECONDS - records_start))

step "Stop the daemon with SIGTERM"
stop_daemon "$work/one.log"

step "Compare the sums in the database with those of what was put"
awk -F '[:,]' '!/"at":"/ { gsub(/"/, "", $2); n[$2 "\t" int($4 / 60000)]++ } END { for (where in n) print where "\t" n[where] }' \
    "$work/put" | sort >"$work/expected"
query 'SELECT page, extract(epoch FROM minute)::bigint / 60, views FROM page_views' | sort >"$work/sums"
if ! diff "$work/expected" "$work/sums" >"$work/difference"; then
    cat "$work/difference"
    fail "the sums are not exact: page, minute, views; <: put, >: in the database"
fi
parked | diff "$work/malformed" - >"$work/difference" || {
    cat "$work/difference"
    fail "the parked events are not the malformed ones; <: put, >: parked"
}
printf '      %-12s %10s %10s\n' page put counted
by_page() { awk -F '\t' '{ n[$1] += $3 } END { for (page in n) print page, n[page] }' "$1" | sort; }
join <(by_page "$work/expected") <(by_page "$work/sums") | awk '{ printf "      %-12s %10d %10d\n", $1, $2, $3 }'
say "… all $(wc -l <"$work/sums") sums of a page and a minute agree"
say "$((records - good)) malformed events are parked"

end_step
echo
end_all
echo "Seconds per step: ${step_times[*]}; from the first process to the last count: $processing"
echo "$records put, 1 worker killed, 1 shard split; $(awk -F '\t' '{ n += $3 } END { print n }' "$work/sums") counted, $((records - good)) parked, 0 lost, 0 twice"
