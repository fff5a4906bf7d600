#!/bin/sh
# Asks models the same questions every night, and writes RESULTS/TIME/issue.md if one got worse.
# Exit code: 5 if a model got worse, else that of the last failure, else 0.
set -u

# LABEL=MODEL, separated by spaces. The label stays when a model's files or version change.
models=${MODELS:-"small=mlx-community/Qwen3-VL-4B-Instruct-4bit large=mlx-community/Qwen3-VL-8B-Instruct-4bit"}
benchmark=${BENCHMARK:-cmc-bench}
questions=${QUESTIONS:-charts} # a question set, once built by: rashomon build cmc-bench --from charts.csv
max_loss=${MAX_LOSS:-0.03}
results=${RESULTS:-results}/$(date +%Y-%m-%d-%H%M%S) # a folder of its own, so that another night's files stay

mkdir -p "${results%/*}" && mkdir "$results" || exit 3
worst=0

ask() { # LABEL MODEL NAME [OPTION]: run a model, or resume its run
    label=$1 model=$2 name=$3
    shift 3
    rashomon batch --benchmark "$benchmark" --data "$questions" --model "$model" --name "$name" "$@" \
        --display json --wait 3600 >"$results/$label.jsonl" 2>"$results/$label.txt" # waits an hour for the device
}

report() { # LABEL CODE FILE: add a file to the issue
    printf '\n## %s (exit code %s)\n\n' "$1" "$2" >>"$results/issue.md"
    cat "$3" >>"$results/issue.md"
    [ "$worst" -eq 5 ] || worst=$2
}

for pair in $models; do
    label=${pair%%=*} model=${pair#*=}

    # The reference is asked once; a model that has changed since is refused here, and compared with it below.
    ask "$label" "$model" "reference-$label"
    [ $? -eq 4 ] && exit 4

    ask "$label" "$model" "nightly-{date}-$label" --fresh
    code=$?
    case $code in
    0 | 1) ;;                 # 1: some answers failed, which the check reports
    4 | 130) exit "$code" ;; # another night is still at it, or somebody stopped this one
    *) report "$label" "$code" "$results/$label.txt" && continue ;;
    esac

    # Tonight's run by its own name, which the outcome has; "latest:" could be an older night's.
    tonight=$(tail -n 1 "$results/$label.jsonl" | sed -n 's/.*"runs": \[{"name": "\([^"]*\)".*/\1/p')
    rashomon check "$tonight" --baseline "reference-$label" --max-loss "$max_loss" \
        --junit "$results/$label.xml" --markdown "$results/$label.md" 2>"$results/$label.txt"
    code=$?
    case $code in
    0 | 6) ;; # 6: too few answers to tell
    5) worst=5 && report "$label" "$code" "$results/$label.md" ;;
    *) report "$label" "$code" "$results/$label.txt" ;;
    esac
done

rashomon runs --prune --keep 14 --match 'nightly-*' --yes
[ -e "$results/issue.md" ] && echo "see $results/issue.md"
exit "$worst"
