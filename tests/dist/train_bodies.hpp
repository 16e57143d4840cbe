// Tests whose ranks are processes: RankBody.DISABLED_<body> of the same program is what one rank does.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/dist/process_ranks.hpp"

namespace thinwire::tests {

using Environment = std::map<std::string, std::string>;

inline std::vector<std::string> body_arguments(const std::string& body) {
  return {"--gtest_also_run_disabled_tests", "--gtest_filter=RankBody.DISABLED_" + body};
}

inline void expect_all_passed(const std::vector<RankResult>& results) {
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    EXPECT_EQ(results[rank].status, 0) << "rank " << rank << " of " << results.size() << ":\n" << results[rank].output;
}

inline std::vector<RankResult> expect_body_passes(int size, const std::string& body, const Environment& more = {},
                                                  std::int64_t deadline_ms = 120'000) {
  const auto results = run_world(size, body_arguments(body), deadline_ms, more);
  expect_all_passed(results);
  return results;
}

// What the test passed to its ranks.
inline std::string given(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Lines of a rank's output that begin with `word` and a blank, without them.
inline std::vector<std::string> lines_of(const std::string& output, const std::string& word) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < output.size();) {
    const std::size_t end = std::min(output.find('\n', at), output.size());
    if (output.compare(at, word.size() + 1, word + " ") == 0)
      lines.push_back(output.substr(at + word.size() + 1, end - at - word.size() - 1));
    at = end + 1;
  }
  return lines;
}

}  // namespace thinwire::tests
