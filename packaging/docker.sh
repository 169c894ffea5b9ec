#!/bin/sh
# The image gpusort:MAJOR of the working tree, see docker/Dockerfile.
#
# Environment:
#	PG_MAJOR=18			the server
#	CUDA_ARCH=all		as for the Makefile
#	DOCKER=docker		or podman, buildah
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
major=${PG_MAJOR:-18}

exec "${DOCKER:-docker}" build -f "$root/packaging/docker/Dockerfile" -t "gpusort:$major" \
	--build-arg "PG_MAJOR=$major" --build-arg "CUDA_ARCH=${CUDA_ARCH:-all}" "$root"
