// Small stand-ins for the data sets, written by the tests themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace thinwire::test {

// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes);
void write_gzip(const std::string& path, const std::vector<std::uint8_t>& bytes);
std::vector<std::uint8_t> read_bytes(const std::string& path);

std::vector<std::uint8_t> idx_bytes(const std::vector<std::uint32_t>& shape, const std::vector<std::uint8_t>& values);

// Four IDX files; an image of class c is bright in two rows that c chooses, so that a model can learn it.
void write_fashion_like(const std::string& folder, std::uint32_t train_images, std::uint32_t test_images);

// Text with a rule in it: counts in words, over and over.
void write_text(const std::string& path, int sentences);

}  // namespace thinwire::test
