// A file to which whole lines are appended, for one step report or record per line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace thinwire::watch {

// Thread safe. Each line reaches the kernel in one go before `append` returns, so that a reader or a crash of the
// process sees whole lines only. One writer per file: two processes give two names.
class JsonlWriter {
 public:
  // Makes the file if missing, appends otherwise. Throws Error kIo.
  explicit JsonlWriter(const std::string& path);
  ~JsonlWriter();
  JsonlWriter(const JsonlWriter&) = delete;
  JsonlWriter& operator=(const JsonlWriter&) = delete;

  // `line` without its newline. Throws Error kIo (disk full; what was written of this line is taken back),
  // kInvalidArgument when it holds a newline.
  void append(std::string_view line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thinwire::watch
