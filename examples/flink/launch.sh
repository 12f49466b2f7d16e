#!/bin/bash
# Prepare a corpus on Flink:  FLINK=localhost:8081 ./launch.sh corpus.yaml
set -euo pipefail
exec assay prepare "$1" --runner flink -- \
    --flink_master="${FLINK:?host:port of the job manager}" \
    --flink_version=1.19 \
    --parallelism="${PARALLELISM:-2}" \
    --environment_type=EXTERNAL \
    --environment_config="${POOL:-localhost:50000}"
