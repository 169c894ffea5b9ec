#!/usr/bin/env python3
"""A software bill of materials (CycloneDX 1.6, JSON) of gpusort built for some servers.

    packaging/sbom.py [--cuda HOME] PG_CONFIG... >FILE

HOME is the CUDA toolkit, /usr/local/cuda for example; without it the library has no CUDA device.  The versions are
those of the headers and libraries on this machine.  docs/third_party.md says what of each is in the library.
"""
import argparse
import json
import os
import re
import subprocess
import uuid

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
ICU = "/usr/include/unicode/uvernum.h"


def first(pattern, path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return re.search(pattern, file.read(), re.MULTILINE).group(1)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def part(name, version, licence, linked):
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "licenses": [licence],
        "purl": f"pkg:generic/{name}@{version}",
        "properties": [{"name": "gpusort:linked", "value": linked}],
    }


def spdx(expression):
    return {"expression": expression}


def named(name, url):
    return {"license": {"name": name, "url": url}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuda", metavar="HOME")
    parser.add_argument("pg_config", nargs="+")
    arguments = parser.parse_args()

    parts = []
    for config in arguments.pg_config:
        # "PostgreSQL 15.20 (Debian 15.20-0+deb12u1)"
        version = output(config, "--version").split()[1]
        parts.append(part("postgresql", version, spdx("PostgreSQL"), "headers; the server loads gpusort"))
    if os.path.exists(ICU):
        parts.append(part("icu", first(r'^#define U_ICU_VERSION "(.*)"', ICU),
                          named("Unicode License", "https://www.unicode.org/license.txt"),
                          "headers; the server's library is called"))
    if arguments.cuda:
        include = os.path.join(arguments.cuda, "include")
        number = int(first(r"^#define CUB_VERSION (\d+)", os.path.join(include, "cccl/cub/version.cuh")))
        parts.append(part("cccl", f"{number // 100000}.{number // 100 % 1000}.{number % 100}",
                          spdx("Apache-2.0 AND Apache-2.0 WITH LLVM-exception AND BSD-3-Clause"), "headers, compiled in"))
        number = int(first(r"^#define CUDART_VERSION\s+(\d+)", os.path.join(include, "cuda_runtime_api.h")))
        parts.append(part("cudart-static", f"{number // 1000}.{number % 1000 // 10}",
                          named("NVIDIA CUDA Toolkit EULA", "https://docs.nvidia.com/cuda/eula/"), "statically"))

    version = first(r"^default_version *= *'(.*)'", os.path.join(ROOT, "gpusort.control"))
    gpusort = part("gpusort", version, spdx("PostgreSQL"), "")
    del gpusort["properties"]
    names = [component["bom-ref"] for component in parts]
    print(json.dumps({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # the same materials have the same number
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ' '.join([version] + names))}",
        "version": 1,
        "metadata": {"component": gpusort},
        "components": parts,
        "dependencies": [{"ref": gpusort["bom-ref"], "dependsOn": names}],
    }, indent=2))


main()
