#!/usr/bin/env bash
# Prints how many compilers to run at once: one per core, with 2 GB of memory each (torch/torch.h takes 1.3).
set -euo pipefail
cores=$(nproc)
memory_gb=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo 2>/dev/null || echo 4)
by_memory=$((memory_gb / 2))
((by_memory >= 1)) || by_memory=1
echo $((cores < by_memory ? cores : by_memory))
