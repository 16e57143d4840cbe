#include "thinwire/comm/traffic.hpp"

#include <numeric>

namespace thinwire::comm {

Traffic all_reduce_traffic(int size, std::int64_t elements, std::int64_t element_bytes) {
  const int steps = 2 * (size - 1);
  const std::int64_t chunk_bytes = (elements + size - 1) / size * element_bytes;
  return {steps * chunk_bytes, steps * chunk_bytes, steps};
}

Traffic all_gather_traffic(int size, std::int64_t own_bytes) {
  return {(size - 1) * own_bytes, (size - 1) * own_bytes, size - 1};
}

Traffic reduce_scatter_traffic(int size, std::int64_t part_bytes) {
  return {(size - 1) * part_bytes, (size - 1) * part_bytes, size - 1};
}

Traffic all_to_all_traffic(int rank, std::span<const std::int64_t> out_bytes, std::span<const std::int64_t> in_bytes) {
  const auto others = [rank](std::span<const std::int64_t> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) - bytes[static_cast<std::size_t>(rank)];
  };
  return {others(in_bytes), others(out_bytes), static_cast<int>(in_bytes.size()) - 1};
}

Traffic broadcast_traffic(int size, bool is_root, std::int64_t bytes) {
  if (size == 1) return {};
  return is_root ? Traffic{bytes, 0, 1} : Traffic{0, bytes, 1};
}

}  // namespace thinwire::comm
