# Sourced, with KCLXX WORD_COUNT KCL: for a worker in $work that runs ./word_count on a local Kinesis, of which
# nothing is left when the script ends; $work stays when it fails.
kclxx=$1 word_count=$2 kcl=$3
name=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../.." && pwd)
# shellcheck source=scripts/lib/steps.bash
source "$root/scripts/lib/steps.bash"
fail() { printf '%s: %s%s\n' "$name" "$1" "${2:+; log: $2}" >&2 && exit 1; }
work=$(mktemp -d)
# shellcheck disable=SC2317 # called by the trap
leave() {
    local status=$?
    end_started || true
    "$kclxx" local stop --directory "$work/local" 2>>"$work/local.log" || true
    if ((status == 0)); then rm -rf "$work"; else echo "$name: failed during: $step_name; logs: $work" >&2; fi
    exit "$status"
}
trap leave EXIT
trap 'exit 143' INT TERM HUP
mkdir "$work/counts"
ln -s "$(realpath "$word_count")" "$work/word_count"
if ((kcl < 3)); then
    export KCLXX_PROPERTY_AwsCredentialsProvider=
    export KCLXX_PROPERTY_AWSCredentialsProvider=DefaultAWSCredentialsProviderChain
fi
