#!/bin/bash
# Prepare a corpus on Dataflow:  PROJECT=... REGION=... BUCKET=gs://... IMAGE=... ./launch.sh corpus.yaml
set -euo pipefail
: "${PROJECT:?}" "${REGION:?}" "${BUCKET:?gs://...}" "${IMAGE:?an image in Artifact Registry}"
exec assay prepare "$1" --runner dataflow -- \
    --project="$PROJECT" \
    --region="$REGION" \
    --temp_location="$BUCKET/tmp" \
    --staging_location="$BUCKET/staging" \
    --sdk_container_image="$IMAGE" \
    --experiments=no_use_multiple_sdk_containers \
    --worker_machine_type=n2-standard-4 \
    --number_of_worker_harness_threads=4 \
    --max_num_workers="${MAX_WORKERS:-20}" \
    --disk_size_gb=50
