#!/bin/bash
# lanes.sh SECONDS LANES: measurements beside each other on the GPUs of one machine; README.md explains the file LANES.
set -u
LIMIT=${1:?SECONDS} LANES=$(realpath "${2:?LANES}") HERE=$(cd "$(dirname "$0")" && pwd)
OUT=$(realpath -m "${OUT:-$PWD/build/gpu/out}") WORK=$(realpath -m "${WORK:-$PWD/build/gpu/work}")
BACK=$(realpath -m "${BACK:-$PWD/build/gpu/back}")
export OUT WORK BACK
mkdir -p "$OUT"
bash "$HERE/run.sh" none 1 >/dev/null 2>&1 # the wheels, once

lane() { # lane GPU NAME [VARIABLE=VALUE...] RECIPE [OPTIONS...]
  local gpu=$1 name=$2
  shift 2
  local variables=()
  while [[ ${1:-} == *=* ]]; do variables+=("$1") && shift; done
  local recipe=$1
  shift
  mkdir -p "$WORK/$name" "$OUT/$name"
  [ ! -d "$WORK/site" ] || ln -sfn "$WORK/site" "$WORK/$name/site"
  local left=$((LIMIT - SECONDS))
  [ "$left" -gt 20 ] || return
  env "${variables[@]}" CUDA_VISIBLE_DEVICES="$gpu" BACK="$BACK/$name" WORK="$WORK/$name" OUT="$OUT/$name" \
    timeout -k 5 $((left + 40)) bash "$HERE/run.sh" "$recipe" "$left" "$@" >"$OUT/$name/lane.log" 2>&1 </dev/null
  echo "$name: $SECONDS s"
  tail -n 3 "$OUT/$name/lane.log" | cut -c1-160
}

for gpu in $(awk '!/^#/ && NF {print $1}' "$LANES" | sort -u); do
  { # those of one GPU one after another
    while read -r -a words || [ "${#words[@]}" -gt 0 ]; do
      if [ "${words[0]:-}" = "$gpu" ]; then lane "${words[@]}"; fi
    done <"$LANES"
  } &
done
wait
