#include "thinwire/watch/chrome_trace.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "thinwire/base/error.hpp"
#include "thinwire/base/file.hpp"

namespace thinwire::watch {
namespace {

using Json = nlohmann::json;

std::vector<RankTrace> two_ranks() {
  return {{.rank = 0,
           .events = {{EventKind::kBackward, 1, -1, 100.0, 100.5, 0},
                      {EventKind::kEncode, 1, 2, 100.1, 100.2, 0},
                      {EventKind::kExchangeHop1, 1, 2, 100.2, 100.3, 1234},
                      {EventKind::kExchangeHop2, 1, 2, 100.3, 100.4, 0},
                      {EventKind::kUpdate, 1, -1, 100.5, 100.6, 0},
                      {EventKind::kDense, 1, 0, 100.6, 100.7, 0},
                      {EventKind::kReady, 1, 2, 100.05, 100.05, 0}},
           .dropped = 4},
          {.rank = 1, .events = {{EventKind::kBackward, 1, -1, 50.0, 50.25, 0}}, .clock_offset_s = 49.0}};
}

Json spans_of(const Json& trace, int rank) {
  Json found = Json::array();
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("pid") == rank && event.at("ph") != "M") found.push_back(event);
  return found;
}

TEST(ChromeTrace, HasOneProcessPerRankAndOneTrackPerKind) {
  const Json trace = Json::parse(chrome_trace_json(two_ranks()));
  std::map<int, std::string> processes;
  std::map<int, std::string> tracks;
  std::set<std::string> labels;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") processes[event.at("pid")] = event.at("args").at("name");
    if (event.at("name") == "thread_name") tracks[event.at("tid")] = event.at("args").at("name");
    if (event.at("name") == "process_labels") labels.insert(event.at("args").at("labels").get<std::string>());
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 1"}}));
  EXPECT_EQ(labels, std::set<std::string>{"4 earlier events dropped"});
  std::vector<std::string> used;
  for (const Json& event : spans_of(trace, 0)) used.push_back(tracks.at(event.at("tid")));
  EXPECT_EQ(used, (std::vector<std::string>{"compute", "encode", "hop 1", "hop 2", "update", "hop 1", "compute"}));
}

TEST(ChromeTrace, TimesAreMicrosecondsSinceTheEarliestEvent) {
  const Json trace = Json::parse(chrome_trace_json(two_ranks()));
  const Json first = spans_of(trace, 0);
  const Json second = spans_of(trace, 1);
  EXPECT_NEAR(second[0].at("ts").get<double>(), 0, 1e-3) << "50 s + 49 s is the earliest";
  EXPECT_NEAR(second[0].at("dur").get<double>(), 250e3, 1e-3);
  EXPECT_NEAR(first[0].at("ts").get<double>(), 1e6, 1e-3);
  EXPECT_EQ(first[2].at("ph"), "X");
  EXPECT_EQ(first[2].at("args"), (Json{{"step", 1}, {"bucket", 2}, {"bytes", 1234}}));
  EXPECT_EQ(first[6].at("ph"), "i") << "an instant";
  EXPECT_FALSE(first[6].contains("dur"));
}

TEST(ChromeTrace, OfNothingIsStillATrace) {
  EXPECT_TRUE(Json::parse(chrome_trace_json({})).at("traceEvents").empty());
}

TEST(ChromeTrace, IsWrittenToAFileOrSaysWhyNot) {
  const std::string path = (std::filesystem::temp_directory_path() / "thinwire_trace_test.json").string();
  write_chrome_trace(path, two_ranks());
  EXPECT_EQ(Json::parse(read_text_file(path)), Json::parse(chrome_trace_json(two_ranks())));
  std::filesystem::remove(path);
  EXPECT_THROW(write_chrome_trace(path + "/no/folder", two_ranks()), Error);
}

}  // namespace
}  // namespace thinwire::watch
