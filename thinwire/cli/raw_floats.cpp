#include "thinwire/cli/raw_floats.hpp"

#include <bit>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"

namespace thinwire::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read and written as they lie in memory");

constexpr NamedDtype kDtypes[] = {
    {codec::Dtype::kFp32, "fp32", 4}, {codec::Dtype::kBf16, "bf16", 2}, {codec::Dtype::kFp16, "fp16", 2}};

template <class Value>
std::span<const Value> as(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const Value*>(bytes.data()), bytes.size() / sizeof(Value)};
}

}  // namespace

std::span<const NamedDtype> dtypes() {
  return kDtypes;
}

const NamedDtype& named(codec::Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

RawFloats::RawFloats(const std::string& path, codec::Dtype dtype) : dtype_(dtype), bytes_(read_file(path)) {
  if (!bytes_.empty() && bytes_.size() % named(dtype).bytes == 0) return;
  fail(ErrorCode::kCorrupt,
       {"cli::RawFloats", path, std::to_string(bytes_.size()) + " bytes",
        std::string("a whole number of ") + named(dtype).name + " values, at least one", "another --dtype"});
}

codec::Values RawFloats::values() const {
  switch (dtype_) {
    case codec::Dtype::kBf16:
      return as<codec::Bf16>(bytes_);
    case codec::Dtype::kFp16:
      return as<codec::Fp16>(bytes_);
    default:
      return as<float>(bytes_);
  }
}

void write_raw_floats(const std::string& path, std::span<const float> values) {
  const std::span<const std::byte> chunk = std::as_bytes(values);
  write_file_atomically(path, FileChunks{&chunk, 1});
}

}  // namespace thinwire::cli
