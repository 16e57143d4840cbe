// Files of raw floats, little endian, one behind the other: what numpy's tofile writes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "thinwire/codec/values.hpp"

namespace thinwire::cli {

// The values of a file of one dtype, any bit patterns. Owns its bytes; `values` points into them.
class RawFloats {
 public:
  // Throws Error kNotFound, kIo, kCorrupt (no whole number of values, or none).
  RawFloats(const std::string& path, codec::Dtype dtype);

  codec::Values values() const;

 private:
  codec::Dtype dtype_;
  std::vector<std::byte> bytes_;
};

// Throws Error kIo. Written atomically.
void write_raw_floats(const std::string& path, std::span<const float> values);

// fp32, bf16, fp16, in the order of the enum.
struct NamedDtype {
  codec::Dtype dtype;
  const char* name;
  std::size_t bytes;
};
const NamedDtype& named(codec::Dtype dtype);
std::span<const NamedDtype> dtypes();

}  // namespace thinwire::cli
