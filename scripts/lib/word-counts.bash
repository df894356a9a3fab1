# shellcheck shell=bash
# Sourced by scripts/demo and scripts/lib/demo-replay: what word_count has counted, and whether it is right.

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
