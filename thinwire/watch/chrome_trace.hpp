// Timelines of several ranks as a trace that chrome://tracing and ui.perfetto.dev open: one process per rank, one track
// per kind of work (compute, encode, hop 1, hop 2, update). Format: "Trace Event Format", Google, JSON object form.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thinwire/watch/timeline.hpp"

namespace thinwire::watch {

struct RankTrace {
  int rank = 0;
  std::vector<Event> events;
  double clock_offset_s = 0;  // added to this rank's times: ranks on one machine share a clock, others do not
  std::int64_t dropped = 0;   // events that the ring had overwritten; named in the process's label
};

// Times are microseconds since the earliest event of all ranks.
std::string chrome_trace_json(std::span<const RankTrace> ranks);

// Written atomically. Throws Error kIo.
void write_chrome_trace(const std::string& path, std::span<const RankTrace> ranks);

}  // namespace thinwire::watch
