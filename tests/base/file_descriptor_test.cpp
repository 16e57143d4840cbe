#include "thinwire/base/file_descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

FileDescriptor some_file() {
  return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool is_open(int number) {
  return ::fcntl(number, F_GETFD) != -1;
}

TEST(FileDescriptor, ADefaultOneOwnsNothing) {
  FileDescriptor none;
  EXPECT_FALSE(none.valid());
  EXPECT_TRUE(none.close());
}

TEST(FileDescriptor, MovesWithoutClosing) {
  FileDescriptor from = some_file();
  const int number = from.get();
  ASSERT_TRUE(is_open(number));
  {
    const FileDescriptor to = std::move(from);
    EXPECT_EQ(to.get(), number);
    EXPECT_FALSE(from.valid());
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(FileDescriptor, AssignmentClosesWhatWasOwned) {
  FileDescriptor owner = some_file();
  const int before = owner.get();
  FileDescriptor other = some_file();
  const int after = other.get();
  owner = std::move(other);
  EXPECT_FALSE(is_open(before));
  EXPECT_EQ(owner.get(), after);
  EXPECT_TRUE(is_open(after));
}

}  // namespace
}  // namespace thinwire
