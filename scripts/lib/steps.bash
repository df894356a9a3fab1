# Sourced by scripts/demo and scripts/lib/demo-replay: named steps, one clear line on failure, background programs
# that never outlive the script, and whether word_count has counted right.

step_name=start
step_start=$SECONDS
step_count=0
step_times=()
started=() # process groups to end, newest last

step() { # step NAME
    end_step
    step_name=$1
    step_start=$SECONDS
    step_count=$((step_count + 1))
    printf '%2d. %s\n' "$step_count" "$step_name"
}

end_step() {
    ((step_count == 0)) || step_times+=("$((SECONDS - step_start))")
}

say() { printf '      %s\n' "$*"; }

# A line that is written over by the next one on a terminal. Without a terminal: a line every ten seconds.
last_progress=-100
progress() {
    if [[ -t 1 ]]; then
        printf '\r      %s' "$*"
    elif ((SECONDS - last_progress >= 10)); then
        last_progress=$SECONDS
        say "$*"
    fi
}
end_progress() { # end_progress TEXT: the last state, always shown
    if [[ -t 1 ]]; then printf '\r'; fi
    say "$*"
    last_progress=-100
}

fail() { # fail TEXT [LOG]
    [[ -t 1 ]] && echo
    printf 'demo: %s%s\n' "$1" "${2:+; log: $2}" >&2
    exit 1
}

# Runs a program in its own session, its output in LOG; its process id is then in $pid. Away from the terminal's
# process group because Ctrl-C would otherwise reach the daemon and its children at the same moment as this
# script, and because a group can be ended as a whole.
start() { # start LOG PROGRAM …
    local log=$1
    shift
    setsid "$@" >>"$log" 2>&1 </dev/null 9>&- & # 9: see `lock`
    pid=$!
    started+=("$pid")
}

# Runs a program to its end, its output in LOG. Unlike a plain call it lets a signal to this script take effect at
# once: bash handles signals during `wait`, but not while a program in the foreground works.
run() { # run LOG PROGRAM …
    local pid
    start "$@"
    local status=0
    wait "$pid" || status=$?
    unset 'started[-1]' # its id may soon be someone else's
    return "$status"
}

# Two demos that are started together must not install, fetch or build at the same time. Nothing that is started
# inherits the lock: it is free as soon as this script is gone.
lock() { # lock FILE
    exec 9>"$1"
    until flock -n 9; do
        progress "waiting for another demo that installs, fetches or builds"
        sleep 1
    done
}
unlock() { exec 9>&-; }

alive() { kill -0 "$1" 2>/dev/null; }

# Whether a process group has a living member: a child may outlive the program that started it.
group_alive() {
    local file line fields
    for file in /proc/[0-9]*/stat; do
        { read -r line <"$file"; } 2>/dev/null || continue
        read -r -a fields <<<"${line##*) }" # after the name: state, parent, group, …
        [[ ${fields[2]} == "$1" && ${fields[0]} != Z ]] && return 0
    done
    return 1
}

wait_until() { # wait_until SECONDS CONDITION …
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}

group_gone() { ! group_alive "$1"; }

# SIGKILL, because this is for processes that nothing waits for any more. Returns 1 if something is left all the same.
end_started() {
    local group status=0
    for group in "${started[@]}"; do
        kill -KILL -- "-$group" 2>/dev/null || true
    done
    for group in "${started[@]}"; do
        wait "$group" 2>/dev/null || true # bash would report each killed program otherwise
        wait_until 10 group_gone "$group" || status=1
    done
    started=()
    return "$status"
}

# counted DIRECTORY: prints how many records the .counts files there have; the second line of each has the number.
counted() {
    local files=("$1"/*.counts)
    [[ -e ${files[0]} ]] || files=(/dev/null) # none yet
    awk -F '\t' 'FNR == 2 { n += $2 } END { print n + 0 }' "${files[@]}"
}

# same_words TEXT DIRECTORY WORK: whether the .counts files have the words that sort and uniq find in TEXT. Leaves
# WORK/words and WORK/expected, a word and its number a line, in the order of LC_ALL=C, and WORK/difference.
same_words() {
    local -x LC_ALL=C
    # shellcheck disable=SC2018,SC2019 # ASCII letters are meant
    tr -cs 'A-Za-z' '\n' <"$1" | tr 'A-Z' 'a-z' | sort | uniq -c |
        awk '$2 != "" { print $2 "\t" $1 }' >"$3/expected" &&
        awk -F '\t' 'FNR > 2 { n[$1] += $2 } END { for (word in n) print word "\t" n[word] }' "$2"/*.counts |
        sort >"$3/words" &&
        diff "$3/expected" "$3/words" >"$3/difference"
}
