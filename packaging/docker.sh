#!/bin/sh
# Images of the working tree, see docker/Dockerfile.
#
#	docker.sh				gpusort:MAJOR, a server with gpusort
#	docker.sh extension		gpusort-extension:VERSION-MAJOR-DEBIAN, gpusort's files alone, for CloudNativePG
#
# Environment:
#	PG_MAJOR=18			the server
#	DEBIAN=bookworm		the Debian of the server's image
#	CUDA_VERSION		the toolkit, if not the Dockerfile's: 13.0.1 with DEBIAN=trixie
#	CUDA_ARCH=all		as for the Makefile
#	DOCKER=docker		or podman, buildah
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" "$root/gpusort.control")
major=${PG_MAJOR:-18}
debian=${DEBIAN:-bookworm}

if [ "${1-}" != extension ]; then
	set -- -t "gpusort:$major"
elif [ "$major" -ge 18 ]; then
	set -- --target extension -t "gpusort-extension:$version-$major-$debian"
else
	echo "cnpg: PostgreSQL finds extensions in images from version 18 on, not in $major" >&2
	exit 1
fi
if ! command -v "${DOCKER:-docker}" >/dev/null; then
	echo "docker: there is no ${DOCKER:-docker}. Install it, or name another one: DOCKER=podman" >&2
	exit 1
fi
exec "${DOCKER:-docker}" build -f "$root/packaging/docker/Dockerfile" "$@" \
	${CUDA_VERSION:+--build-arg "CUDA_VERSION=$CUDA_VERSION"} --build-arg "PG_MAJOR=$major" --build-arg "DEBIAN=$debian" --build-arg "CUDA_ARCH=${CUDA_ARCH:-all}" "$root"
