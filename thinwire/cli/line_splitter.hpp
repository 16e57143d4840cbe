// Cuts a stream of bytes into whole lines, so that the lines of several processes never mix.
#pragma once

#include <string>
#include <string_view>

namespace thinwire::cli {

class LineSplitter {
 public:
  // A line longer than this is handed on in parts: a process must not be able to fill our memory.
  static constexpr std::size_t kMaxLine = 1 << 20;

  // `sink(std::string_view)` receives each line without its newline.
  template <typename Sink>
  void add(std::string_view bytes, Sink&& sink) {
    for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
      rest_.append(bytes.substr(0, end));
      sink(std::string_view(rest_));
      rest_.clear();
    }
    rest_.append(bytes);
    if (rest_.size() >= kMaxLine) finish(sink);
  }

  // The stream has ended: hands on what stands without a newline, if anything.
  template <typename Sink>
  void finish(Sink&& sink) {
    if (rest_.empty()) return;
    sink(std::string_view(rest_));
    rest_.clear();
  }

 private:
  std::string rest_;
};

}  // namespace thinwire::cli
