#include "examples/data/idx_file.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "thinwire/base/error.hpp"

namespace examples {
namespace {

using thinwire::ErrorCode;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;
constexpr std::uint8_t kUnsignedByte = 0x08;

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

[[noreturn]] void corrupt(const std::string& path, const std::string& got, const std::string& want) {
  thinwire::fail(ErrorCode::kCorrupt,
                 {.place = "idx", .what = path + " is no IDX file of bytes", .got = got, .want = want, .hint = {}});
}

// zlib passes a file through that is not compressed.
std::vector<std::uint8_t> read_bytes(const std::string& path) {
  const GzFile file(gzopen(path.c_str(), "rb"));
  if (!file) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    thinwire::fail(code, {.place = "idx",
                          .what = "cannot open " + path + ": " + std::strerror(errno),
                          .got = {},
                          .want = {},
                          .hint = {}});
  }
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> piece(1 << 20);
  while (true) {
    const int count = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    if (count > 0) bytes.insert(bytes.end(), piece.begin(), piece.begin() + count);
    if (bytes.size() > kLargestFile) corrupt(path, "more than 1 GiB", "less");
    if (count < static_cast<int>(piece.size())) break;
  }
  int status = Z_OK;
  const char* text = gzerror(file.get(), &status);
  if (status != Z_OK && status != Z_STREAM_END)
    thinwire::fail(
        ErrorCode::kCorrupt,
        {.place = "idx", .what = path + " ends early or is damaged: " + text, .got = {}, .want = {}, .hint = {}});
  return bytes;
}

std::int64_t big_endian_32(const std::uint8_t* bytes) {
  return std::int64_t{bytes[0]} << 24 | std::int64_t{bytes[1]} << 16 | std::int64_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

IdxArray read_idx(const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_bytes(path);
  if (bytes.empty()) corrupt(path, "an empty file", "0 0 8 dimensions");
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0) corrupt(path, "another magic number", "0 0 8 dimensions");
  if (bytes[2] != kUnsignedByte) corrupt(path, "element type " + std::to_string(bytes[2]), "8 (unsigned byte)");
  const std::size_t header = 4 + std::size_t{4} * bytes[3];
  if (bytes[3] == 0 || bytes[3] > 4) corrupt(path, std::to_string(bytes[3]) + " dimensions", "1 to 4");
  if (bytes.size() < header) corrupt(path, std::to_string(bytes.size()) + " bytes", "a whole header");
  IdxArray array;
  std::int64_t elements = 1;
  for (std::size_t dim = 0; dim < bytes[3]; ++dim) {
    array.shape.push_back(big_endian_32(&bytes[4 + 4 * dim]));
    if (array.shape.back() > static_cast<std::int64_t>(kLargestFile) / std::max<std::int64_t>(elements, 1))
      corrupt(path, "a shape of more than 1 GiB", "less");
    elements *= array.shape.back();
  }
  if (bytes.size() - header != static_cast<std::size_t>(elements))
    corrupt(path, std::to_string(bytes.size() - header) + " elements",
            std::to_string(elements) + " as its header says");
  array.values.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return array;
}

}  // namespace examples
