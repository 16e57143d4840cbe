#include "tests/examples/synthetic_data.hpp"

#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "thinwire/base/rng.hpp"

namespace thinwire::test {
namespace {

constexpr std::uint32_t kSide = 28;

void write_part(const std::string& folder, const std::string& part, std::uint32_t count, bool compressed) {
  std::vector<std::uint8_t> images(count * kSide * kSide);
  std::vector<std::uint8_t> labels(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    labels[i] = static_cast<std::uint8_t>(mix64(i + part.size()) % 10);
    for (std::uint32_t pixel = 0; pixel < kSide * kSide; ++pixel) {
      const bool bright = pixel / kSide / 2 == labels[i];
      images[i * kSide * kSide + pixel] = static_cast<std::uint8_t>((bright ? 200 : 0) + mix64(pixel + i) % 50);
    }
  }
  const std::string stem = folder + "/" + part;
  const auto write = compressed ? write_gzip : write_bytes;
  const std::string suffix = compressed ? ".gz" : "";
  write(stem + "-images-idx3-ubyte" + suffix, idx_bytes({count, kSide, kSide}, images));
  write(stem + "-labels-idx1-ubyte" + suffix, idx_bytes({count}, labels));
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "thinwire_examples_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

void write_gzip(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

std::vector<std::uint8_t> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::uint8_t> idx_bytes(const std::vector<std::uint32_t>& shape, const std::vector<std::uint8_t>& values) {
  std::vector<std::uint8_t> bytes = {0, 0, 8, static_cast<std::uint8_t>(shape.size())};
  for (const std::uint32_t size : shape)
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(size >> shift));
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

void write_fashion_like(const std::string& folder, std::uint32_t train_images, std::uint32_t test_images) {
  write_part(folder, "train", train_images, /*compressed=*/true);
  write_part(folder, "t10k", test_images, /*compressed=*/false);
}

void write_text(const std::string& path, int sentences) {
  constexpr const char* kWords[] = {"one", "two", "three", "four", "five", "six", "seven"};
  std::ofstream file(path);
  for (int i = 0; i < sentences; ++i) file << kWords[i % 7] << (i % 7 == 6 ? ".\n" : ", ");
}

}  // namespace thinwire::test
