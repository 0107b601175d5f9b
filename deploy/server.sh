#!/bin/bash
# The service, and the node of the Ray cluster that its jobs join. Either ends with the other, so that the container
# starts again and joins a head that is new; jobs under way go on then.
joined="${RAY_TMPDIR:-/tmp}/ray/ray_current_cluster"
rm -f "$joined"
ray start --address=ray-head:6379 --num-cpus=0 --num-gpus=0 --disable-usage-stats --block &
node=$!
until [ -e "$joined" ]; do
    kill -0 "$node" || exit 1
    sleep 1
done
PGPASSWORD="$(cat /run/secrets/database-password)" || exit 1
export PGPASSWORD
adaexplore serve --folder /data --ray auto --store postgresql://adaexplore@database/runs --host 0.0.0.0 --proxy 172.31.87.1 --jobs 2 &
service=$!
trap 'kill "$service"' TERM INT
wait -n "$node" "$service"
status=$?
kill "$service" 2> /dev/null
wait "$service"
exit "$status"
