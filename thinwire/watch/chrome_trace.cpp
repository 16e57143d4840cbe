#include "thinwire/watch/chrome_trace.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "thinwire/base/file.hpp"

namespace thinwire::watch {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kTracks = {"compute", "encode", "hop 1", "hop 2", "update"};

// Index into kTracks. A dense exchange counts as hop 1, as it does in the order of collectives.
int track_of(EventKind kind) {
  switch (kind) {
    case EventKind::kBackward:
    case EventKind::kExposed:
    case EventKind::kReady:
      return 0;
    case EventKind::kEncode:
    case EventKind::kReduce:
    case EventKind::kDecode:
      return 1;
    case EventKind::kExchangeHop1:
    case EventKind::kDense:
      return 2;
    case EventKind::kExchangeHop2:
      return 3;
    case EventKind::kUpdate:
      return 4;
  }
  return 0;
}

double first_moment(std::span<const RankTrace> ranks) {
  double first = std::numeric_limits<double>::infinity();
  for (const RankTrace& rank : ranks)
    for (const Event& event : rank.events) first = std::min(first, event.begin_s + rank.clock_offset_s);
  return first;
}

Json metadata(const char* name, int rank, int track, Json args) {
  return {{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", std::move(args)}};
}

void add_names(Json& out, const RankTrace& rank) {
  out.push_back(metadata("process_name", rank.rank, 0, {{"name", "rank " + std::to_string(rank.rank)}}));
  out.push_back(metadata("process_sort_index", rank.rank, 0, {{"sort_index", rank.rank}}));
  if (rank.dropped > 0) {
    out.push_back(metadata("process_labels", rank.rank, 0,
                           {{"labels", std::to_string(rank.dropped) + " earlier events dropped"}}));
  }
  for (int track = 0; track < static_cast<int>(kTracks.size()); ++track) {
    out.push_back(metadata("thread_name", rank.rank, track, {{"name", kTracks[track]}}));
    out.push_back(metadata("thread_sort_index", rank.rank, track, {{"sort_index", track}}));
  }
}

Json event_json(const Event& event, int rank, double begin_s) {
  Json json = {{"name", to_string(event.kind)}, {"pid", rank}, {"tid", track_of(event.kind)}, {"ts", begin_s * 1e6}};
  if (event.end_s > event.begin_s) {
    json["ph"] = "X";
    json["dur"] = (event.end_s - event.begin_s) * 1e6;
  } else {
    json["ph"] = "i";
    json["s"] = "t";
  }
  json["args"]["step"] = event.step;
  if (event.bucket >= 0) json["args"]["bucket"] = event.bucket;
  if (event.bytes != 0) json["args"]["bytes"] = event.bytes;
  return json;
}

}  // namespace

std::string chrome_trace_json(std::span<const RankTrace> ranks) {
  const double first_s = first_moment(ranks);
  Json events = Json::array();
  for (const RankTrace& rank : ranks) {
    add_names(events, rank);
    for (const Event& event : rank.events)
      events.push_back(event_json(event, rank.rank, event.begin_s + rank.clock_offset_s - first_s));
  }
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

void write_chrome_trace(const std::string& path, std::span<const RankTrace> ranks) {
  write_file_atomically(path, chrome_trace_json(ranks));
}

}  // namespace thinwire::watch
