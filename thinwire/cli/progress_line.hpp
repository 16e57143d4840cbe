// One line on standard error that is rewritten on a terminal; elsewhere one line every 10 s.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

#include "thinwire/base/clock.hpp"

namespace thinwire::cli {

class ProgressLine {
 public:
  ~ProgressLine() { clear(); }

  void show(const std::string& text) {
    if (terminal_) {
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
      shown_ = true;
    } else if (monotonic_seconds() >= next_s_) {
      std::fprintf(stderr, "%s\n", text.c_str());
      next_s_ = monotonic_seconds() + 10;
    }
  }

  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  double next_s_ = monotonic_seconds() + 10;
};

}  // namespace thinwire::cli
