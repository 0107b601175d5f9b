#!/bin/bash
# run.sh NAME SECONDS [OPTIONS]: one measurement on a machine with a GPU; README.md explains names and variables.
set -u
BACK=$(realpath -m "${BACK:-$PWD/build/gpu/back}") PACKS=$(realpath -m "${PACKS:-$PWD/build/gpu/packs}")
OUT=$(realpath -m "${OUT:-$PWD/build/gpu/out}") WORK=$(realpath -m "${WORK:-$PWD/build/gpu/work}")
[ -z "${REPLIES:-}" ] || REPLIES=$(realpath -m "$REPLIES")
HERE=$(cd "$(dirname "$0")" && pwd) NAME=${1:-} LIMIT=${2:-300}
shift $(($# < 2 ? $# : 2))
cd "$HERE/../../.." || exit 1
PYTHON=${PYTHON:-python3} DEVICE=${DEVICE:-cuda:0} SITE=$WORK/site COMPILED=~/.cache/adaexplore
mkdir -p "$OUT" "$WORK"
if [ ! -d "$SITE" ] && ls "$PACKS"/wheels/*.whl >/dev/null 2>&1; then
  "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --no-warn-script-location --target "$SITE" \
    "$PACKS"/wheels/*.whl
fi
export PYTHONUNBUFFERED=1 COLUMNS=160
export PYTHONPATH=$PWD/src:$PWD/lab/src:$PWD/lab/benchmarks:$PWD/tests:$SITE
if [ -n "${DEVICE_LOG:-}" ]; then # who holds the GPU, and who waits for it
  export ADAEXPLORE_DEVICE_LOG=$WORK/device-log
  mkdir -p "$ADAEXPLORE_DEVICE_LOG"
fi

limited() { timeout -s INT -k 20 "$@"; } # limited SECONDS COMMAND...: stops as Ctrl-C does

begin() { # begin NAME: the pack, and over it what an earlier machine returned, unless this one has begun
  [ -d "$WORK/$1" ] && return
  mkdir -p "$WORK/$1"
  for from in "$PACKS/$1.tgz" "$BACK/$1.tgz"; do
    if [ -f "$from" ]; then tar -xzf "$from" --no-same-owner -C "$WORK/$1"; fi
  done
}

end() { # end NAME FILES...: of these files or patterns in the work folder those that are there, to OUT/NAME.tgz;
  # tensors of captured modules are captured again
  local name=$1
  shift
  (cd "$WORK/$name" && tar -czf "$OUT/$name.tgz" --exclude='*.pt' $(ls -d $* 2>/dev/null))
}

judge() { # judge NAME TOOL...: a packed folder of answers
  local name=$1 folder=$WORK/$1
  shift
  begin "$name"
  limited "$LIMIT" "$PYTHON" "$@" --resume "$folder" --budget $((LIMIT > 60 ? LIMIT - 15 : LIMIT))s --device "$DEVICE" \
    --parallel "${PARALLEL:-8}" --json "$folder/results.json" >"$folder/table.txt" 2>"$folder/log.txt"
  echo "$name: exit code $?, $SECONDS s, $(cat "$folder/verdicts.jsonl" 2>/dev/null | wc -l) verdicts"
  tail -n 3 "$folder/log.txt"
  end "$name" verdicts.jsonl results.json table.txt log.txt index.html
}

same_code() { # same_code NAME SHAPE INIT FORWARD: a module beside the same code as a candidate
  local file=$WORK/same-code/$1
  for class in Model ModelNew; do
    printf '%s\n' "import torch" "from torch import nn" "" "" "class $class(nn.Module):" "    def __init__(self):" \
      "        super().__init__()" "        $3" "" "    def forward(self, x):" "$(sed 's/^/        /' <<<"$4")" "" "" \
      "def get_inputs():" "    return [torch.randn($2)]" >"$file.$class.py"
  done
  limited $((LIMIT / 4)) "$PYTHON" lab/benchmarks/repeat_measurement.py "$file.Model.py" "$file.ModelNew.py" \
    --same-reference --times 4 --precision fp32 --device "$DEVICE" --out "$OUT/same-code-$1.json" "${OPTIONS[@]}" 2>&1 |
    tail -n 3
}

interpreter() { # interpreter NAME: a Python that sees the copy of flashinfer-bench of this name
  local file=$WORK/flashinfer/$1/bin/python
  mkdir -p "$(dirname "$file")"
  printf '#!/bin/sh\nPYTHONPATH=%q:%q exec %q "$@"\n' "$WORK/flashinfer/$1" "$SITE" "$(command -v "$PYTHON")" >"$file"
  chmod +x "$file"
  echo "$file"
}

replies() { # replies NAME CAMPAIGN: of REPLIES/NAME, beside the prompts that a new campaign will write
  if [ -d "${REPLIES:-}/$1" ] && [ ! -d "$2" ]; then
    until [ -f "$2/campaign.json" ]; do sleep 1; done
    mkdir -p "$2/asks" && cp -r "$REPLIES/$1/." "$2/asks/"
  fi
}

searched() { # searched NAME CAMPAIGN COMMAND...: with the replies that are there already
  replies "$1" "$2" &
  local waiting=$!
  shift 2
  limited "$LIMIT" "$PYTHON" -m adaexplore "$@"
  kill "$waiting" 2>/dev/null # there is no campaign
}

OPTIONS=("$@")
nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader 2>/dev/null
case $NAME in
same-code)
  mkdir -p "$WORK/same-code"
  same_code bias_swish "1024, 1024" "self.b = nn.Parameter(torch.randn(1024))" "return nn.functional.silu(x + self.b)"
  same_code deep "128, 256" "self.m = nn.ModuleList(nn.Linear(256, 256) for _ in range(40))" \
    $'for m in self.m:\n    x = torch.relu(m(x)) + x\nreturn x'
  same_code stream "4096, 4608" "pass" "return torch.sigmoid(x)"
  same_code mlp "512, 2048" "self.a, self.b = nn.Linear(2048, 4096), nn.Linear(4096, 2048)" \
    "return self.b(nn.functional.gelu(self.a(x)))"
  ;;
loaded)
  limited "$LIMIT" "$PYTHON" lab/benchmarks/loaded_baselines.py --device "$DEVICE" --out "$OUT/loaded.json" "$@" 2>&1 |
    tee "$OUT/loaded.txt"
  ;;
cluster)
  if [ ! -d "$WORK/ray" ] && [ -f "$PACKS/ray.txz" ]; then
    mkdir -p "$WORK/ray" && tar -xJf "$PACKS/ray.txz" --no-same-owner -C "$WORK/ray"
  fi
  [ $# -gt 0 ] || set -- --devices $(nvidia-smi -L | grep -n . | cut -d: -f1) --count 30
  PYTHONPATH=$PYTHONPATH:$WORK/ray limited "$LIMIT" "$PYTHON" lab/benchmarks/cluster_throughput.py --out "$OUT/cluster.json" "$@" 2>&1 |
    tee "$OUT/cluster.txt"
  ;;
tests)
  FILLING=tests/gpu/test_large_tensors.py # it fills the GPU's memory
  [ $# -gt 0 ] || set -- tests/unit tests/gpu tests/contract --ignore tests/unit/serve # no test there needs a GPU
  sed -nE 's/^\[gw.*\] (PASSED|SKIPPED) (.*[^ ]) *$/--deselect=\2/p' "$BACK/tests.log" >"$WORK/passed" 2>/dev/null
  tried() { # tried SECONDS PROCESSES OPTIONS...
    limited "$1" "$PYTHON" -m pytest "@$WORK/passed" -m "${MARK:-gpu and not slow}" -n "$2" --dist loadfile -v --tb short --timeout 300 \
      --session-timeout $(($1 > 90 ? $1 - 60 : $1)) --durations 8 -p no:cacheprovider "${@:3}" 2>&1 | tee -a "$OUT/tests.log" | tail -n 60
  }
  rm -f "$OUT/tests.log"
  [[ " $* " != *" tests/gpu "* ]] || tried "$LIMIT" 1 $FILLING
  [ "$SECONDS" -ge "$LIMIT" ] || tried $((LIMIT - SECONDS)) "${PARALLEL:-4}" "$@" --ignore $FILLING
  ;;
corpora)
  begin corpora
  limited "$LIMIT" "$PYTHON" -m tests.adversarial --device "$DEVICE" --quick --parallel "${PARALLEL:-8}" \
    --json "$WORK/corpora/corpora.jsonl" "$@" >"$WORK/corpora/log.txt" 2>&1
  tail -n 60 "$WORK/corpora/log.txt" | cut -c1-220
  end corpora corpora.jsonl log.txt
  ;;
tritonbench | tritonbench-g | kernelbenchx | kernelbenchx-corpus | withdrawn)
  TOOL=("$HERE/brief_bench.py")
  [ -z "${FULL:-}" ] || TOOL=(-m adaexplore bench)
  judge "$NAME" "${TOOL[@]}"
  ;;
record | released-fp32 | released-tf32)
  PARALLEL=${PARALLEL:-6} judge "$NAME" -m adaexplore bench
  "$PYTHON" lab/benchmarks/record_table.py "$WORK/$NAME" --brief
  ;;
confusion)
  begin confusion
  CLONES=$WORK/confusion
  for checker in kernelbench kernelgym; do
    case $checker in kernelbench) CLONE=$CLONES/KernelBench/src ;; kernelgym) CLONE=$CLONES/KernelGYM ;; esac
    limited $((LIMIT / 2)) "$PYTHON" lab/benchmarks/confusion.py run $checker --path "$CLONE" --device "$DEVICE" \
      --parallel "${PARALLEL:-8}" --timeout-s 30 --budget-s $((LIMIT / 2 > 60 ? LIMIT / 2 - 45 : LIMIT / 2)) \
      --withdrawn "$CLONES/CUDA-L1" --released "$CLONES/AdaExplore" --out "$CLONES/$checker.jsonl" 2>&1 | tail -n 2
  done
  end confusion '*.jsonl'
  ;;
flashinfer)
  begin flashinfer
  TRIP=$WORK/flashinfer/trip
  limited "$LIMIT" "$PYTHON" lab/benchmarks/flashinfer_roundtrip.py --dataset "$WORK/flashinfer/flashinfer_trace" \
    --work "$TRIP" --python "$(interpreter release)" --validator "$(interpreter main)" --judge --workloads 4 \
    --parallel "${PARALLEL:-6}" --shards 4 --iterations 10 --judge-s $((LIMIT / 2)) --run-s $((LIMIT / 3)) "$@" 2>&1 |
    tee "$WORK/flashinfer/log.txt"
  end flashinfer log.txt trip/judged.jsonl trip/trip.json trip/trips/release/traces trip/trips/release/solutions
  ;;
searches | study | sixty) # the first call prepares and asks; every further one judges the answers and asks again
  begin "$NAME"
  case $NAME in
  searches) COMMAND=campaign ORDER=${ORDER:-$HERE/thirty.toml} ;;
  study) COMMAND=study ORDER=${ORDER:-$HERE/study.toml} ;;
  sixty) COMMAND=campaign ORDER=${ORDER:-$WORK/sixty/order.toml} REPLIES=${REPLIES:-$WORK/sixty/replies} ;;
  esac
  RUN=$WORK/$NAME/campaign
  if [ ! -d "$COMPILED/compiled" ] && cat "$BACK"/compiled.txz.* >"$WORK/compiled.txz" 2>/dev/null; then
    mkdir -p -m 700 "$COMPILED"
    tar -xJf "$WORK/compiled.txz" --no-same-owner -C "$COMPILED"
  fi
  [ "$ORDER" -ef "$WORK/$NAME/order.toml" ] || cp "$ORDER" "$WORK/$NAME/order.toml"
  TOOL=("$COMMAND" order.toml --run "$RUN" --device "$DEVICE")
  [ ! -d "$RUN" ] || TOOL=("$COMMAND" "$RUN")
  (cd "$WORK/$NAME" && searched "$NAME" "$RUN" "${TOOL[@]}" --json results.json "$@") 2>&1 |
    tee "$WORK/$NAME/log.txt" | tail -n 100
  end "$NAME" campaign order.toml results.json log.txt
  if [ "${PART:-}" != 0 ] && [ -d "$COMPILED/compiled" ]; then # a compiled kernel is loaded without Triton's intermediate texts
    tar -c -C "$COMPILED" --exclude='*.ttir' --exclude='*.ttgir' --exclude='*.llir' --exclude='*.source' compiled |
      xz -T0 | split -d -b "${PART:-1G}" - "$OUT/compiled.txz."
  fi
  ;;
speed) # the same four problems in two languages, side by side; calls as for searches
  begin speed
  for language in gluon triton; do
    RUN=$WORK/speed/$language
    TOOL=(campaign lab/benchmarks/gluon/speed-$language.toml --run "$RUN" --device "$DEVICE")
    [ ! -d "$RUN" ] || TOOL=(campaign "$RUN")
    searched "$language" "$RUN" "${TOOL[@]}" --json "$RUN.json" "$@" >"$RUN.log" 2>&1 &
  done
  wait
  tail -n 25 "$WORK"/speed/*.log
  end speed gluon triton '*.json' '*.log'
  ;;
models) # each model is a run of its own; the first call ranks and asks, every further one judges the answers and asks again
  begin models
  PLACES=(${MODELS:-qwen3:prefill qwen3:decode vit:make mamba2:make convnext:make whisper:make})
  LIMIT=$((LIMIT / ${#PLACES[@]}))
  for place in "${PLACES[@]}"; do
    RUN=$WORK/models/${place/:/-}
    searched "${RUN##*/}" "$RUN/search" model "examples/models/${place/:/.py:}" --run "$RUN" --proposer manual \
      --language triton --parallel "${PARALLEL:-4}" --steps 4 --set turn_steps=2 --set reviser=false \
      --set p_strategy=0 "$@" 2>&1 | tee "$RUN.log" | tail -n 40
  done
  end models '*.log' '*/*.json' '*/index.html' '*/modules' '*/search' '*/kernels'
  ;;
*)
  echo "run.sh NAME SECONDS [OPTIONS]; NAME is same-code, loaded, cluster, tests, corpora, tritonbench, tritonbench-g," >&2
  echo "kernelbenchx, kernelbenchx-corpus, flashinfer, record, confusion, withdrawn, released-fp32, released-tf32, searches," >&2
  echo "study, sixty, speed or models" >&2
  exit 2
  ;;
esac
if [ -n "${DEVICE_LOG:-}" ]; then
  "$PYTHON" lab/benchmarks/device_log_table.py "$ADAEXPLORE_DEVICE_LOG"
  tar -czf "$OUT/device-log.tgz" -C "$WORK" device-log
fi
ls -l "$OUT"
